//! Quirks 19 to 34: how the bytes of a stream are cut into events, and where it ends.

use super::case::{
    A, DONE, EMPTY, Expected, ROLE, STOP, at, chat, delta, ended, gaps, ok, sse, usage,
};
use crate::measurement::TokenSource::{Chunks, Usage};
use crate::measurement::{Note, Outcome};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

#[test]
pub(super) fn q19_comments_are_liveness_and_nothing_else() {
    let record = chat(&[
        (5, ": ping\n\n"),
        (10, ": OPENROUTER PROCESSING\n\n"),
        (15, ":\n\n"),
        (20, ": keep-alive\n\n"),
        (30, A),
        (35, ":\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    assert_eq!(record.timeline.first_byte, Some(at(5)));
    assert_eq!(record.timeline.first_event, Some(at(30)));
}

#[test]
pub(super) fn q20_a_comment_and_a_blank_line_are_no_event() {
    let record = chat(&[(5, ": ping\n\n"), (10, "id: 1\n\n"), (15, "event: x\n\n")])
        .gives(&ended(Outcome::StreamCut).error("no terminal event"));
    assert_eq!(record.timeline.first_event, None);
    let identified = format!("id: 1\n{A}");
    chat(&[
        (30, &identified),
        (35, ": ping\n\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q21_a_keep_alive_wrapped_into_data_is_counted_and_skipped() {
    let record = chat(&[
        (5, "data: : keepalive\n\n"),
        (30, A),
        (35, "data: : keepalive\n\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().notes(&[Note::BadKeepAlive]));
    assert!(record.timeline.first_event <= Some(at(30)));
}

#[test]
pub(super) fn q22_empty_data_lines_are_skipped() {
    chat(&[
        (5, "data:\n\n"),
        (10, "data: \n\n"),
        (15, "data\n\n"),
        (30, A),
        (35, "data:\n\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q23_an_empty_object_says_nothing() {
    chat(&[
        (5, "data: {}\n\n"),
        (30, A),
        (35, "data: {}\n\n"),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, "data: {}\n\n"),
        (44, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q24_lines_end_in_any_way_and_at_any_read() {
    let whole = [A, A, STOP, &usage(2), DONE].concat();
    for end in ["\r\n", "\r", "\n"] {
        let events: Vec<String> = [A, A, STOP, &usage(2), DONE]
            .iter()
            .map(|event| event.replace('\n', end))
            .collect();
        let reads: Vec<(u64, &str)> = [30, 40, 41, 42, 43]
            .into_iter()
            .zip(events.iter().map(String::as_str))
            .collect();
        chat(&reads).gives(&two());
    }
    // CR ends one read, its LF begins the next.
    let line = |event: &str| event.trim_end().to_owned() + "\r";
    chat(&[
        (30, &line(A)),
        (30, "\n\r"),
        (31, "\n"),
        (40, &(line(A) + "\r")),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    let mixed = whole
        .replacen("\n\n", "\r\n\n", 1)
        .replacen("}\n\n", "}\r\r\n", 1);
    let record = chat(&[(40, &mixed)]).record();
    assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 2));
}

#[test]
pub(super) fn q25_a_byte_order_mark_is_stripped_once() {
    let first = format!("\u{feff}{A}");
    chat(&[
        (30, &first),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    let marked = format!("\u{feff}{ROLE}");
    chat(&[
        (5, &marked),
        (30, A),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q26_the_space_after_the_colon_is_optional() {
    let tight = |event: &str| event.replacen("data: ", "data:", 1);
    let wide = |event: &str| event.replacen("data: ", "data:   ", 1);
    for spaced in [tight as fn(&str) -> String, wide] {
        chat(&[
            (30, &spaced(A)),
            (40, &spaced(A)),
            (41, &spaced(STOP)),
            (42, &spaced(&usage(2))),
            (43, &spaced(DONE)),
        ])
        .gives(&two());
    }
}

#[test]
pub(super) fn q27_other_fields_and_several_data_lines_follow_the_specification() {
    let first = "id: 7\nretry: 3000\nevent: message\ndata: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"a\"}}]}\nunknown: x\n\n";
    chat(&[
        (30, first),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q28_unicode_separators_end_no_line() {
    for separator in ['\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}'] {
        // The last two must be escaped in JSON; the first three are sent as they are.
        let text = match separator {
            '\u{b}' => "a\\u000bb".to_owned(),
            '\u{c}' => "a\\fb".to_owned(),
            raw => format!("a{raw}b"),
        };
        let event = delta(&format!(r#""content":"{text}""#));
        chat(&[
            (30, &event),
            (40, &event),
            (41, STOP),
            (42, &usage(2)),
            (43, DONE),
        ])
        .gives(&two());
    }
}

#[test]
pub(super) fn q29_without_done_only_a_finish_reason_is_success() {
    chat(&[(30, A), (40, A), (41, STOP), (42, &usage(2))]).gives(&two());
    chat(&[(30, A), (40, A)]).gives(
        &ended(Outcome::StreamCut)
            .times(30, 40, 2)
            .tokens(2, Chunks)
            .error("no terminal event"),
    );
}

#[test]
pub(super) fn q30_done_may_be_ragged() {
    for done in [
        "data: [DONE]  \n\n",
        "data: [DONE] \r\n\r\n",
        "data:[DONE]\n\n",
        "data: [DONE]\n",
        "data: [DONE]\r",
        "data: [DONE]",
        "data:[DONE]",
        "data:  [DONE]\t\n\n",
    ] {
        chat(&[(30, A), (40, A), (41, STOP), (42, &usage(2)), (43, done)]).gives(&two());
        // No finish reason came: `[DONE]` alone is the terminal event.
        chat(&[(30, A), (40, A), (43, done)])
            .gives(&ended(Outcome::Ok).times(30, 40, 2).tokens(2, Chunks));
    }
}

#[test]
pub(super) fn q31_what_follows_done_is_noted_and_not_counted() {
    let late = two().notes(&[Note::AfterEnd]);
    let before = usage(2);
    for after in [DONE, A, STOP] {
        chat(&[
            (30, A),
            (40, A),
            (41, STOP),
            (42, &before),
            (43, DONE),
            (50, after),
        ])
        .gives(&late);
    }
    // Comments and blank lines are nothing.
    chat(&[
        (30, A),
        (40, A),
        (41, STOP),
        (42, &before),
        (43, DONE),
        (50, ": bye\n\n\n"),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q32_events_may_be_split_at_any_byte() {
    chat(&[
        (5, "data:"),
        (10, " {\"choices\":[{\"index\":0,\"delta\":{\"con"),
        (20, "tent\":\"a\"}}]}"),
        (30, "\n\n"),
        (35, "data"),
        (40, &A[4..]),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    let snowman = delta(r#""content":"é你😀""#);
    let bytes = snowman.as_bytes();
    let tail = [STOP, &usage(2), DONE].concat();
    for cut in 1..bytes.len() {
        let reads: [(u64, &[u8]); 4] = [
            (20, &bytes[..cut]),
            (30, &bytes[cut..]),
            (40, A.as_bytes()),
            (41, tail.as_bytes()),
        ];
        super::case::of_bytes(crate::measurement::Api::Chat, &reads).gives(&two());
    }
}

#[test]
pub(super) fn q33_events_of_one_read_share_their_instant() {
    let three = [A, A, A].concat();
    let record = chat(&[
        (30, &three),
        (50, A),
        (60, STOP),
        (61, &usage(5)),
        (62, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 50, 4)
            .tokens(5, Usage)
            .itl_us(5_000)
            .notes(&[Note::FirstTokenMerged]),
    );
    assert_eq!(gaps(&record), [0, 0, 20]);
    let reads: Vec<u32> = record
        .chunks
        .as_slice()
        .iter()
        .map(|chunk| chunk.read)
        .collect();
    assert_eq!(reads, [1, 1, 1, 2]);
    // Later ones may share a read without any doubt about the first.
    let two = [A, A].concat();
    chat(&[(30, A), (50, &two), (60, STOP), (61, &usage(3)), (62, DONE)])
        .gives(&ok("stop").times(30, 50, 3).tokens(3, Usage).itl_us(10_000));
}

#[test]
pub(super) fn q34_one_corrupt_event_among_good_ones_is_noted() {
    let glued = "data: {\"id\":\"1\",\"object\":\"chat.cdata: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n";
    chat(&[
        (5, ROLE),
        (30, A),
        (35, glued),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().notes(&[Note::BadEvent]));
    // Nothing but what cannot be read is no answer.
    let record = chat(&[(30, glued), (40, &sse("{\"cho")), (43, DONE)]).record();
    assert_eq!(record.outcome, Outcome::Malformed);
    assert_eq!(record.ttft(), None);
    // An empty piece is not a corrupt one.
    chat(&[
        (5, EMPTY),
        (30, A),
        (40, A),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}
