//! Tests of windows: when they close, what a late record does, and that memory stays flat.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::fixture::{RULES, failed, ms, ok, refused, stream};
use super::{KEPT, Quantile, Windows};
use crate::clock::MonoTime;
use crate::measurement::{Outcome, RefusedReason};

const TEN: Duration = Duration::from_secs(10);

fn windows() -> Windows {
    Windows::new(TEN, RULES.total, RULES.slo)
}

/// Starts of the closed windows in seconds, and how many records each holds.
fn closed(windows: &Windows) -> Vec<(u64, u64)> {
    windows
        .closed()
        .map(|window| (window.start().as_nanos() / 1_000_000_000, window.records()))
        .collect()
}

#[test]
fn a_record_belongs_to_the_window_of_its_intended_time() {
    let stream = stream(0);
    let mut windows = windows();
    // Ends in the second window, due in the first.
    windows.observe(&ok(&stream, 9_999, &[5_000]));
    windows.observe(&ok(&stream, 10_000, &[100]));
    windows.settle(ms(20_000), ms(20_000));
    assert_eq!(closed(&windows), [(0, 1), (10, 1)]);
}

#[test]
fn a_window_closes_when_all_its_arrivals_have_ended() {
    let stream = stream(0);
    let mut windows = windows();
    windows.observe(&ok(&stream, 1_000, &[100]));
    windows.observe(&ok(&stream, 11_000, &[100]));
    windows.settle(ms(9_999), ms(15_000));
    assert_eq!(closed(&windows), []);
    windows.settle(ms(10_000), ms(15_000));
    assert_eq!(closed(&windows), [(0, 1)]);
    assert_eq!(windows.open(), 1);
}

#[test]
fn a_window_closes_at_the_latest_two_limits_and_five_seconds_after_its_end() {
    let stream = stream(0);
    let mut windows = windows();
    windows.observe(&ok(&stream, 1_000, &[100]));
    windows.settle(MonoTime::ZERO, ms(134_999));
    assert_eq!(windows.open(), 1);
    windows.settle(MonoTime::ZERO, ms(135_000));
    assert_eq!(windows.open(), 0);
    assert_eq!(closed(&windows), [(0, 1)]);
}

#[test]
fn a_late_record_marks_its_window_incomplete_and_is_not_added() {
    let stream = stream(0);
    let mut windows = windows();
    windows.observe(&ok(&stream, 1_000, &[100]));
    windows.settle(ms(30_000), ms(30_000));
    windows.observe(&ok(&stream, 2_000, &[100]));
    windows.observe(&ok(&stream, 3_000, &[100]));
    assert_eq!(closed(&windows), [(0, 1)]);
    assert!(windows.closed().all(super::Window::is_incomplete));
    assert_eq!((windows.late(), windows.incomplete()), (2, 1));
    // The second window was closed without any record: the late one is all it ever had.
    windows.observe(&ok(&stream, 12_000, &[100]));
    assert_eq!(closed(&windows), [(0, 1), (10, 0)]);
    assert_eq!((windows.late(), windows.incomplete()), (3, 2));
}

#[test]
fn the_ring_is_bounded_and_uses_its_storage_again() {
    let stream = stream(0);
    let mut windows = windows();
    let mut bytes = 0;
    for round in 0..500_u64 {
        for step in 0..4 {
            let due = round * 10_000 + step * 1_000;
            windows.observe(&ok(&stream, due, &[100 + 10 * step, 200]));
        }
        let until = ms((round + 1) * 10_000);
        windows.settle(until, until);
        assert!(windows.closed().count() <= KEPT);
        assert_eq!(windows.open(), 0);
        if round == 100 {
            bytes = heap_bytes(&windows);
        }
    }
    assert_eq!(windows.closed().count(), KEPT);
    assert_eq!(heap_bytes(&windows), bytes);
    let newest = windows.closed().next_back().expect("the ring is full");
    assert_eq!(newest.start(), ms(4_990_000));
    assert_eq!(newest.records(), 4);
}

fn heap_bytes(windows: &Windows) -> usize {
    windows
        .closed()
        .map(|window| {
            window.ttft().heap_bytes()
                + window.itl().heap_bytes()
                + window.response_time_or_failure().heap_bytes()
        })
        .sum()
}

#[test]
fn open_windows_are_bounded_even_if_nothing_settles() {
    let stream = stream(0);
    let mut windows = windows();
    for round in 0..1_000 {
        windows.observe(&ok(&stream, round * 10_000, &[100]));
    }
    assert_eq!(windows.open(), 256);
    assert_eq!(windows.closed().count(), KEPT);
}

#[test]
fn recent_windows_are_merged_before_a_quantile_is_taken() {
    let stream = stream(0);
    let mut windows = windows();
    // The oldest is outside of the last minute.
    windows.observe(&ok(&stream, 5_000, &[9_000]));
    for step in 1..=6 {
        windows.observe(&ok(&stream, step * 10_000, &[100 * step]));
    }
    windows.observe(&failed(&stream, 65_000, Outcome::StreamCut, Some(200)));
    windows.observe(&refused(&stream, 66_000, RefusedReason::Budget));
    windows.settle(ms(70_000), ms(70_000));
    let recent = windows.recent(Duration::from_mins(1));
    assert_eq!(recent.records(), 8);
    assert_eq!(recent.counted(), 7);
    let share = recent.failure_share().expect("seven count");
    assert!((share - 1.0 / 7.0).abs() < 1e-12);
    let Some(Quantile::Value(p50)) = recent.ttft().quantile(0.5) else {
        panic!("six values");
    };
    assert!((p50 / 0.3 - 1.0).abs() < 0.011, "p50 is {p50}");
    assert_eq!(
        recent.response_time_or_failure().quantile(1.0),
        Some(Quantile::Never)
    );
    assert_eq!(recent.ttft().stated(0.95), None, "a p95 needs 20 values");
}

#[test]
fn a_window_without_counted_records_has_no_failure_share() {
    let stream = stream(0);
    let mut windows = windows();
    windows.observe(&refused(
        &Arc::clone(&stream),
        1_000,
        RefusedReason::Shutdown,
    ));
    windows.settle(ms(10_000), ms(10_000));
    assert_eq!(windows.recent(TEN).failure_share(), None);
}

proptest! {
    #[test]
    fn every_record_is_in_one_window_or_counted_as_late(
        steps in prop::collection::vec((0_u64..300, prop::bool::weighted(0.1)), 1..200),
    ) {
        let stream = stream(0);
        let mut windows = windows();
        let mut settled = 0;
        for (second, settle) in &steps {
            windows.observe(&ok(&stream, second * 1_000, &[100]));
            if *settle {
                settled = settled.max(*second);
                windows.settle(ms(settled * 1_000), ms(settled * 1_000));
            }
        }
        windows.settle(ms(400_000), ms(400_000));
        prop_assert_eq!(windows.open(), 0);
        let found = closed(&windows);
        let held: u64 = found.iter().map(|(_, records)| records).sum();
        prop_assert_eq!(usize::try_from(held + windows.late()), Ok(steps.len()));
        prop_assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{:?}", found);
        let marked = windows.closed().filter(|window| window.is_incomplete()).count();
        prop_assert_eq!(u64::try_from(marked), Ok(windows.incomplete()));
    }
}

#[test]
fn a_record_of_which_it_was_not_known_that_it_counts_is_added_to_what_has_closed() {
    let stream = stream(0);
    let mut windows = windows();
    windows.observe(&ok(&stream, 1_000, &[100]));
    windows.settle(ms(60_000), ms(60_000));
    // One window has a record, the next ones have none, the last is open.
    for due in [2_000, 31_000, 61_000] {
        windows.observe_late(&failed(&stream, due, Outcome::Connect, None));
    }
    assert_eq!(closed(&windows), [(0, 2), (30, 1)]);
    assert_eq!(windows.open(), 1);
    assert!(windows.closed().all(super::Window::is_incomplete));
    assert_eq!(windows.recent(Duration::from_mins(1)).failures(), 2);
}
