//! Absences of a server, and what becomes of the requests in them.

use std::sync::Arc;
use std::time::Duration;

use super::{Decided, StartRules, TargetWatch};
use crate::aggregate::fixture::{failed, ms, ok, refused, stream};
use crate::measurement::server::{CounterRole, ServerPage};
use crate::measurement::{
    Counts, Outcome, RefusedReason, RequestError, RequestRecord, Sample, ServerState, TargetState,
};

const RULES: StartRules = StartRules {
    grace: Duration::from_mins(10),
    warm_up: 2,
    page_within: Duration::from_secs(15),
};

/// One target, by the second.
struct Story {
    watch: TargetWatch,
}

/// What became of a request, of those before it, and how the target stands.
type Step = (Counts, Option<Decided>, TargetState);

impl Story {
    fn new(rules: StartRules) -> Self {
        Self {
            watch: TargetWatch::new(rules),
        }
    }

    fn record(&mut self, record: &RequestRecord) -> Step {
        let counts = self.watch.record(record);
        let decided = self.watch.decided();
        let (state, _) = self.watch.state().expect("a request ended");
        (counts, decided, state)
    }

    fn good(&mut self, second: u64) -> Step {
        self.record(&ok(&stream(0), second * 1_000, &[5]).record)
    }

    fn fails(&mut self, second: u64, outcome: Outcome, status: Option<u16>) -> Step {
        self.record(&failed(&stream(0), second * 1_000, outcome, status).record)
    }

    fn refused(&mut self, second: u64) -> Step {
        self.fails(second, Outcome::Connect, None)
    }

    fn loading(&mut self, second: u64) -> Step {
        self.says(second, "Loading model")
    }

    fn says(&mut self, second: u64, message: &str) -> Step {
        let mut record = failed(&stream(0), second * 1_000, Outcome::HttpStatus, Some(503)).record;
        record.error = Some(RequestError {
            kind: "unavailable_error".into(),
            message: message.into(),
        });
        self.record(&record)
    }

    /// A page of a process that started then, if it says so, with so many tokens.
    fn page(
        &mut self,
        second: u64,
        (start, tokens): (Option<f64>, f64),
    ) -> (bool, Option<Decided>) {
        let mut page = ServerPage::default();
        page.totals.process_start = start;
        let role = CounterRole::GenerationTokens;
        page.totals.set_counter(role, Some(tokens));
        let is_later = self.watch.page(&Sample {
            target_index: 0,
            asked: ms(second * 1_000),
            at: ms(second * 1_000 + 20),
            state: ServerState::default(),
            page: Arc::new(page),
        });
        (is_later, self.watch.decided())
    }

    fn tick(&mut self, second: u64) -> Option<Decided> {
        self.watch.tick(ms(second * 1_000));
        self.watch.decided()
    }
}

use Counts::{Later, Never, Now};
use Decided::{Count, Excuse};
use TargetState::{Down, Gone, Serving, Starting, Warming};

#[test]
fn a_restart_counts_for_nobody_and_its_first_answers_neither() {
    let mut story = Story::new(RULES);
    assert_eq!(story.good(0), (Now, None, Serving));
    assert_eq!(story.page(1, (Some(50.0), 900.0)), (false, None));
    // Streams break off first, all at once.
    for _ in 0..5 {
        let cut = story.fails(10, Outcome::StreamCut, Some(200));
        assert_eq!(cut.0, Later);
    }
    assert_eq!(story.refused(15), (Later, None, Down));
    assert_eq!(story.refused(20), (Later, None, Down));
    assert_eq!(story.tick(100), None);
    assert_eq!(
        story.fails(110, Outcome::HttpStatus, Some(503)),
        (Later, None, Down)
    );
    // It is back; the page has not been read yet.
    assert_eq!(story.good(190), (Later, None, Warming));
    assert_eq!(story.page(195, (Some(180.0), 3.0)), (true, Some(Excuse)));
    assert_eq!(story.good(196), (Never, None, Warming));
    assert_eq!(story.good(200), (Now, None, Serving));
}

#[test]
fn an_outage_counts_once_the_page_shows_the_same_process() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    assert_eq!(story.refused(10), (Later, None, Serving));
    assert_eq!(story.good(15), (Later, None, Warming));
    // This one was asked for before it was back.
    assert_eq!(story.page(14, (Some(50.0), 900.0)), (false, None));
    assert_eq!(story.page(16, (Some(50.0), 905.0)), (false, Some(Count)));
    assert_eq!(story.good(20), (Now, None, Serving));
}

#[test]
fn while_some_connections_fail_and_others_do_not_all_of_it_counts_soon() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    story.refused(10);
    story.good(11);
    story.refused(12);
    story.good(13);
    story.refused(14);
    assert_eq!(story.page(15, (Some(50.0), 910.0)).1, Some(Count));
    assert_eq!(
        story.refused(16).0,
        Later,
        "the next one is another question"
    );
}

#[test]
fn without_a_page_that_tells_an_absence_is_an_outage_as_soon_as_it_is_over() {
    let mut story = Story::new(StartRules {
        page_within: Duration::ZERO,
        ..RULES
    });
    story.good(0);
    assert_eq!(story.refused(10).0, Later);
    assert_eq!(story.good(15), (Now, Some(Count), Serving));
    // A page that has neither a start nor counters says nothing.
    let mut story = Story::new(RULES);
    story.good(0);
    assert_eq!(story.refused(10).0, Later);
    assert_eq!(story.good(15), (Now, Some(Count), Serving));
}

#[test]
fn counters_that_began_anew_show_a_restart_where_no_start_is_told() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (None, 900.0));
    story.refused(10);
    assert_eq!(story.page(40, (None, 0.0)), (true, Some(Excuse)));
    assert_eq!(story.refused(41), (Never, Some(Excuse), Starting));
    assert_eq!(story.good(45), (Never, Some(Excuse), Warming));
    // So they do where the server said that it is loading, and the page comes later.
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (None, 900.0));
    story.loading(10);
    story.good(15);
    assert_eq!(story.page(16, (None, 10.0)), (true, None));
}

#[test]
fn counters_that_fall_unseen_are_a_restart_once_they_stay_low() {
    let mut story = Story::new(RULES);
    story.good(0);
    let pages = |story: &mut Story, from: u64, tokens: &[f64]| -> Vec<bool> {
        let pages = (from..).zip(tokens);
        pages
            .map(|(second, tokens)| story.page(second, (None, *tokens)).0)
            .collect()
    };
    let low = pages(&mut story, 1, &[900.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    assert_eq!(low, [false, false, false, false, false, true, false]);
    assert_eq!(
        story.good(8),
        (Now, None, Serving),
        "its first answers are over"
    );
    // Another replica answers in between: from then on falls mean nothing.
    let in_turn = [5.0, 70.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
    assert_eq!(pages(&mut story, 10, &in_turn), [false; 9]);
    assert_eq!(story.good(20), (Now, None, Serving));
}

#[test]
fn a_server_that_says_it_is_loading_is_starting() {
    let mut story = Story::new(RULES);
    story.good(0);
    assert_eq!(story.refused(10), (Later, None, Serving));
    assert_eq!(story.says(11, "offloading to the host").0, Later);
    assert_eq!(story.loading(15), (Never, Some(Excuse), Starting));
    assert_eq!(story.good(90), (Never, Some(Excuse), Warming));
    assert_eq!(story.good(91), (Never, None, Warming));
    assert_eq!(story.good(92), (Now, None, Serving));
}

#[test]
fn one_that_never_answered_may_take_its_time_and_no_more() {
    let mut story = Story::new(RULES);
    assert_eq!(story.refused(0), (Later, None, Starting));
    assert_eq!(story.refused(300), (Later, None, Starting));
    assert_eq!(story.good(310), (Never, Some(Excuse), Warming));
    let mut story = Story::new(RULES);
    for second in [0, 300, 599] {
        assert_eq!(story.refused(second), (Later, None, Starting));
    }
    assert_eq!(story.refused(601), (Now, Some(Count), Down));
    assert_eq!(story.refused(606), (Now, None, Down));
    let gone = story.fails(611, Outcome::Dns, None);
    assert_eq!(gone, (Now, None, Gone));
    assert_eq!(story.good(700), (Now, None, Serving));
}

#[test]
fn what_lasts_too_long_counts_though_nothing_ends() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.refused(10);
    assert_eq!(story.tick(600), None);
    assert_eq!(story.tick(611), Some(Count));
    assert_eq!(story.refused(612), (Now, None, Serving));
    assert_eq!(story.refused(613), (Now, None, Down));
}

#[test]
fn a_page_that_does_not_come_is_not_waited_for() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    story.refused(10);
    assert_eq!(story.good(15).0, Later);
    assert_eq!(story.good(16).0, Later);
    assert_eq!(
        story.good(17),
        (Now, None, Serving),
        "warm, whatever it was"
    );
    assert_eq!(story.tick(29), None);
    assert_eq!(story.tick(31), Some(Count));
}

#[test]
fn streams_that_break_off_again_and_again_count() {
    let mut story = Story::new(RULES);
    story.good(0);
    let mut cut = |second| story.fails(second, Outcome::StreamCut, Some(200));
    assert_eq!(cut(10).0, Later);
    assert_eq!(cut(15).0, Later);
    assert_eq!(cut(20), (Now, Some(Count), Down));
    assert_eq!(cut(25).0, Later);
    assert_eq!(cut(31), (Now, Some(Count), Down));
    // One alone: the next page shows the same process, or another one.
    for (start, decided) in [(50.0, Count), (60.0, Excuse)] {
        let mut story = Story::new(RULES);
        story.good(0);
        story.page(1, (Some(50.0), 900.0));
        let cut = story.fails(10, Outcome::StreamCut, Some(200));
        assert_eq!(cut, (Later, None, Serving));
        assert_eq!(story.good(11), (Later, None, Serving));
        assert_eq!(story.page(12, (Some(start), 900.0)).1, Some(decided));
    }
}

#[test]
fn what_is_no_absence_counts_at_once() {
    let mut story = Story::new(RULES);
    story.good(0);
    for (second, outcome, status) in [
        (1, Outcome::HttpStatus, Some(500)),
        (2, Outcome::TimeoutFirstToken, None),
    ] {
        assert_eq!(story.fails(second, outcome, status), (Now, None, Serving));
    }
    let third = story.fails(3, Outcome::TimeoutTotal, None);
    assert_eq!(third, (Now, None, Down));
    let held_back = story.fails(4, Outcome::Refused, None);
    assert_eq!(
        held_back,
        (Now, None, Down),
        "it says nothing of the target"
    );
    assert_eq!(story.good(5), (Now, None, Serving));
}

#[test]
fn a_process_that_began_anew_unseen_is_warmed() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    // Two replicas behind one address.
    assert_eq!(story.page(6, (Some(40.0), 7.0)), (false, None));
    assert_eq!(story.page(11, (Some(50.0), 907.0)), (false, None));
    assert_eq!(story.good(12), (Now, None, Serving));
    assert_eq!(story.page(16, (Some(90.0), 907.0)), (true, None));
    assert_eq!(story.good(17), (Never, None, Warming));
    // A failure of the warm-up belongs to it too.
    let silent = story.fails(18, Outcome::TimeoutFirstToken, None);
    assert_eq!(silent, (Never, None, Warming));
    assert_eq!(story.good(19), (Now, None, Serving));
}

#[test]
fn a_start_that_was_recognised_is_not_warmed_twice() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    story.loading(10);
    assert_eq!(story.good(60).0, Never);
    // Only now is the page read again.
    assert_eq!(story.page(61, (Some(55.0), 1.0)), (true, None));
    assert_eq!(story.good(62).0, Never);
    assert_eq!(story.good(63), (Now, None, Serving));
    // The next start is another one.
    assert_eq!(story.page(70, (Some(69.0), 1.0)), (true, None));
    assert_eq!(story.good(71).0, Never);
}

#[test]
fn a_word_that_is_said_again_and_again_is_not_believed() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    assert_eq!(story.loading(10).0, Never);
    assert_eq!(story.good(11), (Never, Some(Excuse), Warming));
    assert_eq!(story.good(12).0, Never);
    // One of two replicas loads and loads.
    assert_eq!(story.loading(13).0, Later);
    assert_eq!(story.good(14).0, Later);
    assert_eq!(story.page(15, (Some(50.0), 910.0)).1, Some(Count));
    assert_eq!(story.loading(16).0, Later);
}

#[test]
fn answers_to_what_was_sent_before_it_went_are_no_return() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    assert_eq!(story.refused(10).0, Later);
    // A stream that began before, and is drained.
    let drained = ok(&stream(0), 8_000, &[5, 4_000]).record;
    assert_eq!(story.record(&drained).0, Now);
    assert_eq!(story.refused(30).0, Later);
    assert_eq!(story.page(40, (Some(85.0), 0.0)), (true, Some(Excuse)));
    assert_eq!(story.good(41), (Never, Some(Excuse), Warming));
}

#[test]
fn arrivals_that_find_no_place_beside_requests_to_an_absent_server_are_held() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    let full = |second: u64| refused(&stream(0), second * 1_000, RefusedReason::InFlight).record;
    assert_eq!(story.record(&full(5)).0, Now);
    story.fails(10, Outcome::TimeoutConnect, None);
    assert_eq!(story.record(&full(11)).0, Later);
    let budget = refused(&stream(0), 12_000, RefusedReason::Budget).record;
    assert_eq!(story.record(&budget).0, Now);
    story.page(20, (Some(69.0), 0.0));
    assert_eq!(story.record(&full(21)).0, Never);
}

#[test]
fn what_was_under_way_while_the_process_changed_belongs_to_the_start() {
    let mut story = Story::new(RULES);
    story.good(0);
    story.page(1, (Some(50.0), 900.0));
    story.page(12, (Some(11.0 + 50.0), 0.0));
    // Sent at 11 s, answered by the gateway at 13 s.
    let mut late = failed(&stream(0), 11_000, Outcome::HttpStatus, Some(504)).record;
    late.timeline.end = Some(ms(13_000));
    assert_eq!(story.record(&late).0, Never);
    assert_eq!(story.fails(14, Outcome::HttpStatus, Some(504)).0, Later);
}

#[test]
fn counters_of_replicas_that_answer_in_turn_show_no_start() {
    let mut story = Story::new(RULES);
    story.good(0);
    for (second, tokens) in [
        (1, 5_000.0),
        (2, 50.0),
        (3, 5_010.0),
        (4, 60.0),
        (5, 5_020.0),
    ] {
        assert!(!story.page(second, (None, tokens)).0);
    }
    story.refused(10);
    assert_eq!(story.page(12, (None, 70.0)), (false, None));
    story.good(15);
    assert_eq!(story.page(16, (None, 5_030.0)), (false, Some(Count)));
}

#[test]
fn without_rules_all_counts() {
    let mut story = Story::new(StartRules::NONE);
    assert_eq!(story.refused(0), (Now, None, Starting));
    assert_eq!(story.loading(1).0, Now);
    assert_eq!(story.fails(2, Outcome::Dns, None), (Now, None, Gone));
    story.good(3);
    assert_eq!(story.page(4, (Some(50.0), 1.0)), (false, None));
    assert_eq!(story.page(5, (Some(90.0), 1.0)), (true, None));
    assert_eq!(story.good(6), (Now, None, Serving));
}
