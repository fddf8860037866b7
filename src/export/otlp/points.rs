//! Single values as data points of OTLP. Pure.

use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, HistogramDataPoint, NumberDataPoint,
};

use super::attributes::Labels;
use crate::aggregate::Histogram;
use crate::aggregate::grid::{self, ClassicRange};

/// The span of time that a value is of, nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A count.
pub(super) fn whole(count: u64, labels: Labels, span: Span) -> NumberDataPoint {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    point(Value::AsInt(count), labels, span)
}

/// Any other number.
pub(super) fn number(number: f64, labels: Labels, span: Span) -> NumberDataPoint {
    point(Value::AsDouble(number), labels, span)
}

fn point(value: Value, labels: Labels, span: Span) -> NumberDataPoint {
    NumberDataPoint {
        attributes: labels.into_attributes(),
        start_time_unix_nano: span.start,
        time_unix_nano: span.end,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

/// A histogram with our own buckets. OTLP counts buckets from one lower than Prometheus.
pub(super) fn exponential(
    histogram: &Histogram,
    labels: Labels,
    span: Span,
) -> ExponentialHistogramDataPoint {
    let (first, bucket_counts) = histogram.dense();
    let (min, max) = extremes(histogram);
    ExponentialHistogramDataPoint {
        attributes: labels.into_attributes(),
        start_time_unix_nano: span.start,
        time_unix_nano: span.end,
        count: histogram.count(),
        sum: Some(histogram.sum()),
        scale: grid::SCHEMA,
        zero_count: histogram.zeros(),
        positive: Some(Buckets {
            offset: i32::from(first) - 1,
            bucket_counts,
        }),
        min,
        max,
        zero_threshold: grid::ZERO_THRESHOLD,
        ..ExponentialHistogramDataPoint::default()
    }
}

/// A histogram with the bounds of `range`.
pub(super) fn explicit(
    (histogram, range): (&Histogram, ClassicRange),
    labels: Labels,
    span: Span,
) -> HistogramDataPoint {
    let mut below = 0;
    let mut bucket_counts = Vec::new();
    for up_to in histogram.classic(range) {
        bucket_counts.push(up_to - below);
        below = up_to;
    }
    bucket_counts.push(histogram.count() - below);
    let (min, max) = extremes(histogram);
    HistogramDataPoint {
        attributes: labels.into_attributes(),
        start_time_unix_nano: span.start,
        time_unix_nano: span.end,
        count: histogram.count(),
        sum: Some(histogram.sum()),
        bucket_counts,
        explicit_bounds: range.bounds().collect(),
        min,
        max,
        ..HistogramDataPoint::default()
    }
}

/// The smallest and the largest value. Where some are infinite the largest is not said.
fn extremes(histogram: &Histogram) -> (Option<f64>, Option<f64>) {
    let known = histogram.extremes();
    let min = known.map(|(least, _)| least);
    let max = known.map(|(_, most)| most);
    (min, max.filter(|_| histogram.infinite() == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { start: 1, end: 2 };

    fn histogram(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn an_exponential_point_has_our_buckets_one_lower() {
        // 1 is in bucket 0, 2 in 32, 1.5 in 19 (see the grid's own test).
        let histogram = histogram(&[1.0, 1.0, 2.0, 1.5, 0.0, 1e-7]);
        let point = exponential(&histogram, Labels::default(), SPAN);
        assert_eq!((point.count, point.zero_count, point.scale), (6, 2, 5));
        let buckets = point.positive.expect("there are some");
        assert_eq!(buckets.offset, -1);
        let mut wanted = vec![0; 33];
        wanted[0] = 2;
        wanted[19] = 1;
        wanted[32] = 1;
        assert_eq!(buckets.bucket_counts, wanted);
        assert_eq!(
            point.zero_count + buckets.bucket_counts.iter().sum::<u64>(),
            6
        );
        assert!((point.sum.expect("a sum") - 5.500_000_1).abs() < 1e-12);
        assert_eq!((point.min, point.max), (Some(0.0), Some(2.0)));
        assert!((point.zero_threshold - 2.0_f64.powi(-20)).abs() < 1e-18);
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
    }

    #[test]
    fn a_failure_is_counted_in_the_last_bucket_and_never_summed() {
        let mut histogram = histogram(&[0.5]);
        histogram.record_infinite();
        let point = exponential(&histogram, Labels::default(), SPAN);
        assert_eq!((point.count, point.sum), (2, Some(0.5)));
        let buckets = point.positive.expect("there are some");
        // 0.5 is in bucket -32; 2^20 bounds bucket 640.
        assert_eq!(buckets.offset, -33);
        assert_eq!(buckets.bucket_counts.len(), 673);
        assert_eq!(buckets.bucket_counts[672], 1);
        assert_eq!((point.min, point.max), (Some(0.5), None));
        let point = explicit(
            (&histogram, ClassicRange::new(-2, 0)),
            Labels::default(),
            SPAN,
        );
        assert_eq!(point.bucket_counts, [1, 0, 0, 1]);
    }

    #[test]
    fn an_empty_histogram_is_a_point_without_values() {
        let point = exponential(&Histogram::new(), Labels::default(), SPAN);
        assert_eq!((point.count, point.sum), (0, Some(0.0)));
        assert_eq!((point.min, point.max), (None, None));
        assert!(point.positive.expect("it is said").bucket_counts.is_empty());
    }

    #[test]
    fn explicit_buckets_are_counts_between_bounds() {
        let histogram = histogram(&[0.1, 0.5, 0.6, 1.0, 3.0, 50.0]);
        // Bounds 0.5, 0.707, 1, 1.414, 2.
        let range = ClassicRange::new(-2, 2);
        let point = explicit((&histogram, range), Labels::default(), SPAN);
        assert_eq!(point.bucket_counts, [2, 1, 1, 0, 0, 2]);
        assert_eq!(point.explicit_bounds.len(), 5);
        assert_eq!(point.count, 6);
        assert_eq!((point.min, point.max), (Some(0.1), Some(50.0)));
    }
}
