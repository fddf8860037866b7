//! Tests of totals and of the live state around them.

use std::sync::Arc;
use std::time::Duration;

use super::fixture::{RULES, failed, ms, ok, refused, stream};
use super::{ExactBounds, LAST_REQUESTS, Live, Measure, Quantile, Totals};
use crate::measurement::{Observed, Outcome, RefusedReason, Sample, ServerState};

fn totals(records: &[Observed]) -> Totals {
    let mut totals = Totals::new(RULES.slo, ExactBounds::of([].iter()));
    for observed in records {
        totals.observe(observed, RULES.stall, None);
    }
    totals
}

fn counts(totals: &Totals, measures: &[Measure]) -> Vec<u64> {
    measures
        .iter()
        .map(|measure| totals.histogram(*measure).count())
        .collect()
}

#[test]
fn latencies_come_from_ok_records_only() {
    let stream = stream(0);
    let mut cut = ok(&stream, 0, &[100, 200]);
    cut.record.outcome = Outcome::StreamCut;
    let found = totals(&[ok(&stream, 0, &[100, 200, 300]), cut]);
    let latencies = [
        Measure::Ttft,
        Measure::Ttfo,
        Measure::Itl,
        Measure::ServiceTime,
        Measure::ResponseTtft,
        Measure::ResponseTime,
        Measure::OutputRate,
    ];
    assert_eq!(counts(&found, &latencies), [1; 7]);
    let gaps = found.histogram(Measure::ChunkGap);
    assert_eq!(gaps.count(), 2);
    assert!((gaps.sum() - 0.2).abs() < 1e-12);
    assert_eq!(
        counts(&found, &[Measure::ScheduleLag, Measure::SlotWait]),
        [2, 2]
    );
    assert_eq!(
        counts(&found, &[Measure::ReadLag, Measure::ConnectTime]),
        [0, 0]
    );
    assert!((found.histogram(Measure::ResponseTime).sum() - 0.301).abs() < 1e-12);
}

#[test]
fn failures_are_infinite_where_they_count_and_nowhere_else() {
    let stream = stream(0);
    let mut cancelled = ok(&stream, 0, &[100, 200]);
    cancelled.record.outcome = Outcome::Cancelled;
    let found = totals(&[
        ok(&stream, 0, &[100]),
        failed(&stream, 1, Outcome::TimeoutGap, Some(200)),
        refused(&stream, 2, RefusedReason::InFlight),
        refused(&stream, 3, RefusedReason::Budget),
        refused(&stream, 4, RefusedReason::Shutdown),
        cancelled,
    ]);
    for measure in [Measure::TtftOrFailure, Measure::ResponseTimeOrFailure] {
        let histogram = found.histogram(measure);
        assert_eq!(
            (histogram.count(), histogram.infinite()),
            (3, 2),
            "{measure:?}"
        );
        assert_eq!(histogram.quantile(1.0), Some(Quantile::Never));
    }
    assert_eq!(
        counts(&found, &[Measure::SlotWait, Measure::ScheduleLag]),
        [2, 2],
        "a refused or cancelled one waited for nobody"
    );
    assert_eq!(found.arrivals(), 6);
    assert_eq!(found.by_outcome(Outcome::Refused), 3);
    assert_eq!(
        RefusedReason::ALL.map(|reason| found.refused(reason)),
        [1, 1, 1, 0, 0]
    );
}

#[test]
fn outcomes_add_up_to_arrivals_whatever_the_statuses() {
    let stream = stream(0);
    let records: Vec<Observed> = (100..300)
        .map(|code| failed(&stream, 0, Outcome::HttpStatus, Some(code)))
        .collect();
    let found = totals(&records);
    assert_eq!(
        found.requests().map(|(_, _, count)| count).sum::<u64>(),
        200
    );
    assert_eq!(found.by_outcome(Outcome::HttpStatus), 200);
    assert_eq!(
        found.requests().count(),
        73,
        "64 with a status, 7 of which are other outcomes; 8 without; one for the rest"
    );
    assert_eq!(found.statuses_dropped(), 143);
}

#[test]
fn stalls_and_tokens_are_counted() {
    let stream = stream(0);
    let stalled = ok(&stream, 0, &[100, 110, 120, 400, 410]);
    let mut late = ok(&stream, 0, &[100]);
    late.record.timeline.start = Some(ms(200));
    let found = totals(&[stalled, late]);
    assert_eq!(found.stalls(), 1);
    assert_eq!((found.input_tokens(), found.output_tokens()), (40, 6));
    assert_eq!(found.lagged(), 1);
}

#[test]
fn live_keeps_the_last_requests_and_counts_strays() {
    let known = stream(0);
    let mut live = Live::new(vec![(Arc::clone(&known), RULES)], 1);
    for due in 0..300 {
        live.observe(Arc::new(ok(&known, due, &[100])), None);
    }
    live.observe(Arc::new(ok(&stream(7), 0, &[100])), None);
    live.sample(Sample {
        target_index: 3,
        asked: ms(1),
        at: ms(1),
        state: ServerState::default(),
        page: Arc::default(),
    });
    assert_eq!(live.strays(), 2);
    assert_eq!(live.last_requests().count(), LAST_REQUESTS);
    let newest = live.last_requests().next().expect("there are 200");
    assert_eq!(newest.record.timeline.intended, ms(299));
    assert_eq!(live.streams()[0].totals().arrivals(), 300);
}

#[test]
fn recent_numbers_use_the_windows_that_reach_back_far_enough() {
    let known = stream(0);
    let mut live = Live::new(vec![(Arc::clone(&known), RULES)], 1);
    for minute in 0..60 {
        live.observe(Arc::new(ok(&known, minute * 60_000, &[100])), None);
    }
    live.settle(ms(3_600_000), ms(3_600_000));
    let stream = &live.streams()[0];
    assert_eq!(stream.recent(Duration::from_mins(5)).records(), 5);
    assert_eq!(stream.recent(Duration::from_mins(30)).records(), 30);
}

#[test]
fn lists_are_in_the_order_of_declaration() {
    for (position, measure) in Measure::ALL.into_iter().enumerate() {
        assert_eq!(measure as usize, position, "{measure:?}");
    }
    for (position, outcome) in Outcome::ALL.into_iter().enumerate() {
        assert_eq!(outcome as usize, position, "{outcome:?}");
    }
}

#[test]
fn a_unary_stream_has_no_infinite_first_tokens() {
    let mut unary = failed(&stream(0), 0, Outcome::HttpStatus, Some(500));
    let asked = Arc::get_mut(&mut unary.record.stream).expect("nobody else holds it");
    asked.streaming = false;
    let found = totals(&[unary]);
    let measures = [Measure::TtftOrFailure, Measure::ResponseTimeOrFailure];
    assert_eq!(counts(&found, &measures), [0, 1]);
}

#[test]
fn row_49_counts_grow_over_all_requests() {
    let known = stream(0);
    let mut live = Live::new(vec![(Arc::clone(&known), RULES)], 1);
    for due in 1..=50 {
        live.observe(Arc::new(ok(&known, due, &[100])), None);
        let totals = live.streams()[0].totals();
        let ttft = totals.histogram(Measure::Ttft);
        assert_eq!(ttft.count(), due, "one more with each request");
    }
}

#[test]
fn of_several_addresses_the_requests_to_the_first_are_compared_with_its_page() {
    let first = stream(0);
    let mut second = Arc::into_inner(stream(1)).expect("it is ours alone");
    second.endpoint = "http://other:1".into();
    let second = Arc::new(second);
    let rules = [&first, &second].map(|stream| (Arc::clone(stream), RULES));
    let mut live = Live::new(rules.into(), 1);
    for at in [0, 5_000] {
        live.sample(Sample {
            target_index: 0,
            asked: ms(at),
            at: ms(at),
            state: ServerState::default(),
            page: Arc::default(),
        });
    }
    for due in [1_000, 2_000] {
        live.observe(Arc::new(ok(&first, due, &[100])), None);
        live.observe(Arc::new(ok(&second, due, &[100])), None);
    }
    live.observe(Arc::new(ok(&second, 3_000, &[100])), None);
    let window = live.server(0, (ms(0), ms(5_000))).expect("a target");
    assert_eq!(window.own.ok, 2);
}
