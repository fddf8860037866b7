//! The page as length-delimited protobuf: every histogram in native and in classic buckets.

use prost::Message;

use super::View;
use super::family::{self, Family, Label, Value};
use super::message::{
    Bucket, BucketSpan, Histogram, LabelPair, Metric, MetricFamily, MetricType, Number,
};
use crate::aggregate::{self, grid, rank};
use crate::export::catalog::Kind;

/// Writes all of `view`.
pub(super) fn write(view: &View<'_>) -> Vec<u8> {
    let streams: Vec<Vec<LabelPair>> = family::stream_labels(view.live)
        .iter()
        .map(|labels| pairs(labels))
        .collect();
    let mut page = Vec::with_capacity(64 * 1024);
    family::for_each(view, |family| {
        message(family, &streams)
            .encode_length_delimited(&mut page)
            .expect("a vector grows as far as it must");
    });
    page
}

fn message(family: &Family<'_>, streams: &[Vec<LabelPair>]) -> MetricFamily {
    let metric = family.series.iter().map(|series| {
        let mut metric = Metric {
            label: series
                .stream
                .map_or_else(Vec::new, |position| streams[position].clone()),
            ..Metric::default()
        };
        metric.label.extend(pairs(&series.labels));
        let number = match series.value {
            Value::Count(count) => rank::count(count),
            Value::Number(number) => number,
            Value::Distribution(histogram) => {
                metric.histogram = Some(distribution(histogram, family.kind));
                return metric;
            }
        };
        let number = Some(Number { value: number });
        if family.kind == Kind::Counter {
            metric.counter = number;
        } else {
            metric.gauge = number;
        }
        metric
    });
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    };
    MetricFamily {
        name: family.name.to_string(),
        help: family.help.to_string(),
        r#type: kind.into(),
        metric: metric.collect(),
    }
}

fn pairs(labels: &[Label<'_>]) -> Vec<LabelPair> {
    labels
        .iter()
        .map(|(name, value)| LabelPair {
            name: name.to_string(),
            value: value.to_string(),
        })
        .collect()
}

fn distribution(histogram: &aggregate::Histogram, kind: Kind) -> Histogram {
    let bucket = |(upper_bound, cumulative_count)| Bucket {
        cumulative_count,
        upper_bound,
    };
    let mut classic: Vec<Bucket> = match kind {
        Kind::Histogram(range) => range
            .bounds()
            .zip(histogram.classic(range))
            .map(bucket)
            .collect(),
        _ => Vec::new(),
    };
    classic.push(bucket((f64::INFINITY, histogram.count())));
    let native = histogram.native();
    Histogram {
        sample_count: histogram.count(),
        sample_sum: histogram.sum(),
        bucket: classic,
        schema: grid::SCHEMA,
        zero_threshold: grid::ZERO_THRESHOLD,
        zero_count: native.zero_count,
        positive_span: native
            .spans
            .into_iter()
            .map(|(offset, length)| BucketSpan { offset, length })
            .collect(),
        positive_delta: native.deltas,
    }
}
