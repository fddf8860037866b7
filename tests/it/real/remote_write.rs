//! Writes samples to Prometheus through its remote-write receiver, native histograms included.
//!
//! The messages are those of `prometheus/prompb` of Prometheus 2.42, as far as they are needed.

use prost::Message;
use tokencanary::export::prometheus::message;

use crate::program::http_client;

/// What is posted.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) timeseries: Vec<TimeSeries>,
}

/// Samples of one series.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<message::LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) histograms: Vec<Histogram>,
}

/// A number at a time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    /// Milliseconds since the epoch.
    #[prost(int64, tag = "2")]
    pub(super) timestamp: i64,
}

/// A native histogram at a time.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(double, tag = "3")]
    sum: f64,
    #[prost(sint32, tag = "4")]
    schema: i32,
    #[prost(double, tag = "5")]
    zero_threshold: f64,
    #[prost(uint64, tag = "6")]
    zero_count: u64,
    #[prost(message, repeated, tag = "11")]
    positive_spans: Vec<message::BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    timestamp: i64,
}

impl Histogram {
    /// The native part of `histogram` as of `timestamp`, milliseconds since the epoch.
    pub(super) fn of(histogram: &message::Histogram, timestamp: i64) -> Self {
        Self {
            count: histogram.sample_count,
            sum: histogram.sample_sum,
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            zero_count: histogram.zero_count,
            positive_spans: histogram.positive_span.clone(),
            positive_deltas: histogram.positive_delta.clone(),
            timestamp,
        }
    }
}

/// Posts `series` to the Prometheus at `url`.
///
/// # Panics
///
/// If it does not take all of them.
pub(super) async fn write(url: &str, series: Vec<TimeSeries>) {
    let request = WriteRequest { timeseries: series };
    let body = snap::raw::Encoder::new()
        .compress_vec(&request.encode_to_vec())
        .expect("it is not as large as that");
    let answer = http_client()
        .build()
        .expect("the options are fixed")
        .post(format!("{url}/api/v1/write"))
        .header("content-encoding", "snappy")
        .header("content-type", "application/x-protobuf")
        .header("x-prometheus-remote-write-version", "0.1.0")
        .body(body)
        .send()
        .await
        .expect("it is ready");
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    assert!(status.is_success(), "{status}: {text}");
}
