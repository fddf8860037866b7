//! The page as length-delimited protobuf: every histogram in native and in classic buckets,
//! with exemplars on both.

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::View;
use super::family::{self, Family, Label, Series, Value};
use super::message::{
    Bucket, BucketSpan, Counter, Exemplar, Gauge, Histogram, LabelPair, Metric, MetricFamily,
    MetricType, Timestamp,
};
use crate::aggregate::{self, Distribution, grid, rank};
use crate::export::catalog::Kind;

/// Writes all of `view`.
pub(super) fn write(view: &View<'_>) -> Vec<u8> {
    let mut page = Page {
        streams: family::stream_labels(view.live)
            .iter()
            .map(|labels| labels_of(labels))
            .collect(),
        bytes: Vec::with_capacity(64 * 1024),
        family: Vec::new(),
        metric: Vec::new(),
    };
    family::for_each(view, |family| page.family(family));
    page.bytes
}

/// The page so far, and room in which its parts are put together.
///
/// A message is its fields one after the other, so what repeats is encoded once: the labels of a
/// stream, which are most of what a page holds.
struct Page {
    /// The labels of each stream, as fields of a [`Metric`].
    streams: Vec<Vec<u8>>,
    bytes: Vec<u8>,
    family: Vec<u8>,
    metric: Vec<u8>,
}

impl Page {
    fn family(&mut self, family: &Family<'_>) {
        self.family.clear();
        append(&head(family), &mut self.family);
        for series in &family.series {
            self.metric.clear();
            if let Some(position) = series.stream {
                self.metric.extend_from_slice(&self.streams[position]);
            }
            append(&rest(family, series), &mut self.metric);
            encode_key(METRIC, WireType::LengthDelimited, &mut self.family);
            encode_varint(self.metric.len() as u64, &mut self.family);
            self.family.extend_from_slice(&self.metric);
        }
        encode_varint(self.family.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&self.family);
    }
}

/// The tag of [`MetricFamily::metric`].
const METRIC: u32 = 4;

fn append(message: &impl Message, to: &mut Vec<u8>) {
    message
        .encode(to)
        .expect("a vector grows as far as it must");
}

/// A family without its series.
fn head(family: &Family<'_>) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    };
    MetricFamily {
        name: family.name.to_string(),
        help: family.help.to_string(),
        r#type: kind.into(),
        metric: Vec::new(),
        unit: family.unit().unwrap_or_default().to_owned(),
    }
}

/// A series without the labels of its stream.
fn rest(family: &Family<'_>, series: &Series<'_>) -> Metric {
    let created = family.created_unix_ns.map(timestamp);
    let mut metric = Metric {
        label: pairs(&series.labels),
        ..Metric::default()
    };
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
}

fn labels_of(labels: &[Label<'_>]) -> Vec<u8> {
    let metric = Metric {
        label: pairs(labels),
        ..Metric::default()
    };
    metric.encode_to_vec()
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
