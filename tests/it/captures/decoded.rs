//! The recorded bodies, read without a network: whole, at chosen instants, and cut anywhere.

use proptest::prelude::*;
use tokencanary::client::Ended;
use tokencanary::clock::MonoTime;

use super::{INSTANTS, RECORDED, Recorded, Response, check};
use crate::fuzz::invariants::view::{self, How, View};

fn how(recorded: &Recorded) -> How {
    How {
        protocol: view::protocol(recorded.api),
        streaming: recorded.streaming,
        ended: Ended::Complete,
        encoding: None,
        text: true,
    }
}

/// The responses whose status says that they are an answer.
fn answers() -> impl Iterator<Item = &'static Recorded> {
    RECORDED.iter().filter(|recorded| recorded.status == 200)
}

#[expect(clippy::unnecessary_wraps, reason = "marks that came are compared")]
fn at(ms: u64) -> Option<MonoTime> {
    Some(MonoTime::from_nanos(ms * 1_000_000))
}

#[test]
fn each_answer_says_what_a_reader_reads() {
    for recorded in answers() {
        let response = Response::of(recorded);
        let record = view::read(&how(recorded), [&response.body[..]]);
        let view = View::of(&record);
        check(&view, recorded);
        let text = view.text.as_deref().expect("it was kept");
        assert_eq!(text, recorded.text.unwrap_or_default(), "{}", recorded.file);
        assert!(view.notes.is_empty(), "{}: {:?}", recorded.file, view.notes);
        assert_eq!(record.bytes, response.body.len() as u64);
    }
}

#[test]
fn each_mark_is_that_of_the_read_with_its_event() {
    for recorded in answers().filter(|recorded| recorded.streaming) {
        let response = Response::of(recorded);
        let events = response.events();
        let record = view::read_at(&how(recorded), INSTANTS.into_iter().zip(events));
        check(&View::of(&record), recorded);
        let times = &record.timeline;
        assert_eq!(times.first_byte, at(INSTANTS[0]), "{}", recorded.file);
        assert_eq!(times.first_event, at(INSTANTS[0]), "{}", recorded.file);
        let chunks = record.chunks.as_slice().iter();
        let chunks: Vec<_> = chunks.map(|chunk| (Some(chunk.at), chunk.read)).collect();
        let (first, last) = recorded.token_events.unwrap_or((1, 0));
        let expected: Vec<_> = (first..=last)
            .map(|event| {
                let read = u32::try_from(event).expect("a few");
                (at(INSTANTS[event - 1]), read)
            })
            .collect();
        assert_eq!(chunks, expected, "{}", recorded.file);
        let ends = recorded
            .token_events
            .map(|(first, last)| (at(INSTANTS[first - 1]), at(INSTANTS[last - 1])));
        let (first, last) = ends.unwrap_or_default();
        assert_eq!(times.first_token, first, "{}", recorded.file);
        assert_eq!(times.first_output, first, "{}", recorded.file);
        assert_eq!(times.last_token, last, "{}", recorded.file);
    }
}

#[test]
fn no_cut_changes_what_is_read() {
    for recorded in answers() {
        let body = Response::of(recorded).body;
        let how = how(recorded);
        let whole = View::of(&view::read(&how, [&body[..]]));
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            let view = View::of(&view::read(&how, [head, tail]));
            assert_eq!(view, whole, "{} cut at {cut}", recorded.file);
        }
        let view = View::of(&view::read(&how, body.chunks(1)));
        assert_eq!(view, whole, "{} byte by byte", recorded.file);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_set_of_cuts_changes_what_is_read(cuts in prop::collection::vec(any::<prop::sample::Index>(), 2..12)) {
        for recorded in answers() {
            let body = Response::of(recorded).body;
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&body[from..cut]);
                from = cut;
            }
            pieces.push(&body[from..]);
            let how = how(recorded);
            let whole = View::of(&view::read(&how, [&body[..]]));
            let view = View::of(&view::read(&how, pieces));
            prop_assert_eq!(view, whole, "{}", recorded.file);
        }
    }
}
