//! Which instant counts for what, by which clock, and whether it is to be trusted.

use super::*;
use crate::measurement::{Choices, ClockSource};

fn kernel(ms: u64, number: u32, spread_ms: u64) -> ReadMark {
    ReadMark {
        at: at(ms),
        returned: at(ms + 2),
        number,
        spread: Duration::from_millis(spread_ms),
        clock: StampClock::Kernel,
        bad_stamp: false,
    }
}

fn data(events: &[&str]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| format!("data: {event}\n\n").into_bytes())
        .collect()
}

fn played(reads: &[(ReadMark, &[&str])]) -> RequestRecord {
    let bytes: Vec<Vec<u8>> = reads.iter().map(|(_, events)| data(events)).collect();
    let reads: Vec<(ReadMark, &[u8])> = reads
        .iter()
        .zip(&bytes)
        .map(|((read, _), bytes)| (*read, &**bytes))
        .collect();
    Played::default().reads(&reads, Ended::Complete)
}

fn spreads(record: &RequestRecord) -> Vec<u32> {
    let chunks = record.chunks.as_slice();
    chunks.iter().map(|chunk| chunk.spread_us).collect()
}

#[test]
fn reasoning_ends_ttft_and_the_first_of_the_answer_ends_ttfo() {
    let record = events(&[ROLE, THOUGHT, THOUGHT, A, FINISH, DONE]);
    assert_eq!(
        (record.ttft(), record.ttfo()),
        (Some(ms(110)), Some(ms(130)))
    );
    let record = events(&[ROLE, THOUGHT, FINISH, DONE]);
    assert_eq!((record.ttft(), record.ttfo()), (Some(ms(110)), None));
    assert_eq!(record.outcome, Outcome::Ok);
}

#[test]
fn thoughts_in_tags_are_reasoning() {
    let texts = ["<th", "ink>", "hm", "</think>", "\\n\\n", "yes"];
    let chunks: Vec<String> = texts.iter().map(|text| content(text)).collect();
    let mut all: Vec<&str> = chunks.iter().map(|chunk| &**chunk).collect();
    all.extend([FINISH, DONE]);
    let record = events(&all);
    assert_eq!(
        (record.ttft(), record.ttfo()),
        (Some(ms(100)), Some(ms(150)))
    );
    assert!(record.tokens.reasoning_came);
    let only = events(&[&content("<think>"), &content("hm"), FINISH, DONE]);
    assert_eq!((only.ttft(), only.ttfo()), (Some(ms(100)), None));
    // What only began like a tag was the answer from its beginning, also at the end.
    for second in ["ree", "h"] {
        let record = events(&[ROLE, &content("<t"), &content(second), FINISH, DONE]);
        assert_eq!(record.ttfo(), Some(ms(110)), "{second}");
    }
}

#[test]
fn several_answers_have_spans_of_their_own() {
    let record = events(&[
        &choice(0, "a"),
        &choice(1, "a"),
        &choice(0, "a"),
        &choice(0, "a"),
        &choice(1, "a"),
        FINISH,
        FINISH,
        &usage("7"),
        DONE,
    ]);
    // 100 to 130 and 110 to 140 ms.
    let expected = Choices {
        count: 2,
        spans: ms(60),
    };
    assert_eq!(record.choices, Some(expected));
    assert_eq!(record.itl(), Some(ms(12)), "60 ms for 7 − 2 tokens");
    assert_eq!(events(&[A, A, FINISH, DONE]).choices, None);
}

#[test]
fn a_chunk_before_another_event_of_its_kernel_read_is_merged() {
    let record = played(&[
        (kernel(100, 1, 0), &[ROLE]),
        (kernel(110, 2, 0), &[A]),
        (kernel(130, 3, 12), &[A, A]),
        (kernel(140, 4, 0), &[A, FINISH, DONE]),
    ]);
    // All of the last read came at once, so its token is as exact as its end.
    assert_eq!(spreads(&record), [0, 12_000, 0, 0]);
    assert_eq!(record.clock, ClockSource::Kernel);
    assert_eq!(record.read_lag, Some(ms(2)));
    assert_eq!(notes(&record), []);
}

#[test]
fn a_merged_first_token_is_noted_if_tokens_follow_it() {
    let record = played(&[
        (kernel(100, 1, 30), &[A, A]),
        (kernel(110, 2, 0), &[FINISH]),
    ]);
    assert_eq!(notes(&record), [Note::FirstTokenMerged]);
    assert_eq!(spreads(&record), [30_000, 0]);
    assert!(record.is_lagged(), "30 ms of doubt in 100");
    let record = played(&[(kernel(100, 1, 30), &[A, FINISH, DONE])]);
    assert_eq!(notes(&record), []);
    assert_eq!(spreads(&record), [30_000]);
}

#[test]
fn frames_of_one_read_share_it_though_they_come_one_by_one() {
    let record = played(&[
        (kernel(100, 1, 3), &[A]),
        (kernel(100, 1, 3), &[A]),
        (kernel(110, 2, 0), &[FINISH, DONE]),
    ]);
    assert_eq!(spreads(&record), [3_000, 0]);
}

#[test]
fn by_our_own_clock_only_tokens_of_one_read_are_merged() {
    let user = |ms, number| ReadMark::user(at(ms), number);
    let record = played(&[
        (user(100, 1), &[A]),
        (user(110, 2), &[A, A]),
        (user(120, 3), &[A, FINISH, DONE]),
    ]);
    assert_eq!(spreads(&record), [0, 1, 0, 0]);
    assert_eq!(record.clock, ClockSource::User);
    assert_eq!(record.read_lag, None);
}

#[test]
fn one_read_without_a_usable_stamp_takes_the_clock_back() {
    let bad = ReadMark {
        bad_stamp: true,
        ..ReadMark::user(at(110), 2)
    };
    let record = played(&[
        (kernel(100, 1, 0), &[A]),
        (bad, &[A]),
        (kernel(120, 3, 0), &[A]),
        (kernel(130, 4, 0), &[FINISH, DONE]),
    ]);
    assert_eq!(record.clock, ClockSource::User);
    assert_eq!(notes(&record), [Note::BadStamp]);
    assert_eq!(record.read_lag, Some(ms(2)));
}

/// 20 tokens, each with its own read unless `together`, the first after `wait` µs.
fn burst(wait: u64, gap: u64, together: u64) -> RequestRecord {
    let bytes = data(&[A]);
    let end = data(&[FINISH, DONE]);
    let mut reads = Vec::new();
    for token in 0..20 {
        let read = token / together;
        let at = MonoTime::from_nanos((wait + read * gap) * 1_000);
        let number = u32::try_from(read).expect("few") + 1;
        reads.push((ReadMark::user(at, number), &bytes[..]));
    }
    reads.push((ReadMark::user(at(60_000), 99), &end[..]));
    Played::default().reads(&reads, Ended::Complete)
}

#[test]
fn a_burst_at_the_end_is_a_stream_that_was_held_back() {
    for (wait, gap, together, buffered) in [
        (2_000_000, 0, 20, true),
        (2_000_000, 10, 1, true),
        // A burst that a slow network draws out: four reads of five in 30 ms.
        (2_000_000, 10_000, 5, true),
        // A tiny model behind a long queue: 0.3 ms a token.
        (2_000_000, 300, 1, false),
        // A stream like any other.
        (200_000, 10_000, 1, false),
        // A local server that is fast: too short to tell.
        (40_000, 0, 20, false),
    ] {
        let record = burst(wait, gap, together);
        assert_eq!(record.is_buffered(), buffered, "{wait} {gap} {together}");
        assert!(record.ttft().is_some());
        if buffered {
            assert_eq!(record.itl(), None);
            assert!(!record.feeds_verdict());
        }
    }
}

#[test]
fn a_short_answer_in_one_read_is_not_called_held_back() {
    let record = played(&[(kernel(900, 1, 0), &[A, A, A, A, A, A, A, FINISH, DONE])]);
    assert!(!record.is_buffered());
}
