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
        pods: Vec::new(),
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

/// What readings of the energy counter say of the minute from 60 s on: watts, and the span.
fn drawn(readings: &[(u64, f64)]) -> Option<(f64, PowerSource, u64, u64)> {
    let mut history = history();
    for (at, joules) in readings {
        history.push(sample(*at, &[(GpuField::Energy, *joules)]));
    }
    told(history.drawn((s(60), s(120))))
}

fn told(drawn: Option<Drawn>) -> Option<(f64, PowerSource, u64, u64)> {
    let drawn = drawn?;
    let seconds = |at: MonoTime| at.since(MonoTime::ZERO).as_secs();
    Some((
        drawn.watts,
        drawn.source,
        seconds(drawn.from),
        seconds(drawn.until),
    ))
}

#[test]
fn the_counter_counts_from_one_move_to_another() {
    use PowerSource::EnergyCounter;
    // 100 W, read every 10 s: the step that the span begins in is whole.
    let tens = 4..=12_u32;
    let read = |n: u32, joules| (u64::from(n) * 10, joules);
    let readings: Vec<_> = tens
        .clone()
        .map(|n| read(n, 1_000.0 * f64::from(n)))
        .collect();
    assert_eq!(drawn(&readings), Some((100.0, EnergyCounter, 60, 120)));
    let odd: Vec<_> = readings
        .iter()
        .map(|(at, joules)| (at - 5, *joules))
        .collect();
    assert_eq!(drawn(&odd), Some((100.0, EnergyCounter, 55, 115)));
    // Collected every 30 s only, at 47 s, 77 s and 107 s: not 6 kJ in 70 s.
    let collected = |n: u32| f64::from((n * 10 + 13) / 30) * 3_000.0;
    let seldom: Vec<_> = tens.map(|n| read(n, collected(n))).collect();
    assert_eq!(drawn(&seldom), Some((100.0, EnergyCounter, 50, 110)));
}

#[test]
fn a_counter_that_began_anew_takes_its_time_out() {
    let readings = [
        (60, 1_000.0),
        (70, 4_000.0),
        (80, 7_000.0),
        // Loaded anew.
        (90, 100.0),
        (100, 3_100.0),
        (110, 6_100.0),
    ];
    // The first reading may be as old as its collection.
    let expected = (300.0, PowerSource::EnergyCounter, 70, 110);
    assert_eq!(drawn(&readings), Some(expected));
}

#[test]
fn too_little_is_nothing() {
    assert_eq!(drawn(&[]), None);
    assert_eq!(drawn(&[(110, 1_000.0)]), None);
    assert_eq!(drawn(&[(100, 1.0), (110, 2.0), (120, 3.0)]), None, "10 s");
    let stands = [
        (60, 5.0),
        (70, 5.0),
        (80, 5.0),
        (90, 5.0),
        (100, 5.0),
        (110, 5.0),
    ];
    assert_eq!(drawn(&stands), None, "a counter that never moves");
    assert_eq!(
        drawn(&[(50, 1.0), (60, 2.0), (70, 3.0), (80, 4.0), (89, 5.0)]),
        None,
        "the newest reading is older than three intervals"
    );
}

#[test]
fn without_a_counter_power_is_taken() {
    let mut known = history();
    for (at, watts) in [(60, 100.0), (70, 400.0), (90, 100.0), (110, 100.0)] {
        known.push(sample(at, &[(GpuField::Power, watts)]));
    }
    // 10 s at 100 W, 20 s at 400 W, 30 s at 100 W.
    let found = told(known.drawn((s(60), s(120))));
    assert_eq!(found, Some((200.0, PowerSource::Power, 60, 120)));
    // The power of one of two is not that of both.
    let mut both = sample(120, &[(GpuField::Power, 100.0)]);
    both.gpus = [both.gpus[0].clone(), Gpu::named("1")].into();
    let mut partly = history();
    for at in [60, 75, 90, 105, 120] {
        partly.push(GpuSample {
            at: s(at),
            ..both.clone()
        });
    }
    assert_eq!(partly.drawn((s(60), s(120))), None);
}

#[test]
fn energy_that_is_counted_up_leaves_a_restart_out() {
    let mut history = history();
    for (at, joules) in [(0, 1_000.0), (10, 4_000.0), (20, 100.0), (30, 1_100.0)] {
        history.push(sample(at, &[(GpuField::Energy, joules)]));
    }
    assert_eq!(history.energy_j(), Some(4_000.0));
}
