//! Windows of pages that are made up, with values worked out by hand.

mod rows;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::aggregate::fixture::{failed, ms, ok, stream};
use crate::clock::MonoTime;
use crate::measurement::server::{
    CounterRole, Engine, GaugeRole, HistogramRole, ServerHistogram, ServerPage, ServerTotals,
};
use crate::measurement::{Outcome, Sample, ServerState, Stream};

/// A page read at `at` milliseconds, asked for 2 ms before.
fn page(at: u64, set: impl FnOnce(&mut ServerState, &mut ServerTotals)) -> Sample {
    let mut state = ServerState::default();
    let mut totals = ServerTotals::default();
    set(&mut state, &mut totals);
    Sample {
        target_index: 0,
        asked: ms(at.saturating_sub(2)),
        at: ms(at),
        state,
        page: Arc::new(ServerPage {
            engine: Some(Engine::Vllm),
            totals,
            ..ServerPage::default()
        }),
    }
}

fn history(pages: impl IntoIterator<Item = Sample>) -> ServerHistory {
    let mut history = ServerHistory::new(Duration::from_secs(1));
    for page in pages {
        history.push(page);
    }
    history
}

fn counted(role: CounterRole, readings: &[(u64, f64)]) -> ServerHistory {
    history(
        readings
            .iter()
            .map(|(at, value)| page(*at, |_, totals| totals.set_counter(role, Some(*value)))),
    )
}

fn running(readings: &[(u64, f64)]) -> ServerHistory {
    history(
        readings
            .iter()
            .map(|(at, value)| page(*at, |state, _| state.running = Some(*value))),
    )
}

const TTFT: [f64; 3] = [0.1, 0.5, 1.0];

fn ttft(at: u64, below: [f64; 3], (count, sum): (f64, f64)) -> Sample {
    page(at, |_, totals| {
        let histogram = ServerHistogram {
            bounds: TTFT.into(),
            below: below.into(),
            count,
            sum,
        };
        totals.set_histogram(HistogramRole::Ttft, Some(histogram));
    })
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn a_gauge_is_weighted_by_the_time_for_which_it_held() {
    // 1 from 0 s, 4 from 2 s, 2 from 3 s; the window is 1 s to 5 s.
    let history = running(&[(0, 1.0), (2_000, 4.0), (3_000, 2.0)]);
    let window = history.window(ms(1_000), ms(5_000));
    let gauge = window.gauge(GaugeRole::Running).expect("it was read");
    close(gauge.mean, (1.0 + 4.0 + 2.0 * 2.0) / 4.0);
    assert_eq!((gauge.min, gauge.max, gauge.last), (1.0, 4.0, 2.0));
    close(gauge.known, 1.0);
    assert_eq!(window.pages, 2);
    assert_eq!(window.age, Some(Duration::from_secs(2)));
    assert_eq!(window.gauge(GaugeRole::Waiting), None, "absent, never zero");
}

#[test]
fn a_gauge_is_unknown_once_it_is_three_intervals_old() {
    let window = running(&[(0, 8.0)]).window(ms(1_000), ms(6_000));
    let gauge = window.gauge(GaugeRole::Running).expect("it held for 2 s");
    close(gauge.mean, 8.0);
    close(gauge.known, 2.0 / 5.0);
    let later = running(&[(0, 8.0)]).window(ms(4_000), ms(6_000));
    assert_eq!(later.gauge(GaugeRole::Running), None);
    assert_eq!(later.age, Some(Duration::from_secs(6)));
}

#[test]
fn a_window_before_the_first_page_knows_nothing() {
    let window = running(&[(9_000, 8.0)]).window(ms(1_000), ms(6_000));
    assert_eq!(window, ServerWindow::unknown(ms(1_000), ms(6_000)));
}

#[test]
fn a_counter_grows_between_the_pages_around_the_window() {
    let role = CounterRole::GenerationTokens;
    let history = counted(
        role,
        &[(500, 100.0), (1_500, 160.0), (2_500, 200.0), (3_500, 900.0)],
    );
    let window = history.window(ms(1_000), ms(3_000));
    let grown = window.counter(role).expect("three pages have it");
    assert_eq!((grown.delta, grown.resets), (100.0, 0));
    close(grown.per_second(), 50.0);
    assert_eq!(window.counter(CounterRole::Preemptions), None);
    let alone = counted(role, &[(1_500, 160.0)]).window(ms(1_000), ms(3_000));
    assert_eq!(alone.counter(role), None, "one page says nothing of growth");
}

#[test]
fn a_counter_that_falls_once_began_anew() {
    let role = CounterRole::PromptTokens;
    let history = counted(
        role,
        &[(1_000, 500.0), (2_000, 560.0), (3_000, 40.0), (4_000, 90.0)],
    );
    let window = history.window(ms(1_000), ms(4_000));
    let grown = window.counter(role).expect("four pages have it");
    assert_eq!((grown.delta, grown.resets), (60.0 + 40.0 + 50.0, 1));
    assert_eq!(window.restarts, 1);
    assert!(!window.has(ServerMark::SawTooth));
}

#[test]
fn a_restart_is_seen_though_the_counter_is_already_past_its_old_value() {
    let at = |at, start, value| {
        page(at, |_, totals| {
            totals.process_start = Some(start);
            totals.set_counter(CounterRole::PromptTokens, Some(value));
        })
    };
    let history = history([at(1_000, 50.0, 10.0), at(2_000, 90.0, 30.0)]);
    let window = history.window(ms(1_000), ms(2_000));
    let grown = window
        .counter(CounterRole::PromptTokens)
        .expect("two pages");
    assert_eq!((grown.delta, grown.resets), (30.0, 1));
    assert_eq!(window.restarts, 1);
}

#[test]
fn quantiles_say_what_buckets_can_say() {
    let history = history([
        ttft(1_000, [10.0, 10.0, 10.0], (10.0, 0.5)),
        ttft(2_000, [14.0, 22.0, 24.0], (30.0, 20.5)),
    ]);
    let window = history.window(ms(1_000), ms(2_000));
    let taken = window.histogram(HistogramRole::Ttft).expect("two pages");
    assert_eq!((taken.count, taken.sum), (20.0, 20.0));
    close(taken.mean().expect("values"), 1.0);
    // Of 20 values, 4 are in the first bucket, 8 in the second, 2 in the third, 6 beyond.
    assert_eq!(taken.quantile(0.1), Some(BucketQuantile::Below(0.1)));
    let Some(BucketQuantile::Within {
        low,
        high,
        estimate,
    }) = taken.quantile(0.4)
    else {
        panic!("{:?}", taken.quantile(0.4));
    };
    assert_eq!((low, high), (0.1, 0.5));
    close(estimate, 0.1 + 0.4 * 4.0 / 8.0);
    assert_eq!(taken.quantile(0.9), Some(BucketQuantile::AtLeast(1.0)));
    assert_eq!(taken.quantile(1.5), None);
    assert_eq!(window.histogram(HistogramRole::Itl), None);
}

#[test]
fn a_histogram_without_values_has_no_quantile() {
    let same = |at| ttft(at, [1.0, 2.0, 3.0], (4.0, 2.0));
    let window = history([same(1_000), same(2_000)]).window(ms(1_000), ms(2_000));
    let taken = window.histogram(HistogramRole::Ttft).expect("two pages");
    assert_eq!((taken.mean(), taken.quantile(0.5)), (None, None));
}

#[test]
fn a_histogram_that_falls_counts_from_zero_and_other_buckets_begin_anew() {
    let window = history([
        ttft(1_000, [9.0, 9.0, 9.0], (9.0, 0.9)),
        ttft(2_000, [1.0, 2.0, 2.0], (2.0, 0.4)),
    ])
    .window(ms(1_000), ms(2_000));
    let taken = window.histogram(HistogramRole::Ttft).expect("two pages");
    assert_eq!((taken.count, &*taken.below), (2.0, &[1.0, 2.0, 2.0][..]));
    let other = page(3_000, |_, totals| {
        let histogram = ServerHistogram {
            bounds: [0.2].into(),
            below: [5.0].into(),
            count: 5.0,
            sum: 0.5,
        };
        totals.set_histogram(HistogramRole::Ttft, Some(histogram));
    });
    let changed = history([ttft(2_000, [1.0, 2.0, 2.0], (2.0, 0.4)), other]);
    let window = changed.window(ms(1_000), ms(3_000));
    assert_eq!(window.histogram(HistogramRole::Ttft), None);
}

#[test]
fn finished_requests_are_told_apart_by_reason() {
    let at = |at, stop, length| {
        page(at, |_, totals| {
            totals.finished = vec![("length".into(), length), ("stop".into(), stop)];
        })
    };
    let window = history([at(1_000, 5.0, 1.0), at(2_000, 9.0, 1.0)]).window(ms(1_000), ms(2_000));
    let deltas: Vec<(&str, f64)> = window
        .finished
        .iter()
        .map(|(reason, grown)| (&**reason, grown.delta))
        .collect();
    assert_eq!(deltas, [("length", 0.0), ("stop", 4.0)]);
}

/// `count` answered requests, 100 ms apart from `from`, each with its first token after `first`
/// milliseconds.
fn asked(history: &mut ServerHistory, (stream, first): (&Arc<Stream>, u64), from: u64, count: u64) {
    for n in 0..count {
        history.own(&ok(stream, from + 100 * n, &[first]).record);
    }
}

#[test]
fn what_arises_outside_is_our_mean_minus_the_servers() {
    // Ten requests of 50 ms here and 30 ms there, well between the pages.
    let mut history = history([
        ttft(1_000, [0.0; 3], (0.0, 0.0)),
        ttft(5_000, [10.0; 3], (10.0, 0.3)),
    ]);
    asked(&mut history, (&stream(0), 50), 2_000, 10);
    let outside = history
        .window(ms(1_000), ms(5_000))
        .outside
        .expect("both sides");
    close(outside.client_mean, 0.05);
    close(outside.server_mean, 0.03);
    close(outside.seconds, 0.02);
    close(outside.error, 0.0);
    assert_eq!((outside.own, outside.served), (10, 10.0));
}

#[test]
fn the_error_of_what_arises_outside_grows_with_the_requests_of_others() {
    let of = |served: f64, first: u64| {
        let mut history = history([
            ttft(1_000, [0.0; 3], (0.0, 0.0)),
            ttft(5_000, [served; 3], (served, served * 0.03)),
        ]);
        asked(&mut history, (&stream(0), 50), 2_000, 5);
        asked(&mut history, (&stream(0), first), 3_000, 5);
        history
            .window(ms(1_000), ms(5_000))
            .outside
            .expect("both sides")
    };
    close(of(10.0, 70).error, 0.0);
    let (few, many) = (of(20.0, 70).error, of(1_000.0, 70).error);
    assert!(0.0 < few && few < many, "{few} {many}");
    close(of(1_000.0, 50).error, 0.0);
}

#[test]
fn a_server_that_counted_fewer_than_ours_is_not_compared() {
    let mut history = history([
        ttft(1_000, [0.0; 3], (0.0, 0.0)),
        ttft(5_000, [4.0; 3], (4.0, 0.12)),
    ]);
    asked(&mut history, (&stream(0), 50), 2_000, 5);
    assert_eq!(history.window(ms(1_000), ms(5_000)).outside, None);
}

#[test]
fn a_request_at_the_edge_of_a_page_may_be_on_one_side_only() {
    let mut history = history([
        ttft(1_000, [0.0; 3], (0.0, 0.0)),
        ttft(5_000, [4.0; 3], (4.0, 0.12)),
    ]);
    asked(&mut history, (&stream(0), 50), 2_000, 3);
    // Its first token came while the page was read.
    history.own(&ok(&stream(0), 4_909, &[90]).record);
    let outside = history
        .window(ms(1_000), ms(5_000))
        .outside
        .expect("both sides");
    close(outside.client_mean, 0.06);
    close(outside.error, 0.03 / 4.0);
}

#[test]
fn the_history_is_bounded_and_ordered() {
    let mut history = ServerHistory::new(Duration::from_mins(1));
    for at in 0..100 {
        history.push(page(at * 1_000, |state, _| state.running = Some(1.0)));
    }
    history.push(page(3_000, |_, _| {}));
    assert_eq!(history.latest().map(|sample| sample.at), Some(ms(99_000)));
    let window = history.window(MonoTime::ZERO, ms(99_000));
    assert_eq!(window.pages, 16);
}
