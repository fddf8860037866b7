//! Faults that users of other tools reported about wires, each by its number in the list.

use super::case::{
    A, DONE, Expected, LENGTH, ROLE, STOP, THOUGHT, at, chat, counted, delta, ended, of, of_bytes,
    ok, sse, usage,
};
use super::peer::{HEAD, answered};
use crate::measurement::TokenSource::{ChunkUsage, Chunks, Usage};
use crate::measurement::{Api, Note, Outcome};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

#[test]
pub(super) fn b001_the_last_delta_is_an_empty_object() {
    chat(&[(30, A), (40, A), (41, STOP), (42, DONE)])
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
}

#[test]
pub(super) fn b002_an_error_in_a_200_is_no_success_with_zero_latency() {
    let error = sse(r#"{"error":{"message":"TimeoutError","code":504}}"#);
    let record = chat(&[(30, &error), (31, DONE)])
        .asking(256)
        .gives(&ended(Outcome::StreamError).error("504"));
    assert_eq!((record.ttft(), record.itl()), (None, None));
    assert_eq!(record.tokens.output, None, "what was asked for is no count");
}

#[test]
pub(super) fn b004_null_tool_calls_equal_none() {
    let text = delta(r#""content":"a","tool_calls":null"#);
    chat(&[
        (30, &text),
        (40, &text),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b006_reasoning_content_alone_is_a_first_token() {
    chat(&[
        (5, ROLE),
        (30, THOUGHT),
        (40, THOUGHT),
        (41, LENGTH),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().ttfo(None).finish("length"));
}

#[tokio::test(start_paused = true)]
pub(super) async fn b018_a_stream_cut_by_the_server_keeps_its_times() {
    let record = answered(&[(20, HEAD), (10, A), (10, A), (10, A)]).await;
    ended(Outcome::StreamCut)
        .times(30, 50, 3)
        .tokens(3, Chunks)
        .check(&record);
}

#[test]
pub(super) fn b019_usage_on_every_chunk_and_on_the_role_frame() {
    let text = r#""content":"a""#;
    let record = chat(&[
        (5, &counted(r#""role":"assistant""#, 0)),
        (30, &counted(text, 1)),
        (40, &counted(text, 2)),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().tokens(2, ChunkUsage));
    assert_eq!(record.tokens.input, Some(5));
}

#[test]
pub(super) fn b020_usage_of_prefill_chunks_holds_no_tokens() {
    let prefill = |prompt: u32| {
        sse(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":""}}}}],"usage":{{"prompt_tokens":{prompt},"completion_tokens":0}}}}"#
        ))
    };
    let one = sse(
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"length"}],"usage":{"prompt_tokens":1000,"completion_tokens":1}}"#,
    );
    let last = sse(r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":1}}"#);
    let record = chat(&[
        (10, &prefill(512)),
        (20, &prefill(1_000)),
        (30, &one),
        (31, &last),
        (32, DONE),
    ])
    .record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!((record.chunks.len(), record.itl()), (1, None));
    assert_eq!(record.timeline.first_token, Some(at(30)));
    assert_eq!(
        (record.tokens.input, record.tokens.output),
        (Some(1_000), Some(1))
    );
    assert!(!record.notes.has(Note::UsageNotCumulative));
}

#[test]
pub(super) fn b021_usage_that_counts_one_on_every_chunk_is_flagged() {
    let one = counted(r#""content":"a""#, 1);
    let record = chat(&[
        (30, &one),
        (40, &one),
        (50, &one),
        (60, &one),
        (61, STOP),
        (62, &usage(31)),
        (63, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 60, 4)
            .tokens(31, Usage)
            .itl_us(1_000)
            .notes(&[Note::UsageNotCumulative]),
    );
    assert_eq!(record.tokens.output, Some(31));
}

#[test]
pub(super) fn b022_usage_that_was_not_asked_for_is_taken() {
    chat(&[(30, A), (40, A), (41, STOP), (42, &usage(2)), (43, DONE)])
        .without_usage()
        .gives(&two().notes(&[Note::UsageUnasked]));
}

#[test]
pub(super) fn b023_done_after_each_chunk_ends_nothing_before_the_end() {
    chat(&[
        (30, A),
        (31, DONE),
        (40, A),
        (41, DONE),
        (60, A),
        (61, DONE),
    ])
    .gives(
        &ended(Outcome::Ok)
            .times(30, 60, 3)
            .tokens(3, Chunks)
            .notes(&[Note::AfterEnd]),
    );
}

#[tokio::test(start_paused = true)]
pub(super) async fn b024_an_incomplete_chunked_body_is_a_broken_connection() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{A}\r\n", A.len());
    let record = answered(&[
        (20, head),
        (10, &chunk),
        (10, &chunk),
        (10, "ff\r\ndata: {"),
    ])
    .await;
    ended(Outcome::StreamCut)
        .times(30, 40, 2)
        .tokens(2, Chunks)
        .error("connection broken")
        .check(&record);
}

#[test]
pub(super) fn b025_the_renamed_reasoning_field_counts() {
    let thought = delta(r#""reasoning":"a""#);
    let mut reads: Vec<(u64, &str)> = vec![(5, ROLE)];
    reads.extend((0..299).map(|token| (30 + token, &*thought)));
    reads.extend((0..10).map(|token| (340 + token, A)));
    let last = usage(309);
    reads.extend([(350, STOP), (351, &*last), (352, DONE)]);
    chat(&reads).gives(
        &ok("stop")
            .times(30, 349, 309)
            .ttfo(Some(340))
            .tokens(309, Usage)
            .itl_us(1_036),
    );
}

#[test]
pub(super) fn b027_a_chunk_without_choices_is_skipped() {
    let none = sse(r#"{"id":"warm-up","object":"chat.completion.chunk","choices":[]}"#);
    chat(&[
        (5, &none),
        (30, A),
        (35, &none),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b028_usage_beside_an_empty_text_is_the_count() {
    let text = sse(r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#);
    let last = sse(
        r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":37}}"#,
    );
    of(
        Api::Completions,
        &[(30, &text), (66, &text), (67, &last), (68, DONE)],
    )
    .asking(256)
    .gives(
        &ok("stop")
            .times(30, 66, 2)
            .tokens(37, Usage)
            .itl_us(1_000)
            .notes(&[Note::LengthNotAsked]),
    );
}

#[test]
pub(super) fn b042_usage_that_stays_null_leaves_chunks() {
    let null = sse(r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}"#);
    let stop = sse(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#);
    chat(&[
        (30, &null),
        (40, &null),
        (50, &null),
        (51, &stop),
        (52, DONE),
    ])
    .gives(&ok("stop").times(30, 50, 3).tokens(3, Chunks));
}

#[test]
pub(super) fn b043_a_read_may_end_right_after_the_name_of_the_field() {
    chat(&[
        (20, "data:"),
        (30, &A[5..]),
        (35, "data: "),
        (40, &A[6..]),
        (41, STOP),
        (42, &usage(2)),
        (43, "data:"),
        (44, " [DONE]\n\n"),
    ])
    .gives(&two());
    let tight = A.replacen("data: ", "data:", 1);
    chat(&[
        (20, "data:"),
        (30, &tight[5..]),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b061_a_prompt_that_is_too_long_is_a_failure_in_the_stream() {
    let error = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":900,"n_ctx":512}}"#;
    for api in [Api::Chat, Api::Llamacpp] {
        of(api, &[(30, &sse(error))])
            .gives(&ended(Outcome::StreamError).error("exceed_context_size_error"));
    }
}

#[test]
pub(super) fn b062_half_a_character_is_read_lossily() {
    let before = &b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\""[..];
    let after = &b"\"}}]}\n\n"[..];
    let left = [before, b"\xF0\x9F", after].concat();
    let right = [before, b"\x98\x80", after].concat();
    let tail = [STOP, &usage(2), DONE].concat();
    of_bytes(
        Api::Chat,
        &[(30, &left), (40, &right), (41, tail.as_bytes())],
    )
    .gives(&two().notes(&[Note::BadUtf8]));
}

#[test]
pub(super) fn b063_comments_before_the_first_data_are_no_error() {
    let record = chat(&[
        (5, ": OPENROUTER PROCESSING\n\n"),
        (15, ": OPENROUTER PROCESSING\n\n"),
        (30, A),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    assert_eq!(record.timeline.first_event, Some(at(30)));
}

#[test]
pub(super) fn b064_a_comment_after_an_event_is_no_empty_event() {
    let first = format!("id: 1\n{A}: ping\n\n");
    chat(&[
        (30, &first),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b065_a_wrapped_keep_alive_aborts_nothing() {
    let alive = "data: : keepalive\n\n";
    chat(&[
        (15_000, alive),
        (30_000, alive),
        (30_010, A),
        (30_020, A),
        (30_021, STOP),
        (30_022, &usage(2)),
        (30_023, DONE),
    ])
    .gives(&two().times(30_010, 30_020, 2).notes(&[Note::BadKeepAlive]));
}

#[test]
pub(super) fn b066_a_line_of_one_colon_is_ignored() {
    chat(&[
        (5, ":\n"),
        (10, ":\n\n"),
        (30, A),
        (35, ":\r\n\r\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b067_crlf_no_space_and_split_characters_together() {
    let text = "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é你\"}}]}\r\n\r\n";
    let cut = text.find('你').expect("it is there") + 1;
    let tail = [STOP, &usage(2), DONE].concat().replace('\n', "\r\n");
    of_bytes(
        Api::Chat,
        &[
            (20, &text.as_bytes()[..cut]),
            (30, &text.as_bytes()[cut..]),
            (40, text.as_bytes()),
            (41, tail.as_bytes()),
        ],
    )
    .gives(&two());
}

#[test]
pub(super) fn b068_line_separators_in_the_text_split_nothing() {
    let text = delta("\"content\":\"a\u{2028}b\u{85}c\"");
    chat(&[
        (30, &text),
        (40, &text),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b069_an_event_glued_into_another_is_one_corrupt_event() {
    let glued = "data: {\"id\":\"x\",\"created\":1,\"object\":\"chat.cdata: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    chat(&[
        (30, A),
        (35, glued),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().notes(&[Note::BadEvent]));
}

#[test]
pub(super) fn b070_an_empty_object_is_ignored() {
    chat(&[
        (30, A),
        (35, "data: {}\n\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b071_the_first_chunk_of_azure_starts_nothing() {
    let prelude = sse(
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#,
    );
    chat(&[
        (5, &prelude),
        (30, A),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b072_a_choice_without_delta_is_skipped() {
    let filter = sse(
        r#"{"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":0,"start_offset":0,"end_offset":10},"content_filter_results":{}}]}"#,
    );
    chat(&[
        (30, A),
        (40, A),
        (41, &filter),
        (42, STOP),
        (43, &filter),
        (44, &usage(2)),
        (45, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn b074_a_guardrail_that_closes_the_stream_is_a_cut() {
    for case in [
        chat(&[(30, A), (40, A)]),
        chat(&[(30, A), (40, A)]).broken(),
    ] {
        case.gives(&ended(Outcome::StreamCut).times(30, 40, 2).tokens(2, Chunks));
    }
}

#[test]
pub(super) fn b075_an_end_without_done_and_without_finish_is_no_success() {
    let record = chat(&[(5, ROLE), (30, A), (40, A), (50, &usage(2))]).record();
    assert_eq!(record.outcome, Outcome::StreamCut);
    assert!(record.is_failure() && record.finish_reason.is_none());
}

#[test]
pub(super) fn b076_usage_beside_the_finish_reason_is_read() {
    let both = sse(
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
    );
    chat(&[(30, A), (40, A), (41, &both), (42, DONE)]).gives(&two());
}
