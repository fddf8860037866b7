//! Quirks 1 to 18: which events carry tokens, how many, and on which channel.

use super::case::{
    A, DONE, EMPTY, LENGTH, ROLE, STOP, THOUGHT, at, chat, counted, delta, ended, gaps, named, of,
    ok, sse, usage,
};
use crate::client::Protocol;
use crate::client::framing::Event;
use crate::client::protocol::Said;
use crate::config::RequestConfig;
use crate::measurement::TokenSource::{ChunkUsage, Chunks, Usage};
use crate::measurement::{Api, FirstChunk, Note, Outcome};

#[test]
pub(super) fn q01_role_only_first_chunk_is_no_token() {
    let null = delta(r#""role":"assistant","content":null"#);
    for role in [ROLE, &null] {
        chat(&[
            (5, role),
            (30, A),
            (40, A),
            (55, A),
            (56, STOP),
            (57, &usage(3)),
            (58, DONE),
        ])
        .gives(&ok("stop").times(30, 55, 3).tokens(3, Usage).itl_us(12_500));
    }
}

#[test]
pub(super) fn q02_a_role_frame_after_the_first_prefill_chunk_starts_nothing() {
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
    assert_eq!(record.timeline.first_event, Some(at(900)));
    assert_eq!(gaps(&record), [20, 20]);
}

#[test]
pub(super) fn q03_empty_content_in_the_middle_is_no_gap() {
    let record = chat(&[
        (5, ROLE),
        (30, A),
        (40, EMPTY),
        (50, A),
        (60, EMPTY),
        (70, A),
        (75, EMPTY),
        (76, STOP),
        (77, &usage(5)),
        (78, DONE),
    ])
    .gives(&ok("stop").times(30, 70, 3).tokens(5, Usage).itl_us(10_000));
    assert_eq!(gaps(&record), [20, 20]);
}

#[test]
pub(super) fn q04_the_last_delta_may_lack_content() {
    let no_delta = sse(r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#);
    for last in [STOP, &no_delta] {
        chat(&[(30, A), (40, A), (41, last), (42, DONE)])
            .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
    }
}

#[test]
pub(super) fn q05_an_explicit_null_equals_absence() {
    let nulls = r#""role":null,"tool_calls":null,"refusal":null,"reasoning_content":null,"reasoning":null,"function_call":null"#;
    let text = delta(&format!(r#""content":"a",{nulls}"#));
    let nothing = delta(&format!(r#""content":null,{nulls}"#));
    chat(&[
        (10, &nothing),
        (30, &text),
        (40, &nothing),
        (50, &text),
        (51, STOP),
        (52, &usage(2)),
        (53, DONE),
    ])
    .gives(&ok("stop").times(30, 50, 2).tokens(2, Usage).itl_us(20_000));
}

#[test]
pub(super) fn q06_usage_comes_after_the_finish_reason_without_choices() {
    let last = sse(
        r#"{"id":"x","choices":[],"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
    );
    let record = chat(&[(30, A), (40, A), (41, STOP), (60, &last), (61, DONE)])
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000));
    assert_eq!(
        (record.tokens.input, record.tokens.cached),
        (Some(7), Some(4))
    );
}

#[test]
pub(super) fn q07_usage_may_be_packed_into_the_finish_or_the_last_content_chunk() {
    let finish = sse(
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4}}"#,
    );
    chat(&[(30, A), (40, A), (60, A), (61, &finish), (62, DONE)])
        .gives(&ok("stop").times(30, 60, 3).tokens(4, Usage).itl_us(10_000));
    let content = sse(
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4}}"#,
    );
    chat(&[(30, A), (40, A), (60, &content), (61, DONE)])
        .gives(&ok("stop").times(30, 60, 3).tokens(4, Usage).itl_us(10_000));
    let empty_text = sse(
        r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#,
    );
    let text = sse(r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#);
    of(
        Api::Completions,
        &[(30, &text), (50, &text), (51, &empty_text), (52, DONE)],
    )
    .gives(&ok("stop").times(30, 50, 2).tokens(3, Usage).itl_us(10_000));
}

#[test]
pub(super) fn q08_null_usage_is_none_and_usage_unasked_is_noted() {
    let null = sse(r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}"#);
    let after = sse(r#"{"choices":[],"usage":null}"#);
    chat(&[
        (30, &null),
        (40, &null),
        (41, STOP),
        (42, &usage(2)),
        (43, &after),
        (44, DONE),
    ])
    .gives(&ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000));
    let text = r#""content":"a""#;
    chat(&[
        (5, &counted(r#""role":"assistant","content":"""#, 0)),
        (30, &counted(text, 1)),
        (40, &counted(text, 2)),
        (50, &counted(text, 3)),
        (51, STOP),
        (52, DONE),
    ])
    .without_usage()
    .gives(
        &ok("stop")
            .times(30, 50, 3)
            .tokens(3, ChunkUsage)
            .itl_us(10_000)
            .notes(&[Note::UsageUnasked]),
    );
}

#[test]
pub(super) fn q09_usage_on_each_chunk_counts_the_tokens_of_each() {
    let text = r#""content":"four""#;
    let record = chat(&[
        (5, &counted(r#""role":"assistant","content":"""#, 0)),
        (30, &counted(text, 4)),
        (70, &counted(text, 8)),
        (110, &counted(text, 12)),
        (111, STOP),
        (112, &usage(12)),
        (113, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 110, 3)
            .tokens(12, ChunkUsage)
            .itl_us(10_000),
    );
    assert_eq!(record.tokens.in_first_chunk, Some(4));
}

#[test]
pub(super) fn q10_usage_that_is_not_cumulative_counts_no_chunk() {
    let text = r#""content":"a""#;
    let falling = [
        (30, counted(text, 5)),
        (40, counted(text, 3)),
        (60, counted(text, 4)),
    ];
    let mut reads: Vec<(u64, &str)> = falling.iter().map(|(ms, text)| (*ms, &**text)).collect();
    reads.push((61, STOP));
    let noted = [Note::UsageNotCumulative];
    let last = usage(7);
    let with_final: Vec<_> = [&*reads, &[(62, &*last), (63, DONE)]].concat();
    let record = chat(&with_final).gives(
        &ok("stop")
            .times(30, 60, 3)
            .tokens(7, Usage)
            .itl_us(5_000)
            .notes(&noted),
    );
    assert_eq!(record.first_chunk(), FirstChunk::Assumed);
    let without: Vec<_> = [&*reads, &[(63, DONE)]].concat();
    chat(&without).gives(&ok("stop").times(30, 60, 3).tokens(3, Chunks).notes(&noted));
}

#[test]
pub(super) fn q11_several_choices_are_timed_each_for_itself() {
    let choice = |index: u32| {
        sse(&format!(
            r#"{{"choices":[{{"index":{index},"delta":{{"content":"a"}}}}]}}"#
        ))
    };
    let stop = |index: u32| {
        sse(&format!(
            r#"{{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#
        ))
    };
    let record = chat(&[
        (30, &choice(0)),
        (32, &choice(1)),
        (40, &choice(0)),
        (46, &choice(1)),
        (50, &choice(0)),
        (51, &stop(0)),
        (60, &choice(1)),
        (61, &stop(1)),
        (62, &usage(6)),
        (63, DONE),
    ])
    .gives(&ok("stop").times(30, 60, 6).tokens(6, Usage).itl_us(12_000));
    // Choice 0 from 30 to 50, choice 1 from 32 to 60: 48 ms for 3 - 1 + 3 - 1 tokens.
    let choices = record.choices.expect("two choices carried tokens");
    assert_eq!(choices.count, 2);
    assert_eq!(choices.spans.as_millis(), 48);
}

#[test]
pub(super) fn q12_reasoning_is_found_under_all_its_names_and_counted_once() {
    let both = delta(r#""reasoning":"a","reasoning_content":"a""#);
    let details =
        delta(r#""content":"","reasoning_details":[{"type":"reasoning.text","text":"a"}]"#);
    let all = delta(
        r#""content":"","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]"#,
    );
    for thought in [THOUGHT, &delta(r#""reasoning":"a""#), &both, &details, &all] {
        chat(&[
            (30, thought),
            (40, thought),
            (60, A),
            (61, STOP),
            (62, &usage(4)),
            (63, DONE),
        ])
        .gives(
            &ok("stop")
                .times(30, 60, 3)
                .ttfo(Some(60))
                .tokens(4, Usage)
                .itl_us(10_000),
        );
        assert_eq!(pieces(thought), 1, "{thought}");
    }
    let ollama = concat!(
        r#"{"message":{"role":"assistant","content":"","thinking":"a"},"done":false}"#,
        "\n"
    );
    let answer = concat!(r#"{"message":{"content":"a"},"done":false}"#, "\n");
    let done = concat!(
        r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":2}"#,
        "\n"
    );
    of(Api::Ollama, &[(30, ollama), (60, answer), (61, done)]).gives(
        &ok("stop")
            .times(30, 60, 2)
            .ttfo(Some(60))
            .tokens(2, Usage)
            .itl_us(30_000),
    );
    inline_tags();
}

/// Pieces of text in one chat event.
fn pieces(event: &str) -> usize {
    let data = event.trim_start_matches("data: ").trim_end().as_bytes();
    let protocol = Protocol::new(Api::Chat, RequestConfig::default()).expect("no body of ours");
    let mut said = Said::default();
    protocol
        .read(Event { name: b"", data }, &mut said)
        .expect("JSON of this shape");
    said.pieces().count()
}

/// A server without a reasoning parser leaves the tags in the text.
fn inline_tags() {
    let say = |text: &str| delta(&format!(r#""content":"{text}""#));
    chat(&[
        (5, ROLE),
        (30, &say("<think>")),
        (40, &say("hm")),
        (50, &say("</think>")),
        (60, &say("Hi")),
        (70, &say("!")),
        (71, STOP),
        (72, &usage(5)),
        (73, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 70, 5)
            .ttfo(Some(60))
            .tokens(5, Usage)
            .itl_us(10_000),
    );
}

#[test]
pub(super) fn q13_reasoning_only_has_a_first_token_and_no_output() {
    let last = sse(
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":3}}}"#,
    );
    let record = chat(&[
        (5, ROLE),
        (30, THOUGHT),
        (40, THOUGHT),
        (50, THOUGHT),
        (51, LENGTH),
        (52, &last),
        (53, DONE),
    ])
    .gives(
        &ok("length")
            .times(30, 50, 3)
            .ttfo(None)
            .tokens(3, Usage)
            .itl_us(10_000),
    );
    assert_eq!(record.tokens.reasoning, Some(3));
}

#[test]
pub(super) fn q14_reasoning_is_part_of_the_output_and_never_added() {
    let with = |reasoning: u32| {
        sse(&format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":5,"completion_tokens":5,"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}}}"#
        ))
    };
    let all_shown = [
        (30, THOUGHT),
        (40, THOUGHT),
        (50, A),
        (60, A),
        (70, A),
        (71, STOP),
    ];
    for (reasoning, kept) in [(2, Some(2)), (7, None)] {
        let last = with(reasoning);
        let reads: Vec<_> = [&all_shown[..], &[(72, &*last), (73, DONE)]].concat();
        let record = chat(&reads).gives(
            &ok("stop")
                .times(30, 70, 5)
                .ttfo(Some(50))
                .tokens(5, Usage)
                .itl_us(10_000),
        );
        assert_eq!(
            record.tokens.reasoning, kept,
            "a part above the whole is none"
        );
    }
    // Two of five tokens were thought and not shown: three were delivered.
    let record = chat(&[
        (50, A),
        (60, A),
        (70, A),
        (71, STOP),
        (72, &with(2)),
        (73, DONE),
    ])
    .gives(&ok("stop").times(50, 70, 3).tokens(5, Usage).itl_us(10_000));
    assert_eq!(record.tokens.reasoning, Some(2));
}

#[test]
pub(super) fn q15_several_tokens_per_chunk_are_divided_by_tokens_or_not_at_all() {
    let four = delta(r#""content":"four""#);
    let reads = [(30, &*four), (70, &*four), (107, &*four), (108, STOP)];
    let last = usage(12);
    let counted: Vec<_> = [&reads[..], &[(109, &*last), (110, DONE)]].concat();
    let record =
        chat(&counted).gives(&ok("stop").times(30, 107, 3).tokens(12, Usage).itl_us(7_000));
    assert_eq!(record.first_chunk(), FirstChunk::Assumed);
    let unknown: Vec<_> = [&reads[..], &[(110, DONE)]].concat();
    chat(&unknown).gives(&ok("stop").times(30, 107, 3).tokens(3, Chunks));
}

#[test]
pub(super) fn q16_the_tokens_of_the_first_chunk_are_not_divided_by() {
    let text = r#""content":"a""#;
    let record = chat(&[
        (100, &counted(text, 10)),
        (110, &counted(text, 11)),
        (120, &counted(text, 12)),
        (121, STOP),
        (122, DONE),
    ])
    .gives(
        &ok("stop")
            .times(100, 120, 3)
            .tokens(12, ChunkUsage)
            .itl_us(10_000),
    );
    assert_eq!(record.tokens.in_first_chunk, Some(10));
}

#[test]
pub(super) fn q17_any_part_of_a_tool_call_is_a_token() {
    let call = |inside: &str| delta(&format!(r#""tool_calls":[{{"index":0,{inside}}}]"#));
    let named = call(r#""id":"c1","type":"function","function":{"name":"weather","arguments":""}"#);
    let merged =
        call(r#""id":"c1","type":"function","function":{"name":"weather","arguments":"{"}"#);
    let fragment = call(r#""function":{"arguments":"\"city\""}"#);
    let empty = call(r#""function":{"arguments":""}"#);
    let finish = sse(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#);
    for first in [&named, &merged] {
        chat(&[
            (5, ROLE),
            (30, first),
            (40, &fragment),
            (45, &empty),
            (50, &fragment),
            (51, &finish),
            (52, &usage(3)),
            (53, DONE),
        ])
        .gives(
            &ok("tool_calls")
                .times(30, 50, 3)
                .tokens(3, Usage)
                .itl_us(10_000),
        );
    }
}

#[test]
pub(super) fn q18_a_refusal_is_made_of_tokens() {
    let no = delta(r#""refusal":"I cannot""#);
    chat(&[
        (5, ROLE),
        (30, &no),
        (40, &no),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000));
    let reads = [
        named(
            "response.created",
            r#"{"type":"response.created","response":{"id":"r"}}"#,
        ),
        named(
            "response.refusal.delta",
            r#"{"type":"response.refusal.delta","delta":"No"}"#,
        ),
        named(
            "response.completed",
            r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":1}}}"#,
        ),
    ];
    let record = of(
        Api::Responses,
        &[(5, &reads[0]), (30, &reads[1]), (40, &reads[2])],
    )
    .record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(record.timeline.first_output, Some(at(30)));
    ended(Outcome::Empty).finish("stop").check(
        &chat(&[
            (5, ROLE),
            (30, &delta(r#""refusal":"""#)),
            (31, STOP),
            (32, DONE),
        ])
        .record(),
    );
}
