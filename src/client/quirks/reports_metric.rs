//! Faults that users of other tools reported about metrics, each by its number in the list.

use std::time::Duration;

use super::case::{
    A, DONE, EMPTY, Expected, LENGTH, ROLE, STOP, THOUGHT, at, chat, counted, delta, ended, gaps,
    named, of, ok, sse, usage,
};
use crate::load::workload::Tokenizer;
use crate::measurement::TokenSource::{ChunkUsage, Chunks, TokenIds, Usage};
use crate::measurement::{Api, FirstChunk, Note, Outcome};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

#[test]
pub(super) fn b005_reasoning_of_the_responses_api_comes_before_its_output() {
    let thought = named(
        "response.reasoning_text.delta",
        r#"{"type":"response.reasoning_text.delta","item_id":"r","output_index":0,"content_index":0,"delta":"a"}"#,
    );
    let text = named(
        "response.output_text.delta",
        r#"{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":0,"delta":"a"}"#,
    );
    let created = named(
        "response.created",
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","usage":null}}"#,
    );
    let completed = named(
        "response.completed",
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":5,"output_tokens":6,"output_tokens_details":{"reasoning_tokens":5}}}}"#,
    );
    let record = of(
        Api::Responses,
        &[
            (5, &created),
            (30, &thought),
            (40, &thought),
            (50, &thought),
            (60, &thought),
            (70, &thought),
            (80, &text),
            (81, &completed),
        ],
    )
    .record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(record.ttft(), Some(Duration::from_millis(30)));
    assert_eq!(record.ttfo(), Some(Duration::from_millis(80)));
    assert_eq!(
        (record.tokens.output, record.tokens.reasoning),
        (Some(6), Some(5))
    );
    assert_eq!(record.itl(), Some(Duration::from_millis(10)));
}

#[test]
pub(super) fn b007_a_role_frame_is_neither_first_token_nor_start_of_a_gap() {
    let record = chat(&[
        (900, ROLE),
        (2_200, A),
        (2_220, A),
        (2_240, A),
        (2_241, STOP),
        (2_242, &usage(3)),
        (2_243, DONE),
    ])
    .gives(
        &ok("stop")
            .times(2_200, 2_240, 3)
            .tokens(3, Usage)
            .itl_us(20_000),
    );
    assert_eq!(record.max_gap(), Some(Duration::from_millis(20)));
}

#[test]
pub(super) fn b008_a_hundred_tokens_in_forty_chunks() {
    let mut reads: Vec<(u64, &str)> = (0..40).map(|chunk| (100 + 20 * chunk, A)).collect();
    let last = usage(100);
    reads.extend([(890, STOP), (891, &*last), (892, DONE)]);
    // 780 ms for 99 tokens.
    chat(&reads).gives(
        &ok("stop")
            .times(100, 880, 40)
            .tokens(100, Usage)
            .itl_us(7_879),
    );
}

#[test]
pub(super) fn b009_four_tokens_every_forty_milliseconds() {
    let text = r#""content":"four""#;
    let chunks: Vec<String> = (1..=5).map(|chunk| counted(text, 4 * chunk)).collect();
    let mut reads: Vec<(u64, &str)> = [40, 80, 120, 160, 200]
        .into_iter()
        .zip(chunks.iter().map(String::as_str))
        .collect();
    reads.extend([(201, STOP), (202, DONE)]);
    chat(&reads).gives(
        &ok("stop")
            .times(40, 200, 5)
            .tokens(20, ChunkUsage)
            .itl_us(10_000),
    );
}

#[test]
pub(super) fn b026_a_stream_without_content_is_no_sample() {
    chat(&[
        (5, ROLE),
        (10, ": keep-alive\n\n"),
        (1_005, A),
        (1_015, A),
        (1_016, STOP),
        (1_017, &usage(2)),
        (1_018, DONE),
    ])
    .gives(&two().times(1_005, 1_015, 2));
    let record = chat(&[
        (5, ROLE),
        (10, ": keep-alive\n\n"),
        (1_005, STOP),
        (1_006, DONE),
    ])
    .gives(&ended(Outcome::Empty).finish("stop"));
    assert!(record.is_failure());
}

#[test]
pub(super) fn b029_a_chunk_that_retokenises_to_nothing_divides_nothing() {
    let ids = |ids: &str| {
        sse(&format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"x"}},"token_ids":{ids}}}]}}"#
        ))
    };
    let all = [ids("[1]"), ids("[]"), ids("[2,3]")];
    chat(&[
        (30, &all[0]),
        (40, &all[1]),
        (50, &all[2]),
        (51, STOP),
        (52, &usage(3)),
        (53, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 50, 3)
            .tokens(3, TokenIds)
            .itl_us(10_000),
    );
    let record = chat(&[(30, &all[1]), (40, STOP), (41, DONE)]).record();
    assert_eq!((record.itl(), record.output_rate()), (None, None));
}

#[test]
pub(super) fn b030_itl_agrees_with_the_rate_of_tokens() {
    // 13 tokens after the first in 44.2 ms of five speculative chunks: 3.4 ms each.
    let mut reads: Vec<(u64, &str)> =
        vec![(100, A), (109, A), (118, A), (127, A), (136, A), (144, A)];
    let last = usage(14);
    reads.extend([(145, STOP), (146, &*last), (147, DONE)]);
    let record = chat(&reads).gives(
        &ok("stop")
            .times(100, 144, 6)
            .tokens(14, Usage)
            .itl_us(3_385),
    );
    let rate = record.output_rate().expect("an ITL");
    assert!((rate - 13.0 / 0.044).abs() < 0.01, "{rate}");
}

#[test]
pub(super) fn b032_reasoning_that_is_cut_off_or_followed_by_an_answer() {
    let mut reads: Vec<(u64, &str)> = vec![(5, ROLE)];
    reads.extend((0..30).map(|token| (30 + 10 * token, THOUGHT)));
    let (cut, all) = (usage(30), usage(31));
    let only: Vec<_> = [&*reads, &[(321, LENGTH), (322, &*cut), (323, DONE)]].concat();
    chat(&only).gives(
        &ok("length")
            .times(30, 320, 30)
            .ttfo(None)
            .tokens(30, Usage)
            .itl_us(10_000),
    );
    let then: Vec<_> = [&*reads, &[(330, A), (331, STOP), (332, &*all), (333, DONE)]].concat();
    chat(&then).gives(
        &ok("stop")
            .times(30, 330, 31)
            .ttfo(Some(330))
            .tokens(31, Usage)
            .itl_us(10_000),
    );
}

#[test]
pub(super) fn b033_no_chunk_is_tokenised_by_itself() {
    // "the" is one token; its pieces "t" and "he", each with a token that begins a text, are five.
    let (t, he) = (delta(r#""content":"t""#), delta(r#""content":"he""#));
    let record = chat(&[(30, &t), (40, &he), (41, STOP), (42, DONE)])
        .keeping_text()
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
    assert_eq!(record.text.as_deref(), Some("the"));
    assert_eq!(tokens(record.text.as_deref()), 1);
}

/// Tokens of a whole text, by a tokenizer that begins prompts with a token of its own.
fn tokens(text: Option<&str>) -> u32 {
    let file = include_bytes!("../../../tests/fixtures/tokenizer/tiny.json");
    let tokenizer = Tokenizer::json(file).expect("a good file");
    tokenizer
        .count(text.expect("it was kept"))
        .expect("known letters")
}

#[test]
pub(super) fn b035_only_events_with_tokens_are_timed() {
    let record = chat(&[
        (5, ROLE),
        (30, A),
        (40, A),
        (90, STOP),
        (150, &usage(2)),
        (300, DONE),
    ])
    .gives(&two());
    assert_eq!(record.service_time(), Some(Duration::from_millis(40)));
    assert_eq!(gaps(&record), [10]);
    assert_eq!(record.timeline.first_event, Some(at(5)));
}

#[test]
pub(super) fn b039_ten_tokens_per_chunk_of_reasoning_and_output_alike() {
    let thought = r#""reasoning_content":"ten""#;
    let text = r#""content":"ten""#;
    for (first, ttfo) in [(text, Some(100)), (thought, Some(300))] {
        let chunks = [
            counted(first, 10),
            counted(first, 20),
            counted(text, 30),
            counted(text, 40),
        ];
        let record = chat(&[
            (100, &chunks[0]),
            (200, &chunks[1]),
            (300, &chunks[2]),
            (400, &chunks[3]),
            (401, STOP),
            (402, DONE),
        ])
        .gives(
            &ok("stop")
                .times(100, 400, 4)
                .ttfo(ttfo)
                .tokens(40, ChunkUsage)
                .itl_us(10_000),
        );
        assert_eq!(record.tokens.in_first_chunk, Some(10));
        assert_eq!(record.first_chunk(), FirstChunk::Counted);
    }
}

#[test]
pub(super) fn b040_two_first_tokens_in_one_read_are_flagged() {
    let first = [ROLE, A, A].concat();
    let record = chat(&[
        (44, &first),
        (54, A),
        (64, A),
        (65, STOP),
        (66, &usage(4)),
        (67, DONE),
    ])
    .gives(
        &ok("stop")
            .times(44, 64, 4)
            .tokens(4, Usage)
            .itl_us(6_667)
            .notes(&[Note::FirstTokenMerged]),
    );
    let chunks = record.chunks.as_slice();
    assert_eq!(chunks[0].read, chunks[1].read, "their gap is no token gap");
    // A role frame in the read of the first token takes nothing from it.
    let first = [ROLE, A].concat();
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
pub(super) fn b044_tokens_of_a_reasoning_parser_are_output_tokens() {
    let last = sse(
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":512,"completion_tokens_details":{"reasoning_tokens":474}}}"#,
    );
    let record = chat(&[
        (30, THOUGHT),
        (504, THOUGHT),
        (541, A),
        (542, LENGTH),
        (543, &last),
        (544, DONE),
    ])
    .gives(
        &ok("length")
            .times(30, 541, 3)
            .ttfo(Some(541))
            .tokens(512, Usage)
            .itl_us(1_000),
    );
    assert_eq!(record.tokens.reasoning, Some(474));
}

#[test]
pub(super) fn b045_empty_chunks_in_the_middle_make_no_gaps() {
    let record = chat(&[
        (5, EMPTY),
        (30, A),
        (32, EMPTY),
        (34, EMPTY),
        (40, A),
        (42, EMPTY),
        (50, A),
        (51, STOP),
        (52, &usage(3)),
        (53, DONE),
    ])
    .gives(&ok("stop").times(30, 50, 3).tokens(3, Usage).itl_us(10_000));
    assert_eq!(gaps(&record), [10, 10]);
}

#[test]
pub(super) fn b046_no_beginning_of_text_is_added_to_an_answer() {
    let (the, cat) = (delta(r#""content":"the""#), delta(r#""content":" cat""#));
    let record = chat(&[(30, &the), (40, &cat), (41, STOP), (42, DONE)])
        .keeping_text()
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
    // "the", " ", "c", "a", "t".
    assert_eq!(tokens(record.text.as_deref()), 5);
}

#[test]
pub(super) fn b047_itl_leaves_out_the_first_token_and_counts_tokens() {
    let text = delta(r#""content":"three""#);
    // First token after a second, then 9 tokens in 90 ms: 90 / (10 - 1).
    chat(&[
        (1_000, &text),
        (1_030, &text),
        (1_060, &text),
        (1_090, &text),
        (1_091, STOP),
        (1_092, &usage(10)),
        (1_093, DONE),
    ])
    .gives(
        &ok("stop")
            .times(1_000, 1_090, 4)
            .tokens(10, Usage)
            .itl_us(10_000),
    );
}

#[test]
pub(super) fn b073_the_first_token_of_any_channel_whatever_the_other_says() {
    let null = delta(r#""content":null,"reasoning_content":"a""#);
    let empty = delta(r#""content":"","reasoning_content":"a""#);
    for thought in [&null, &empty] {
        let mut reads: Vec<(u64, &str)> = vec![(1, ROLE)];
        reads.extend((0..1_256).map(|token| (1_200 + token, &**thought)));
        let last = usage(1_257);
        reads.extend([(2_456, A), (2_457, STOP), (2_458, &last), (2_459, DONE)]);
        chat(&reads).gives(
            &ok("stop")
                .times(1_200, 2_456, 1_257)
                .ttfo(Some(2_456))
                .tokens(1_257, Usage)
                .itl_us(1_000),
        );
    }
}

#[test]
pub(super) fn b077_spaces_are_counted_by_the_server() {
    let spaces = delta(&format!(r#""content":"{}""#, " ".repeat(101)));
    chat(&[
        (30, &spaces),
        (130, A),
        (131, STOP),
        (132, &usage(101)),
        (133, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 130, 2)
            .tokens(101, Usage)
            .itl_us(1_000),
    );
}

#[test]
pub(super) fn b078_speculative_chunks_are_not_tokens() {
    // 25 tokens per second in chunks of about 4.5: 1 + 45 tokens in 1.8 s.
    let mut reads: Vec<(u64, &str)> = (0..11).map(|chunk| (200 + 180 * chunk, A)).collect();
    let last = usage(46);
    reads.extend([(2_001, STOP), (2_002, &*last), (2_003, DONE)]);
    let record = chat(&reads).gives(
        &ok("stop")
            .times(200, 2_000, 11)
            .tokens(46, Usage)
            .itl_us(40_000),
    );
    assert_eq!(record.output_rate().map(f64::round), Some(25.0));
    let unknown: Vec<_> = [&reads[..11], &[(2_001, STOP), (2_003, DONE)]].concat();
    chat(&unknown).gives(&ok("stop").times(200, 2_000, 11).tokens(11, Chunks));
}
