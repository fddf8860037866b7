//! A receiver of spans, metrics and logs over OTLP/HTTP with protobuf, which keeps what it takes.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::metrics::v1::exemplar;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use prost::Message;
use tokio::net::TcpListener;

/// The receiver. Clones share what it holds.
#[derive(Clone, Default)]
pub(crate) struct Receiver(Arc<Mutex<Held>>);

/// A span as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) trace: String,
    pub(crate) span: String,
    /// The span it hangs below; empty if there is none.
    pub(crate) parent: String,
    pub(crate) name: String,
    /// `service.name` of whoever sent it.
    pub(crate) service: String,
}

/// What it took so far.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) spans: Vec<Received>,
    pub(crate) metrics: Vec<ExportMetricsServiceRequest>,
    /// Names of events.
    pub(crate) logs: Vec<String>,
    /// Headers of requests with spans.
    pub(crate) headers: Vec<HeaderMap>,
}

impl Receiver {
    /// Listens; the second is its base URL.
    pub(crate) async fn start() -> (Self, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("loopback has free ports");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let receiver = Self::default();
        let router = Router::new()
            .route("/v1/{signal}", post(take))
            .with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (receiver, url)
    }

    pub(crate) fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of all spans.
    pub(crate) fn spans(&self) -> Vec<String> {
        let held = self.held();
        held.spans.iter().map(|span| span.span.clone()).collect()
    }

    pub(crate) fn headers(&self) -> Option<HeaderMap> {
        self.held().headers.first().cloned()
    }

    /// Data points over all messages.
    pub(crate) fn points(&self) -> usize {
        let held = self.held();
        held.metrics.iter().map(points).sum()
    }

    /// Trace id, span id and value of all exemplars of the exponential histogram `name`.
    pub(crate) fn exemplars(&self, name: &str) -> Vec<(String, String, f64)> {
        let held = self.held();
        let histograms = held.metrics.iter().flat_map(metrics);
        let points = histograms.filter(|(of, _)| *of == name).map(|(_, data)| {
            let Some(Data::ExponentialHistogram(histogram)) = data else {
                panic!("{name} is {data:?}");
            };
            &histogram.data_points
        });
        let exemplars = points.flatten().flat_map(|point| &point.exemplars);
        let found = exemplars.map(|one| match one.value {
            Some(exemplar::Value::AsDouble(value)) => {
                (hex(&one.trace_id), hex(&one.span_id), value)
            }
            other => panic!("an exemplar with the value {other:?}"),
        });
        found.collect()
    }

    /// Count, sum and values in buckets of the exponential histogram `name` over all its series,
    /// as last told.
    pub(crate) fn last(&self, name: &str) -> Option<(u64, f64, u64)> {
        let held = self.held();
        let told = held.metrics.iter().rev();
        let data = told
            .flat_map(metrics)
            .find_map(|(of, data)| (of == name).then_some(data))??;
        let Data::ExponentialHistogram(histogram) = data else {
            panic!("{name} is {data:?}");
        };
        let mut all = (0, 0.0, 0);
        for point in &histogram.data_points {
            all.0 += point.count;
            all.1 += point.sum.unwrap_or_default();
            let buckets = point.positive.iter().flat_map(|of| &of.bucket_counts);
            all.2 += buckets.sum::<u64>() + point.zero_count;
        }
        Some(all)
    }
}

fn metrics(request: &ExportMetricsServiceRequest) -> impl Iterator<Item = (&str, Option<&Data>)> {
    request
        .resource_metrics
        .iter()
        .flat_map(|resource| &resource.scope_metrics)
        .flat_map(|scope| &scope.metrics)
        .map(|metric| (&*metric.name, metric.data.as_ref()))
}

fn points(request: &ExportMetricsServiceRequest) -> usize {
    metrics(request)
        .map(|(_, data)| match data {
            Some(Data::Gauge(of)) => of.data_points.len(),
            Some(Data::Sum(of)) => of.data_points.len(),
            Some(Data::ExponentialHistogram(of)) => of.data_points.len(),
            other => panic!("not asked for: {other:?}"),
        })
        .sum()
}

async fn take(
    State(receiver): State<Receiver>,
    Path(signal): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) {
    let mut plain = Vec::new();
    let body = match headers.get("content-encoding") {
        Some(_) => {
            let mut decoder = GzDecoder::new(&*body);
            std::io::Read::read_to_end(&mut decoder, &mut plain).expect("gzip");
            plain.as_slice()
        }
        None => &body,
    };
    let mut held = receiver.held();
    match &*signal {
        "traces" => {
            let request = ExportTraceServiceRequest::decode(body).expect("a request in protobuf");
            held.spans
                .extend(request.resource_spans.into_iter().flat_map(received));
            held.headers.push(headers);
        }
        "metrics" => {
            let request = ExportMetricsServiceRequest::decode(body);
            held.metrics.push(request.expect("a request in protobuf"));
        }
        "logs" => {
            let request = ExportLogsServiceRequest::decode(body).expect("a request in protobuf");
            let records = request
                .resource_logs
                .into_iter()
                .flat_map(|resource| resource.scope_logs)
                .flat_map(|scope| scope.log_records);
            held.logs.extend(records.map(|record| record.event_name));
        }
        other => panic!("no such signal: `{other}`"),
    }
}

fn received(of: ResourceSpans) -> impl Iterator<Item = Received> {
    let attributes = of.resource.map(|resource| resource.attributes);
    let name = attributes
        .into_iter()
        .flatten()
        .find(|attribute| attribute.key == "service.name");
    let service = match name.and_then(|attribute| attribute.value?.value) {
        Some(any_value::Value::StringValue(name)) => name,
        _ => String::new(),
    };
    let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans.map(move |span| Received {
        trace: hex(&span.trace_id),
        span: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        name: span.name,
        service: service.clone(),
    })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}
