//! What the response is, and what was odd about it.

use super::*;

#[track_caller]
fn check(record: &RequestRecord, outcome: Outcome, expected: &[Note]) {
    assert_eq!(record.outcome, outcome, "{:?}", record.error);
    assert_eq!(notes(record), expected);
    let has_error = !matches!(outcome, Outcome::Ok | Outcome::Empty | Outcome::NotAStream);
    assert_eq!(record.error.is_some(), has_error);
}

#[test]
fn a_stream_is_ok_with_tokens_and_an_end() {
    for end in [&[FINISH, DONE][..], &[FINISH], &[DONE]] {
        let all: Vec<&str> = [ROLE, A].iter().chain(end).copied().collect();
        check(&events(&all), Outcome::Ok, &[]);
    }
    check(&events(&[ROLE, A]), Outcome::StreamCut, &[]);
    check(&events(&[ROLE, FINISH, DONE]), Outcome::Empty, &[]);
}

#[test]
fn an_answer_that_has_no_end_cuts_them_all() {
    let (one, two) = (choice(0, "a"), choice(1, "a"));
    check(&events(&[&one, &two, FINISH]), Outcome::StreamCut, &[]);
    check(&events(&[&one, &two, FINISH, FINISH]), Outcome::Ok, &[]);
    check(&events(&[&one, &two, FINISH, DONE]), Outcome::Ok, &[]);
}

#[test]
fn an_error_is_a_failure_also_after_tokens() {
    let error = r#"{"error":{"message":"TimeoutError","code":504}}"#;
    for all in [
        &[error, DONE][..],
        &[A, error, DONE],
        &[A, A, error],
        &[A, FINISH, error, DONE],
    ] {
        let record = events(all);
        check(&record, Outcome::StreamError, &[]);
        let said = record.error.expect("it says why");
        assert_eq!((&*said.kind, &*said.message), ("504", "TimeoutError"));
    }
    for text in [
        "event: error\ndata: {\"message\":\"full\"}\n\n",
        "error: {\"message\":\"full\",\"code\":400}\n\n",
        "event: error\ndata: full\n\n",
    ] {
        let record = Played::default().texts(&[(1, text)]);
        check(&record, Outcome::StreamError, &[]);
        assert_eq!(&*record.error.expect("it says why").message, "full");
    }
}

#[test]
fn a_finish_reason_can_tell_of_a_failure() {
    let abort = r#"{"choices":[{"index":1,"delta":{},"finish_reason":"abort"}]}"#;
    for all in [&[A, abort, FINISH, DONE], &[A, FINISH, abort, DONE]] {
        let record = events(all);
        check(&record, Outcome::StreamError, &[]);
        assert_eq!(record.finish_reason.as_deref(), Some("abort"));
    }
    let filter = r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    check(
        &events(&[A, filter, DONE]),
        Outcome::Ok,
        &[Note::ContentFilter],
    );
    check(
        &events(&[filter, DONE]),
        Outcome::Empty,
        &[Note::ContentFilter],
    );
}

#[test]
fn one_bad_event_does_no_harm_to_a_whole_answer() {
    let glued =
        r#"{"id":"x","object":"chat.cdata: {"id":"x","choices":[{"delta":{"content":"a"}}]}"#;
    check(
        &events(&[A, glued, A, FINISH, DONE]),
        Outcome::Ok,
        &[Note::BadEvent],
    );
    check(
        &events(&[A, glued, A, FINISH]),
        Outcome::Ok,
        &[Note::BadEvent],
    );
    check(
        &events(&[glued, FINISH, DONE]),
        Outcome::Malformed,
        &[Note::BadEvent],
    );
    check(
        &events(&[A, glued, DONE]),
        Outcome::Malformed,
        &[Note::BadEvent],
    );
    check(&events(&[A, glued]), Outcome::Malformed, &[Note::BadEvent]);
}

#[test]
fn keep_alives_and_empty_events_are_passed_over() {
    let record = events(&[
        ": keepalive",
        ROLE,
        "",
        "{}",
        A,
        ": keepalive",
        FINISH,
        DONE,
    ]);
    check(&record, Outcome::Ok, &[Note::BadKeepAlive]);
    assert_eq!(record.ttft(), Some(ms(140)));
    assert_eq!(record.chunks.len(), 1);
}

#[test]
fn what_follows_the_end_is_noted_and_not_counted() {
    let record = events(&[A, FINISH, DONE, A, DONE]);
    check(&record, Outcome::Ok, &[Note::AfterEnd]);
    assert_eq!(record.timeline.last_token, Some(at(100)));
}

#[test]
fn an_end_after_each_chunk_is_not_the_end() {
    let record = events(&[A, DONE, A, DONE, A, FINISH, DONE]);
    check(&record, Outcome::Ok, &[Note::AfterEnd]);
    assert_eq!(record.chunks.len(), 3);
    assert_eq!(record.timeline.last_token, Some(at(140)));
}

#[test]
fn the_client_waits_until_a_finish_reason_and_the_end_came() {
    let mut record = Played::default().record();
    let protocol = Protocol::new(Api::Chat, RequestConfig::default()).expect("no body");
    let mut reading = Reading::new(Arc::new(protocol));
    for (number, event, done) in [
        (1, A, false),
        (2, DONE, false),
        (3, FINISH, false),
        (4, DONE, true),
    ] {
        let text = format!("data: {event}\n\n");
        reading.take(
            text.as_bytes(),
            ReadMark::user(at(number.into()), number),
            &mut record,
        );
        assert_eq!(reading.is_done(), done, "{event}");
    }
}

#[test]
fn broken_characters_are_replaced() {
    let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\"}}]}\n\n";
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n";
    let end = format!("data: {FINISH}\n\ndata: [DONE]\n\n");
    for token in [&bytes[..], half.as_bytes()] {
        let reads = [
            (ReadMark::user(at(5), 1), token),
            (ReadMark::user(at(9), 2), end.as_bytes()),
        ];
        let played = Played {
            keep_text: true,
            ..Played::default()
        };
        let record = played.reads(&reads, Ended::Complete);
        check(&record, Outcome::Ok, &[Note::BadUtf8]);
        assert_eq!(record.text.as_deref(), Some("\u{fffd}"));
        assert_eq!(record.ttft(), Some(ms(5)));
    }
}

#[test]
fn a_body_that_is_no_stream_is_named() {
    let json = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    let record = Played::default().texts(&[(4, json)]);
    check(&record, Outcome::NotAStream, &[]);
    assert_eq!((record.ttft(), record.service_time()), (None, Some(ms(4))));
    assert_eq!(
        (record.tokens.input, record.tokens.output),
        (Some(5), Some(3))
    );
    for text in ["<html>busy</html>", "Bad gateway", "\u{feff}nonsense\n\n"] {
        let record = Played::default().texts(&[(4, text)]);
        check(&record, Outcome::Malformed, &[]);
        let error = record.error.expect("it says why");
        let message = text.trim_matches(['\u{feff}', '\n']);
        assert_eq!(error.message.trim_matches('\u{feff}'), message);
    }
    for (text, outcome) in [
        ("", Outcome::StreamCut),
        ("\n\n", Outcome::StreamCut),
        (": ping\n\n", Outcome::StreamCut),
        (&json[..40], Outcome::Malformed),
        (r#"{"error":{"message":"no"}}"#, Outcome::StreamError),
        ("{}", Outcome::Empty),
    ] {
        check(&Played::default().texts(&[(4, text)]), outcome, &[]);
    }
    let reads = [(ReadMark::user(at(5), 1), &json.as_bytes()[..40])];
    let cut = Played::default().reads(&reads, Ended::Broken);
    check(&cut, Outcome::StreamCut, &[]);
}

#[test]
fn an_answer_without_streaming_has_no_first_token() {
    let unary = |api, text: &str| {
        let played = Played {
            api,
            streaming: false,
            keep_text: true,
            ..Played::default()
        };
        played.texts(&[(2, &text[..1]), (4, &text[1..])])
    };
    let record = unary(
        Api::Chat,
        r#"{"choices":[{"index":0,"message":{"reasoning":"hm","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#,
    );
    check(&record, Outcome::Ok, &[]);
    assert_eq!((record.ttft(), record.ttfo()), (None, None));
    assert_eq!(record.service_time(), Some(ms(4)));
    assert_eq!(record.tokens.output, Some(3));
    assert_eq!(record.tokens.source, Some(TokenSource::Usage));
    assert_eq!(record.text.as_deref(), Some("hma"));
    let record = unary(
        Api::Responses,
        r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":5,"output_tokens":3}}"#,
    );
    check(&record, Outcome::Ok, &[]);
    assert_eq!(record.finish_reason.as_deref(), Some("max_output_tokens"));
    assert_eq!(record.tokens.output, Some(3));
    assert_eq!(record.text.as_deref(), Some("hma"));
    let record = unary(Api::Completions, r#"{"choices":[{"text":"a"}]}"#);
    check(&record, Outcome::Ok, &[]);
    assert_eq!((record.tokens.output, record.tokens.source), (None, None));
}

#[test]
fn the_events_of_responses_say_what_became_of_it() {
    let played = |events: &[&str]| {
        let played = Played {
            api: Api::Responses,
            ..Played::default()
        };
        played.events(events)
    };
    let created = r#"{"type":"response.created","response":{"status":"in_progress","error":null}}"#;
    let thought = r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#;
    let text = r#"{"type":"response.output_text.delta","delta":"a","logprobs":[]}"#;
    let repeated = r#"{"type":"response.output_text.done","text":"aa"}"#;
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"aa"}]}],"usage":{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}}"#;
    let record = played(&[created, thought, text, text, repeated, end]);
    check(&record, Outcome::Ok, &[]);
    assert_eq!(
        (record.ttft(), record.ttfo()),
        (Some(ms(110)), Some(ms(120)))
    );
    assert_eq!(record.timeline.last_token, Some(at(130)));
    assert_eq!(record.tokens.output, Some(9));
    assert_eq!(record.tokens.reasoning, Some(4));
    assert_eq!(record.finish_reason.as_deref(), Some("completed"));
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"no"}}}"#;
    let error = r#"{"type":"error","code":"server_error","message":"no","param":null}"#;
    for last in [failed, error] {
        let record = played(&[created, text, last]);
        check(&record, Outcome::StreamError, &[]);
        let said = record.error.expect("it says why");
        assert_eq!((&*said.kind, &*said.message), ("server_error", "no"));
    }
    let incomplete = r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}"#;
    let record = played(&[created, text, incomplete]);
    check(&record, Outcome::Ok, &[Note::ContentFilter]);
    check(&played(&[created, text]), Outcome::StreamCut, &[]);
}

#[test]
fn what_is_said_in_the_reasoning_only_is_no_answer() {
    let replied = |events: &[&str]| {
        let played = Played {
            keep_reply: true,
            ..Played::default()
        };
        let record = played.events(events);
        assert_eq!(record.outcome, Outcome::Ok);
        record.reply.map(String::from)
    };
    let seven = r#"{"choices":[{"index":0,"delta":{"reasoning":"it is 7"}}]}"#;
    let in_text = |text: &str| replied(&[&content(text), FINISH, DONE]);
    assert_eq!(replied(&[seven, FINISH, DONE]).as_deref(), Some(""));
    assert_eq!(replied(&[seven, A, FINISH, DONE]).as_deref(), Some("a"));
    assert_eq!(in_text("<think>it is 7").as_deref(), Some(""));
    assert_eq!(in_text("<think>7?</think> 8").as_deref(), Some("8"));
    assert_eq!(in_text("it is 7</think>8").as_deref(), Some("8"));
}
