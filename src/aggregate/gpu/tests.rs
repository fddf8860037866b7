//! Readings at known instants against what they say in between.

use super::*;
use crate::measurement::{Gpu, GpuField};

fn s(seconds: u64) -> MonoTime {
    MonoTime::from_nanos(seconds * 1_000_000_000)
}

fn history() -> GpuHistory {
    GpuHistory::new(GpuRules {
        capacity: 100,
        max_age: Duration::from_secs(30),
    })
}

/// One reading of one GPU.
fn sample(at: u64, values: &[(GpuField, f64)]) -> GpuSample {
    let mut gpu = Gpu::named("0");
    for (field, value) in values {
        gpu.fields.set(*field, Some(*value));
    }
    GpuSample {
        target_index: 0,
        at: s(at),
        gpus: [gpu].into(),
    }
}

fn busy(at: u64, share: f64) -> GpuSample {
    sample(at, &[(GpuField::Utilization, share)])
}

#[test]
fn the_last_reading_at_or_before_the_instant_counts() {
    let mut history = history();
    history.push(busy(10, 0.1));
    history.push(busy(20, 0.2));
    let at = |instant| {
        let found = history.at(s(instant))?;
        Some((found.state.utilization?, found.age_ms))
    };
    assert_eq!(at(9), None);
    assert_eq!(at(10), Some((0.1, 0.0)));
    assert_eq!(at(19), Some((0.1, 9_000.0)));
    assert_eq!(at(50), Some((0.2, 30_000.0)));
    assert_eq!(at(51), None, "too old");
}

#[test]
fn it_is_bounded_and_ordered() {
    let mut history = GpuHistory::new(GpuRules {
        capacity: 2,
        max_age: Duration::from_secs(30),
    });
    for (at, share) in [(10, 0.1), (20, 0.2), (30, 0.3), (25, 0.9)] {
        history.push(busy(at, share));
    }
    assert_eq!(history.disordered(), 1);
    assert!(history.at(s(15)).is_none(), "no longer kept");
    assert_eq!(history.newest().map(|newest| newest.at), Some(s(30)));
}

#[test]
fn means_are_weighted_by_time_and_end_with_a_readings_age() {
    let mut history = history();
    history.push(busy(0, 0.0));
    history.push(busy(10, 1.0));
    history.push(busy(20, 0.5));
    // 5 s at 0, 10 s at 1, 5 s at 0.5.
    let window = history.window(s(5), s(25));
    assert_eq!(window.readings, 3);
    assert!((window.covered_s - 20.0).abs() < 1e-9);
    let mean = window.utilization.expect("it was known");
    assert!((mean - 12.5 / 20.0).abs() < 1e-9, "{mean}");
    // From 20 on it holds for 30 s only.
    let late = history.window(s(40), s(100));
    assert!((late.covered_s - 10.0).abs() < 1e-9);
    assert_eq!(history.window(s(60), s(100)), GpuWindow::default());
}

#[test]
fn clocks_and_throttling_over_a_window() {
    let mut history = history();
    let reading = |at, clock, reasons| {
        sample(
            at,
            &[
                (GpuField::SmClock, clock),
                (GpuField::ClockReasons, reasons),
            ],
        )
    };
    history.push(reading(0, 2e9, 1.0));
    history.push(reading(10, 1e9, 64.0));
    let window = history.window(s(0), s(40));
    assert_eq!(window.sm_clock_min_hz, Some(1e9));
    assert_eq!(window.throttled, Some(0.75));
}

#[test]
fn an_error_is_new_once() {
    let mut history = history();
    for (at, xid) in [(0, 31.0), (10, 31.0), (20, 79.0), (30, 79.0)] {
        history.push(sample(at, &[(GpuField::Xid, xid)]));
    }
    assert_eq!(history.window(s(0), s(15)).new_xid, None, "it was there");
    assert_eq!(history.window(s(15), s(25)).new_xid, Some(79));
    assert_eq!(history.window(s(21), s(40)).new_xid, None);
}

#[test]
fn energy_is_that_between_readings_and_a_reset_takes_its_time_out() {
    let mut history = history();
    for (at, joules) in [(0, 1_000.0), (10, 4_000.0), (20, 100.0), (30, 1_100.0)] {
        history.push(sample(at, &[(GpuField::Energy, joules)]));
    }
    assert_eq!(history.energy_j(), Some(4_000.0));
    let window = history.window(s(0), s(40));
    assert_eq!(window.energy, Some((4_000.0, 20.0)));
    assert_eq!(window.energy_per_token(8_000.0), Some(0.5));
    assert_eq!(window.energy_per_token(0.0), None);
    assert_eq!(window.energy_per_request(40.0), Some(100.0));
    assert_eq!(
        history.window(s(5), s(15)).energy,
        None,
        "one reading is no span"
    );
}
