//! Tests of the histogram that need random data or an independent decoder.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, LogNormal};

use super::grid::{self, ClassicRange};
use super::{Histogram, Native, Quantile};

/// Reads spans and deltas as their specification says: (index, count) of every bucket with
/// values.
fn decode(native: &Native) -> Vec<(i32, i64)> {
    let mut found = Vec::new();
    let (mut index, mut count, mut deltas) = (0, 0, native.deltas.iter());
    for (offset, length) in &native.spans {
        index += offset;
        for _ in 0..*length {
            count += deltas.next().expect("as many deltas as the spans are long");
            if count != 0 {
                found.push((index, count));
            }
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    found
}

fn filled(values: &[f64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

#[test]
fn quantiles_follow_the_sorted_values_of_log_normal_data() {
    for (median, sigma, seed) in [(0.18_f64, 0.35, 1), (1.25, 0.9, 2), (0.009, 0.05, 3)] {
        let spread = LogNormal::new(median.ln(), sigma).expect("a positive sigma");
        let mut random = StdRng::seed_from_u64(seed);
        let mut values: Vec<f64> = (0..20_000).map(|_| spread.sample(&mut random)).collect();
        let histogram = filled(&values);
        values.sort_by(f64::total_cmp);
        for (q, rank) in [
            (0.01, 200),
            (0.5, 10_000),
            (0.9, 18_000),
            (0.95, 19_000),
            (0.99, 19_800),
        ] {
            let Some(Quantile::Value(found)) = histogram.quantile(q) else {
                panic!("no quantile {q}");
            };
            let error = (found / values[rank - 1] - 1.0).abs();
            assert!(error < 0.011, "q {q} of median {median}: off by {error}");
        }
    }
}

#[test]
fn one_value_is_found_within_half_a_bucket() {
    let mut value = 2e-6;
    while value < 1e6 {
        let Some(Quantile::Value(found)) = filled(&[value]).quantile(0.5) else {
            panic!("no quantile of {value}");
        };
        assert!(
            (found / value - 1.0).abs() < 0.011,
            "{value} shown as {found}"
        );
        value *= 1.003;
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut histogram = filled(&[0.0, 1e-9, grid::ZERO_THRESHOLD, 2e6, f64::MAX]);
    for bad in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        histogram.record(bad);
    }
    assert_eq!(histogram.underflow(), 2, "a true zero is not too small");
    assert_eq!(histogram.overflow(), 2);
    assert_eq!(histogram.refused(), 3);
    assert_eq!(histogram.count(), 5);
    assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(639, 2)]);
    assert_eq!(histogram.quantile(0.5), Some(Quantile::Value(0.0)));
}

#[test]
fn infinity_is_counted_and_never_summed() {
    let mut histogram = filled(&[1.0, 2.0, f64::INFINITY]);
    histogram.record_infinite();
    assert_eq!(histogram.count(), 4);
    assert!((histogram.sum() - 3.0).abs() < 1e-12);
    assert_eq!(histogram.quantile(0.75), Some(Quantile::Never));
    let range = ClassicRange::new(-2, 4);
    assert_eq!(
        histogram.classic(range).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2, 2]
    );
    assert_eq!(decode(&histogram.native()), [(0, 1), (32, 1), (640, 2)]);
}

#[test]
fn a_tail_is_stated_only_with_values_enough() {
    let mut histogram = Histogram::new();
    for n in 1..=20_u64 {
        assert_eq!(histogram.stated(0.95), None, "with {} values", n - 1);
        histogram.record(0.1);
    }
    assert!(matches!(histogram.stated(0.95), Some(Quantile::Value(_))));
}

#[test]
fn short_gaps_are_filled_and_long_ones_open_a_span() {
    let mut histogram = Histogram::new();
    for (index, count) in [(-3_i16, 2), (-2, 5), (1, 1), (5, 4)] {
        for _ in 0..count {
            histogram.record(grid::upper_bound(index));
        }
    }
    let native = histogram.native();
    assert_eq!(native.spans, [(-3, 5), (3, 1)]);
    assert_eq!(native.deltas, [2, 3, -5, 0, 1, 3]);
}

#[test]
fn clearing_keeps_the_storage_and_nothing_else() {
    let mut histogram = filled(&[0.1, 0.2, 5e-7, f64::INFINITY, f64::NAN]);
    let bytes = histogram.heap_bytes();
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
    assert_eq!(histogram.heap_bytes(), bytes);
}

#[test]
fn memory_is_bounded_by_the_grid() {
    let mut histogram = Histogram::new();
    for index in -700..700 {
        histogram.record(grid::upper_bound(index));
    }
    assert_eq!(histogram.buckets().count(), 1_279);
    assert!(
        histogram.heap_bytes() <= 2_560 * 10,
        "{}",
        histogram.heap_bytes()
    );
}

proptest! {
    #[test]
    fn merging_parts_equals_recording_all(
        left in prop::collection::vec(0.0_f64..2e6, 0..200),
        right in prop::collection::vec(0.0_f64..0.5, 0..200),
    ) {
        let mut merged = filled(&left);
        merged.merge(&filled(&right));
        let whole = filled(&[left, right].concat());
        prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), whole.buckets().collect::<Vec<_>>());
        prop_assert_eq!(merged.count(), whole.count());
        prop_assert_eq!(merged.underflow(), whole.underflow());
        prop_assert_eq!(merged.overflow(), whole.overflow());
        prop_assert!((merged.sum() - whole.sum()).abs() <= 1e-9 * whole.sum());
    }

    #[test]
    fn native_spans_decode_back_to_the_counts(
        values in prop::collection::vec(0.0_f64..10.0, 0..300),
        never in 0_u8..3,
    ) {
        let mut histogram = filled(&values);
        for _ in 0..never {
            histogram.record_infinite();
        }
        let native = histogram.native();
        let mut wanted: Vec<(i32, i64)> = histogram
            .buckets()
            .map(|(index, count)| (i32::from(index), i64::try_from(count).expect("small")))
            .collect();
        if never > 0 {
            wanted.push((640, i64::from(never)));
        }
        prop_assert_eq!(decode(&native), wanted);
        prop_assert_eq!(native.zero_count, histogram.underflow());
    }

    #[test]
    fn classic_counts_are_the_values_up_to_each_bound(
        values in prop::collection::vec(0.0_f64..200.0, 0..200),
    ) {
        let range = ClassicRange::new(-16, 13);
        let found: Vec<u64> = filled(&values).classic(range).collect();
        let wanted: Vec<u64> = range
            .bounds()
            .map(|bound| values.iter().filter(|value| **value <= bound).map(|_| 1).sum())
            .collect();
        prop_assert_eq!(found, wanted);
    }
}
