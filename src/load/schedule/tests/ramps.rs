//! Ramps against their closed forms: of the rate, and of caps.

use super::*;
use crate::config::RampShape;

fn ramp(from: f64, seconds: u64, shape: RampShape) -> Ramp {
    Ramp {
        from,
        over: Duration::from_secs(seconds),
        shape,
    }
}

/// The k-th arrivals of a constant process whose rate is ramped to `rate`, in seconds.
fn ramped(ramp: Ramp, rate: f64, ks: &[usize]) -> Vec<f64> {
    let process = Arrivals::Constant { rate };
    let count = ks.iter().max().map_or(0, |most| *most as u64 + 1);
    let schedule = Schedule::new((&process, Some(ramp)), span(first(count)), seeded(0));
    let times = times(schedule);
    ks.iter()
        .map(|k| times[*k].since(MonoTime::ZERO).as_secs_f64())
        .collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 2e-9, "{found} is not {expected}");
    }
}

#[test]
fn a_linear_ramp_from_nothing_is_a_square_root() {
    // t²/2 arrivals are over at t ≤ 10 s: k at √(2k); 50 at 10 s, then 10/s.
    let ramp = ramp(0.0, 10, RampShape::Linear);
    close(
        &ramped(ramp, 10.0, &[0, 2, 8, 18, 50, 60]),
        &[0.0, 2.0, 4.0, 6.0, 10.0, 11.0],
    );
}

#[test]
fn a_linear_ramp_goes_down_too() {
    // 10·t − t²/2 until 8 s, where 48 are over and the rate is 2/s.
    let ramp = ramp(10.0, 8, RampShape::Linear);
    close(
        &ramped(ramp, 2.0, &[18, 32, 42, 48, 50]),
        &[2.0, 4.0, 6.0, 8.0, 9.0],
    );
}

#[test]
fn an_exponential_ramp_grows_by_a_factor() {
    // 1/s, 2/s, 4/s, 8/s, 16/s at 0, 3, 6, 9 and 12 s: (2^(t/3) − 1)·3/ln 2 arrivals are over.
    let ramp = ramp(1.0, 12, RampShape::Exponential);
    let found = ramped(ramp, 16.0, &[4, 12, 64, 65, 81]);
    // t = 3·log2(1 + k·ln 2 / 3), and from 12 s on 15·3/ln 2 = 64.921276840 + 16 per second.
    close(
        &found,
        &[
            2.832_767_823,
            5.746_664_490,
            11.942_033_752,
            12.004_920_197,
            13.004_920_197,
        ],
    );
}

#[test]
fn a_stepped_ramp_has_levels() {
    // 1/s, 2/s and 3/s for 4 s each, then 4/s.
    let ramp = ramp(1.0, 12, RampShape::Stepped { steps: 3 });
    close(
        &ramped(ramp, 4.0, &[1, 4, 6, 12, 15, 24, 28]),
        &[1.0, 4.0, 5.0, 8.0, 9.0, 12.0, 13.0],
    );
}

fn cap(from: f64, to: u32, shape: RampShape) -> (u32, Vec<(u128, u32)>) {
    let ramp = CapRamp::new(ramp(from, 12, shape), to);
    let steps = ramp.clone().map(|step| {
        (
            (step.after + Duration::from_micros(500)).as_millis(),
            step.cap,
        )
    });
    (ramp.first(), steps.collect())
}

#[test]
fn a_cap_follows_a_line() {
    let up = cap(1.0, 5, RampShape::Linear);
    assert_eq!(
        up,
        (1, vec![(3_000, 2), (6_000, 3), (9_000, 4), (12_000, 5)])
    );
    let down = cap(4.0, 1, RampShape::Linear);
    assert_eq!(down, (4, vec![(4_000, 3), (8_000, 2), (12_000, 1)]));
    assert_eq!(cap(3.0, 3, RampShape::Linear), (3, vec![]));
}

#[test]
fn a_cap_grows_by_a_factor() {
    // 1, 2, 4, 8 at 0, 4, 8 and 12 s; 3 at 4·log2(3) s and so on.
    let (first, steps) = cap(1.0, 8, RampShape::Exponential);
    assert_eq!(first, 1);
    let expected = [
        (4_000, 2),
        (6_340, 3),
        (8_000, 4),
        (9_288, 5),
        (10_340, 6),
        (11_229, 7),
        (12_000, 8),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn a_cap_goes_up_in_levels() {
    let up = cap(1.0, 10, RampShape::Stepped { steps: 3 });
    assert_eq!(up, (1, vec![(4_000, 4), (8_000, 7), (12_000, 10)]));
}
