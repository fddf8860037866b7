//! Single values as data points of OTLP. Pure.

use opentelemetry_proto::tonic::metrics::v1::exemplar::Value as ExemplarValue;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, HistogramDataPoint, NumberDataPoint,
};

use super::attributes::Labels;
use crate::aggregate::{Exemplars, Histogram, grid};

/// Whose value it is, of which span of time (nanoseconds since the Unix epoch), and requests that
/// stand for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) labels: Labels,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) exemplars: Vec<Exemplar>,
}

impl Place {
    /// With the exemplars that came in its span of time. A failure has no finite value, which some
    /// receivers stumble over.
    pub(super) fn with(mut self, exemplars: &Exemplars) -> Self {
        self.exemplars = exemplars
            .iter()
            .filter(|one| one.value.is_finite() && one.span.unix_ns >= self.start)
            .map(|one| Exemplar {
                time_unix_nano: one.span.unix_ns,
                trace_id: one.span.ids.trace.to_be_bytes().to_vec(),
                span_id: one.span.ids.span.to_be_bytes().to_vec(),
                value: Some(ExemplarValue::AsDouble(one.value)),
                ..Exemplar::default()
            })
            .collect();
        self
    }
}

/// A count.
pub(super) fn whole(count: u64, place: Place) -> NumberDataPoint {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    point(Value::AsInt(count), place)
}

/// Any other number.
pub(super) fn number(number: f64, place: Place) -> NumberDataPoint {
    point(Value::AsDouble(number), place)
}

fn point(value: Value, place: Place) -> NumberDataPoint {
    NumberDataPoint {
        attributes: place.labels.into_attributes(),
        start_time_unix_nano: place.start,
        time_unix_nano: place.end,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

/// A histogram with our own buckets. OTLP counts buckets from one lower than Prometheus.
pub(super) fn exponential(histogram: &Histogram, place: Place) -> ExponentialHistogramDataPoint {
    let (first, bucket_counts) = histogram.dense();
    let (min, max) = extremes(histogram);
    ExponentialHistogramDataPoint {
        attributes: place.labels.into_attributes(),
        start_time_unix_nano: place.start,
        time_unix_nano: place.end,
        count: histogram.count(),
        sum: Some(histogram.sum()),
        scale: grid::SCHEMA,
        zero_count: histogram.zeros(),
        positive: Some(Buckets {
            offset: i32::from(first) - 1,
            bucket_counts,
        }),
        exemplars: place.exemplars,
        min,
        max,
        zero_threshold: grid::ZERO_THRESHOLD,
        ..ExponentialHistogramDataPoint::default()
    }
}

/// A histogram with the bounds of `classic`, each with how many values are at most as large.
pub(super) fn explicit(
    histogram: &Histogram,
    classic: Vec<(f64, u64)>,
    place: Place,
) -> HistogramDataPoint {
    let mut below = 0;
    let mut bucket_counts = Vec::with_capacity(classic.len() + 1);
    let mut explicit_bounds = Vec::with_capacity(classic.len());
    for (bound, up_to) in classic {
        explicit_bounds.push(bound);
        bucket_counts.push(up_to - below);
        below = up_to;
    }
    bucket_counts.push(histogram.count() - below);
    let (min, max) = extremes(histogram);
    HistogramDataPoint {
        attributes: place.labels.into_attributes(),
        start_time_unix_nano: place.start,
        time_unix_nano: place.end,
        count: histogram.count(),
        sum: Some(histogram.sum()),
        bucket_counts,
        explicit_bounds,
        exemplars: place.exemplars,
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

    use crate::aggregate::grid::ClassicRange;
    use crate::aggregate::{Distribution, ExportedSpan};
    use crate::measurement::TraceIds;

    fn place() -> Place {
        Place {
            start: 1,
            end: 2,
            ..Place::default()
        }
    }

    fn classic(histogram: &Histogram, range: ClassicRange) -> Vec<(f64, u64)> {
        Distribution::plain(histogram).classic(range).collect()
    }

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
        let point = exponential(&histogram, place());
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
        let point = exponential(&histogram, place());
        assert_eq!((point.count, point.sum), (2, Some(0.5)));
        let buckets = point.positive.expect("there are some");
        // 0.5 is in bucket -32; 2^20 bounds bucket 640.
        assert_eq!(buckets.offset, -33);
        assert_eq!(buckets.bucket_counts.len(), 673);
        assert_eq!(buckets.bucket_counts[672], 1);
        assert_eq!((point.min, point.max), (Some(0.5), None));
        let point = explicit(
            &histogram,
            classic(&histogram, ClassicRange::new(-2, 0)),
            place(),
        );
        assert_eq!(point.bucket_counts, [1, 0, 0, 1]);
    }

    #[test]
    fn an_empty_histogram_is_a_point_without_values() {
        let point = exponential(&Histogram::new(), place());
        assert_eq!((point.count, point.sum), (0, Some(0.0)));
        assert_eq!((point.min, point.max), (None, None));
        assert!(point.positive.expect("it is said").bucket_counts.is_empty());
    }

    #[test]
    fn explicit_buckets_are_counts_between_bounds() {
        let histogram = histogram(&[0.1, 0.5, 0.6, 1.0, 3.0, 50.0]);
        // Bounds 0.5, 0.707, 1, 1.414, 2.
        let range = ClassicRange::new(-2, 2);
        let point = explicit(&histogram, classic(&histogram, range), place());
        assert_eq!(point.bucket_counts, [2, 1, 1, 0, 0, 2]);
        assert_eq!(point.explicit_bounds.len(), 5);
        assert_eq!(point.count, 6);
        assert_eq!((point.min, point.max), (Some(0.1), Some(50.0)));
    }

    #[test]
    fn exemplars_are_those_of_its_time_and_lead_to_spans() {
        let mut kept = Exemplars::NONE;
        for (unix_ns, value) in [(50, 0.3), (150, 0.6), (160, f64::INFINITY)] {
            let ids = TraceIds {
                trace: u128::from(unix_ns),
                span: unix_ns,
            };
            kept.offer(crate::aggregate::Exemplar {
                value,
                span: ExportedSpan { ids, unix_ns },
            });
        }
        let since = |start| {
            let place = Place { start, ..place() };
            let point = exponential(&histogram(&[0.3, 0.6]), place.with(&kept));
            let ids = |one: &Exemplar| (one.span_id.clone(), one.time_unix_nano);
            point.exemplars.iter().map(ids).collect::<Vec<_>>()
        };
        let first = (vec![0, 0, 0, 0, 0, 0, 0, 50], 50);
        let second = (vec![0, 0, 0, 0, 0, 0, 0, 150], 150);
        assert_eq!(since(1), [first, second.clone()]);
        assert_eq!(since(100), [second]);
    }
}
