//! The page as length-delimited protobuf: every histogram in native and in classic buckets,
//! with exemplars on both.

use prost::Message;

use super::View;
use super::family::{self, Family, Label, Value};
use super::message::{
    Bucket, BucketSpan, Counter, Exemplar, Gauge, Histogram, LabelPair, Metric, MetricFamily,
    MetricType, Timestamp,
};
use crate::aggregate::{self, Distribution, grid, rank};
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
    let created = family.created_unix_ns.map(timestamp);
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
            Value::Distribution(ref shown) => {
                metric.histogram = Some(Histogram {
                    created_timestamp: created,
                    ..distribution(shown, family.kind)
                });
                return metric;
            }
        };
        if family.kind == Kind::Counter {
            metric.counter = Some(Counter {
                value: number,
                created_timestamp: created,
            });
        } else {
            metric.gauge = Some(Gauge { value: number });
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
        unit: family.unit().unwrap_or_default().to_owned(),
    }
}

fn timestamp(unix_ns: u64) -> Timestamp {
    const SECOND: u64 = 1_000_000_000;
    Timestamp {
        seconds: i64::try_from(unix_ns / SECOND).unwrap_or(i64::MAX),
        nanos: i32::try_from(unix_ns % SECOND).unwrap_or_default(),
    }
}

fn exemplar(exemplar: &aggregate::Exemplar) -> Exemplar {
    let ids = &exemplar.span.ids;
    let label = |name: &str, value| LabelPair {
        name: name.to_owned(),
        value,
    };
    Exemplar {
        label: vec![
            label("trace_id", ids.trace_hex()),
            label("span_id", ids.span_hex()),
        ],
        value: exemplar.value,
        timestamp: Some(timestamp(exemplar.span.unix_ns)),
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

fn distribution(shown: &Distribution<'_>, kind: Kind) -> Histogram {
    let mut above = f64::NEG_INFINITY;
    let mut bucket = |(upper_bound, cumulative_count)| {
        let newest = shown.exemplars().newest_in(above, upper_bound);
        above = upper_bound;
        Bucket {
            cumulative_count,
            upper_bound,
            exemplar: newest.map(exemplar),
        }
    };
    let mut classic: Vec<Bucket> = match kind {
        Kind::Histogram(range) => shown.classic(range).map(&mut bucket).collect(),
        Kind::Counter | Kind::Gauge => Vec::new(),
    };
    classic.push(bucket((f64::INFINITY, shown.count())));
    let native = shown.native();
    Histogram {
        sample_count: shown.count(),
        sample_sum: shown.sum(),
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
        created_timestamp: None,
        exemplars: shown.exemplars().iter().map(exemplar).collect(),
    }
}
