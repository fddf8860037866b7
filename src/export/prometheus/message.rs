//! The messages of `io.prometheus.client` that we send, with the tags of its definition.
//!
//! Only what a page of ours holds: no summaries, no float histograms, no negative buckets.
//! Fields keep the names of the definition.

use prost::Message;

/// All series of one metric.
#[derive(Clone, PartialEq, Message)]
pub struct MetricFamily {
    /// Prometheus name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// One sentence.
    #[prost(string, tag = "2")]
    pub help: String,
    /// See [`MetricType`].
    #[prost(enumeration = "MetricType", tag = "3")]
    pub r#type: i32,
    /// The series.
    #[prost(message, repeated, tag = "4")]
    pub metric: Vec<Metric>,
    /// The unit that its name ends in; empty if there is none.
    #[prost(string, tag = "5")]
    pub unit: String,
}

/// The kinds of metrics that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum MetricType {
    /// Only grows.
    Counter = 0,
    /// Goes up and down.
    Gauge = 1,
    /// A distribution.
    Histogram = 4,
}

/// One series.
#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    /// Its labels.
    #[prost(message, repeated, tag = "1")]
    pub label: Vec<LabelPair>,
    /// Set in gauges.
    #[prost(message, optional, tag = "2")]
    pub gauge: Option<Gauge>,
    /// Set in counters.
    #[prost(message, optional, tag = "3")]
    pub counter: Option<Counter>,
    /// Set in histograms.
    #[prost(message, optional, tag = "7")]
    pub histogram: Option<Histogram>,
}

/// One label.
#[derive(Clone, PartialEq, Message)]
pub struct LabelPair {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The value of a gauge.
#[derive(Clone, PartialEq, Message)]
pub struct Gauge {
    /// The value.
    #[prost(double, tag = "1")]
    pub value: f64,
}

/// The value of a counter.
#[derive(Clone, PartialEq, Message)]
pub struct Counter {
    /// The value.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// When it was 0.
    #[prost(message, optional, tag = "3")]
    pub created_timestamp: Option<Timestamp>,
}

/// An instant: `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Timestamp {
    /// Seconds since the Unix epoch.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds beyond them.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// A value and what it was measured on.
#[derive(Clone, PartialEq, Message)]
pub struct Exemplar {
    /// What it was measured on.
    #[prost(message, repeated, tag = "1")]
    pub label: Vec<LabelPair>,
    /// The value.
    #[prost(double, tag = "2")]
    pub value: f64,
    /// When it was measured.
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
}

/// A distribution, in classic and in native buckets.
#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    /// Values, +∞ included.
    #[prost(uint64, tag = "1")]
    pub sample_count: u64,
    /// Sum of the finite values.
    #[prost(double, tag = "2")]
    pub sample_sum: f64,
    /// Classic buckets, ascending.
    #[prost(message, repeated, tag = "3")]
    pub bucket: Vec<Bucket>,
    /// Native buckets per factor of two are 2^schema.
    #[prost(sint32, tag = "5")]
    pub schema: i32,
    /// Values up to this are in the zero bucket.
    #[prost(double, tag = "6")]
    pub zero_threshold: f64,
    /// Values in the zero bucket.
    #[prost(uint64, tag = "7")]
    pub zero_count: u64,
    /// Runs of native buckets.
    #[prost(message, repeated, tag = "12")]
    pub positive_span: Vec<BucketSpan>,
    /// Count of each native bucket less that of the one before.
    #[prost(sint64, repeated, tag = "13")]
    pub positive_delta: Vec<i64>,
    /// When it was empty.
    #[prost(message, optional, tag = "15")]
    pub created_timestamp: Option<Timestamp>,
    /// Exemplars of its native buckets.
    #[prost(message, repeated, tag = "16")]
    pub exemplars: Vec<Exemplar>,
}

/// A classic bucket.
#[derive(Clone, PartialEq, Message)]
pub struct Bucket {
    /// Values up to the bound.
    #[prost(uint64, tag = "1")]
    pub cumulative_count: u64,
    /// The bound, inclusive.
    #[prost(double, tag = "2")]
    pub upper_bound: f64,
    /// The newest of its exemplars.
    #[prost(message, optional, tag = "3")]
    pub exemplar: Option<Exemplar>,
}

/// A run of native buckets.
#[derive(Clone, PartialEq, Message)]
pub struct BucketSpan {
    /// Empty buckets before it; for the first, the index of its first bucket.
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    /// Buckets in it.
    #[prost(uint32, tag = "2")]
    pub length: u32,
}
