//! The messages of `io.prometheus.client` that we send, with the tags of its definition.
//!
//! Only what a page of ours holds: no summaries, no float histograms, no negative buckets, no
//! exemplars yet. Fields keep the names of the definition.

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
    pub gauge: Option<Number>,
    /// Set in counters.
    #[prost(message, optional, tag = "3")]
    pub counter: Option<Number>,
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

/// The value of a counter or gauge: both messages have this one field.
#[derive(Clone, PartialEq, Message)]
pub struct Number {
    /// The value.
    #[prost(double, tag = "1")]
    pub value: f64,
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
