//! The ladder of token counts, and the notes about them.

use super::*;

/// A token with the count of all tokens so far.
fn counted(text: &str, count: &str) -> String {
    format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":{count}}}}}"#
    )
}

fn listed(ids: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}},"token_ids":{ids}}}]}}"#)
}

#[track_caller]
fn check(
    record: &RequestRecord,
    (output, source, first): (Option<u32>, Option<TokenSource>, Option<u32>),
    expected: &[Note],
) {
    let tokens = record.tokens;
    assert_eq!(
        (tokens.output, tokens.source, tokens.in_first_chunk),
        (output, source, first)
    );
    assert_eq!(notes(record), expected);
}

#[test]
fn the_last_usage_counts() {
    let record = events(&[ROLE, A, A, FINISH, &usage("7"), &usage("null"), DONE]);
    check(&record, (Some(7), Some(TokenSource::Usage), None), &[]);
    assert_eq!(record.tokens.input, Some(5));
    assert_eq!(record.itl(), Some(ms(10).div_f64(6.0)));
}

#[test]
fn usage_on_the_finish_frame_is_usage() {
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":37}}"#;
    let record = events(&[A, A, finish, DONE]);
    check(&record, (Some(37), Some(TokenSource::Usage), None), &[]);
}

#[test]
fn growing_usage_on_chunks_counts_the_first_one_too() {
    // 10 tokens a chunk: a stream interval of 10.
    let record = events(&[
        &counted("", "0"),
        &counted("a", "10"),
        &counted("a", "20"),
        &counted("a", "30"),
        FINISH,
        &usage("30"),
        DONE,
    ]);
    check(
        &record,
        (Some(30), Some(TokenSource::ChunkUsage), Some(10)),
        &[],
    );
    assert_eq!(record.itl(), Some(ms(1)), "20 ms for 20 tokens");
}

#[test]
fn a_last_token_without_text_may_be_missing_on_the_chunks() {
    let record = events(&[
        &counted("a", "1"),
        &counted("a", "2"),
        &counted("a", "2"),
        FINISH,
        &usage("3"),
        DONE,
    ]);
    check(
        &record,
        (Some(3), Some(TokenSource::ChunkUsage), Some(1)),
        &[],
    );
}

#[test]
fn usage_that_does_not_grow_to_the_total_is_noted_and_passed_over() {
    for counts in [["1", "1", "1"], ["2", "1", "3"], ["1", "2", "3"]] {
        let chunks: Vec<String> = counts.iter().map(|count| counted("a", count)).collect();
        let total = usage("30");
        let mut all: Vec<&str> = chunks.iter().map(|chunk| &**chunk).collect();
        all.extend([FINISH, &*total, DONE]);
        check(
            &events(&all),
            (Some(30), Some(TokenSource::Usage), None),
            &[Note::UsageNotCumulative],
        );
    }
}

#[test]
fn one_chunk_with_usage_is_usage() {
    let record = events(&[&counted("a", "9"), FINISH, DONE]);
    check(&record, (Some(9), Some(TokenSource::Usage), None), &[]);
    assert_eq!((record.ttft(), record.itl()), (Some(ms(100)), None));
}

#[test]
fn listed_tokens_come_before_the_final_usage() {
    let record = events(&[
        &listed("[1,2]"),
        &listed("[3]"),
        r#"{"choices":[{"index":0,"delta":{"content":""},"token_ids":[2],"finish_reason":"stop"}]}"#,
        &usage("9"),
        DONE,
    ]);
    check(
        &record,
        (Some(4), Some(TokenSource::TokenIds), Some(2)),
        &[],
    );
    assert_eq!(record.itl(), Some(ms(5)), "10 ms for 2 tokens");
    let logprobs =
        r#"{"choices":[{"index":0,"delta":{"content":"ab"},"logprobs":{"content":[{},{}]}}]}"#;
    let record = events(&[logprobs, logprobs, FINISH, DONE]);
    check(
        &record,
        (Some(4), Some(TokenSource::Logprobs), Some(2)),
        &[],
    );
}

#[test]
fn a_list_with_holes_is_no_count() {
    let record = events(&[&listed("[1,2]"), A, FINISH, &usage("9"), DONE]);
    check(&record, (Some(9), Some(TokenSource::Usage), None), &[]);
}

#[test]
fn without_a_count_the_chunks_are_counted_and_called_so() {
    for count in ["0", "null"] {
        let record = events(&[A, A, FINISH, &usage(count), DONE]);
        check(&record, (Some(2), Some(TokenSource::Chunks), None), &[]);
        assert_eq!(record.itl(), None);
    }
}

#[test]
fn counts_that_cannot_be_are_noted() {
    for count in ["-3", "2.5", "1e999", "100000001", "\"3\"", "{}"] {
        let record = events(&[A, A, FINISH, &usage(count), DONE]);
        check(
            &record,
            (Some(2), Some(TokenSource::Chunks), None),
            &[Note::BadUsage],
        );
        assert_eq!(record.outcome, Outcome::Ok);
        assert_eq!(record.tokens.input, Some(5));
    }
}

#[test]
fn usage_that_was_not_asked_for_counts_and_is_noted() {
    let played = Played {
        style: RequestConfig {
            usage: false,
            ..RequestConfig::default()
        },
        ..Played::default()
    };
    let record = played.events(&[A, A, FINISH, &usage("7"), DONE]);
    check(
        &record,
        (Some(7), Some(TokenSource::Usage), None),
        &[Note::UsageUnasked],
    );
}

#[test]
fn another_length_than_asked_is_noted_where_it_was_asked_exactly() {
    let asked = |exact_length, events: &[&str]| {
        let played = Played {
            requested: Some(8),
            style: RequestConfig {
                exact_length,
                ..RequestConfig::default()
            },
            ..Played::default()
        };
        notes(&played.events(events))
    };
    let short = usage("7");
    assert_eq!(
        asked(true, &[A, A, FINISH, &short, DONE]),
        [Note::LengthNotAsked]
    );
    assert_eq!(asked(false, &[A, A, FINISH, &short, DONE]), []);
    assert_eq!(asked(true, &[A, A, FINISH, &usage("8"), DONE]), []);
    assert_eq!(
        asked(true, &[A, A, FINISH, DONE]),
        [],
        "chunks are no count"
    );
    assert_eq!(asked(true, &[A, A]), [], "it was cut");
    let two = [
        &*choice(0, "a"),
        &choice(1, "a"),
        FINISH,
        FINISH,
        &usage("16"),
        DONE,
    ];
    assert_eq!(asked(true, &two), [], "two answers of 8");
}

#[test]
fn reasoning_that_was_not_sent_is_not_in_the_pace() {
    let total = r#"{"choices":[],"usage":{"completion_tokens":103,"completion_tokens_details":{"reasoning_tokens":100}}}"#;
    let hidden = events(&[A, A, A, FINISH, total, DONE]);
    assert_eq!(hidden.itl(), Some(ms(10)), "20 ms for 2 of 3 tokens");
    let shown = events(&[THOUGHT, A, A, FINISH, total, DONE]);
    assert_eq!(shown.itl(), Some(ms(20).div_f64(102.0)));
    assert_eq!(shown.tokens.reasoning, Some(100));
}

#[test]
fn text_is_kept_only_if_wanted_and_not_too_long() {
    let kept = |events: &[&str]| {
        let played = Played {
            keep_text: true,
            ..Played::default()
        };
        played.events(events).text
    };
    assert_eq!(events(&[A, A, FINISH, DONE]).text, None);
    assert_eq!(
        kept(&[THOUGHT, A, A, FINISH, DONE]).as_deref(),
        Some("hmaa")
    );
    let two = [
        &*choice(1, "a"),
        &choice(0, "b"),
        &choice(1, "c"),
        FINISH,
        FINISH,
        DONE,
    ];
    assert_eq!(kept(&two).as_deref(), Some("ac\nb"));
    let long = content(&"x".repeat(600_000));
    assert_eq!(
        kept(&[&long, FINISH, DONE]).map(|text| text.len()),
        Some(600_000)
    );
    assert_eq!(kept(&[&long, &long, FINISH, DONE]), None);
}

#[test]
fn a_count_before_the_last_token_is_not_of_the_whole() {
    let record = events(&[&usage("1"), A, A, FINISH, DONE]);
    check(&record, (Some(2), Some(TokenSource::Chunks), None), &[]);
    let record = events(&[&counted("a", "5"), &counted("a", "3"), FINISH, DONE]);
    check(
        &record,
        (Some(2), Some(TokenSource::Chunks), None),
        &[Note::UsageNotCumulative],
    );
}

#[test]
fn more_tokens_than_bytes_came_is_no_count() {
    // Two tokens in some hundred bytes.
    let record = events(&[A, A, FINISH, &usage("900000"), DONE]);
    let bad = [Note::BadUsage];
    check(&record, (Some(2), Some(TokenSource::Chunks), None), &bad);
    // As many as were asked for can be, since some show no text.
    let asked = |requested| Played {
        requested: Some(requested),
        ..Played::default()
    };
    let record = asked(40_000).events(&[A, A, FINISH, &usage("40000"), DONE]);
    check(&record, (Some(40_000), Some(TokenSource::Usage), None), &[]);
    let record = asked(40_000).events(&[A, A, FINISH, &usage("40001"), DONE]);
    assert_eq!(record.tokens.source, Some(TokenSource::Chunks));
    assert!(notes(&record).contains(&Note::BadUsage));
    // Thoughts that were counted and not sent left no bytes.
    let hidden = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":50002,"completion_tokens_details":{"reasoning_tokens":50000}}}"#;
    let record = events(&[A, A, FINISH, hidden, DONE]);
    check(&record, (Some(50_002), Some(TokenSource::Usage), None), &[]);
}

#[test]
fn a_list_of_tokens_is_believed_before_usage_that_cannot_be() {
    let record = events(&[
        &listed("[1]"),
        &listed("[2,3]"),
        FINISH,
        &usage("900000"),
        DONE,
    ]);
    let source = Some(TokenSource::TokenIds);
    check(&record, (Some(3), source, Some(1)), &[Note::BadUsage]);
}

#[test]
fn a_prompt_that_no_server_could_make_so_long_is_no_count() {
    for (counted, expected) in [(262_160, Some(262_160)), (262_161, None)] {
        let played = Played::default();
        let mut record = played.record();
        // Sixteen times one, and 2^18 beside it.
        record.tokens.requested_input = Some(1);
        let protocol = Protocol::new(Api::Chat, RequestConfig::default()).expect("no body");
        let mut reading = Reading::new(Arc::new(protocol));
        let usage = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{counted},\"completion_tokens\":1}}}}"
        );
        let body = format!("data: {A}\n\ndata: {FINISH}\n\n{usage}\n\ndata: {DONE}\n\n");
        let read = ReadMark::user(at(1), 1);
        reading.take(body.as_bytes(), read, &mut record);
        reading.end(Ended::Complete, read, &mut record);
        assert_eq!(record.tokens.input, expected, "{counted}");
        assert_eq!(record.tokens.output, Some(1));
    }
}
