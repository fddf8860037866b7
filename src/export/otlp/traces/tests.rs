//! The exporter against small receivers over loopback, well-behaved and not.

use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;

use super::super::fixture::{self, QUICK, receiver};
use super::*;
use crate::config::Secret;
use crate::export::fixture::{numbered, settled};
use crate::export::offer;
use crate::export::otlp::retry::Backoff;
use crate::telemetry::{ExportCounters, SelfMetrics};

/// What a receiver answers to one request.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Take,
    Reject(usize),
    Status(u16),
    Html,
    Hang,
}

/// A receiver that answers by its script, the last reply for ever, and keeps what it took.
#[derive(Debug)]
struct Taker {
    url: String,
    script: Mutex<Vec<Reply>>,
    requests: Mutex<Vec<HeaderMap>>,
    taken: Mutex<Vec<ExportTraceServiceRequest>>,
}

impl Taker {
    async fn start(script: &[Reply]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::on(listener, script)
    }

    fn on(listener: TcpListener, script: &[Reply]) -> Arc<Self> {
        let address = listener.local_addr().expect("a bound socket");
        let receiver = Arc::new(Self {
            // Not the usual path: the URL must be used as it stands.
            url: format!("http://{address}/tenant/spans?x=1"),
            script: Mutex::new(script.iter().rev().copied().collect()),
            requests: Mutex::default(),
            taken: Mutex::default(),
        });
        let router = Router::new()
            .route("/tenant/spans", post(receive))
            .with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    fn next(&self) -> Reply {
        let mut script = self.script.lock().expect("no test panics with it");
        let last = *script.last().expect("a script is not empty");
        if script.len() > 1 {
            script.pop();
        }
        last
    }

    /// The answer to one request; `None` to hang.
    fn answer(
        &self,
        headers: HeaderMap,
        mut request: ExportTraceServiceRequest,
    ) -> Option<Response> {
        let mut requests = self.requests.lock().expect("no test panics with it");
        requests.push(headers);
        match self.next() {
            Reply::Take => {
                let mut taken = self.taken.lock().expect("no test panics with it");
                taken.push(request);
                let answer = ExportTraceServiceResponse::default();
                Some(answer.encode_to_vec().into_response())
            }
            Reply::Reject(count) => {
                let spans = &mut request.resource_spans[0].scope_spans[0].spans;
                let kept = spans.len().saturating_sub(count);
                spans.truncate(kept);
                let mut taken = self.taken.lock().expect("no test panics with it");
                taken.push(request);
                let partial_success = Some(ExportTracePartialSuccess {
                    rejected_spans: i64::try_from(count).expect("a small count"),
                    error_message: "as the script says".to_owned(),
                });
                let answer = ExportTraceServiceResponse { partial_success };
                Some(answer.encode_to_vec().into_response())
            }
            Reply::Status(status) => {
                let status = StatusCode::from_u16(status).expect("a status");
                Some(status.into_response())
            }
            Reply::Html => Some("<!DOCTYPE html><title>Welcome</title>".into_response()),
            Reply::Hang => None,
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().expect("no test panics with it").len()
    }

    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().expect("no test panics with it");
        taken
            .iter()
            .flat_map(|request| &request.resource_spans)
            .flat_map(|resource| &resource.scope_spans)
            .flat_map(|scope| scope.spans.clone())
            .collect()
    }
}

async fn receive(State(receiver): State<Arc<Taker>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = ExportTraceServiceRequest::decode(body).expect("a request in protobuf");
    match receiver.answer(headers, request) {
        Some(response) => response,
        None => std::future::pending().await,
    }
}

fn exporter(url: &str, backoff: Backoff) -> OtlpTraces {
    exporter_to(&receiver(url), backoff)
}

fn exporter_to(receiver: &OtlpReceiver, backoff: Backoff) -> OtlpTraces {
    let own = SelfMetrics::new().expect("the metrics do not collide");
    let config = fixture::config();
    let setup = OtlpSetup {
        config: &config,
        anchor: TimeAnchor::start(),
        own: &own,
        instance: "instance-1",
        events: None,
    };
    let made = OtlpTraces::new(receiver, &setup, fixture::rules());
    let mut exporter = made.expect("a usable configuration");
    exporter.courier.backoff = backoff;
    exporter.batching = Batching {
        size: 4,
        linger: Duration::from_millis(20),
    };
    exporter
}

/// A receiver that is given half a second for each try.
fn hasty(url: &str) -> OtlpReceiver {
    OtlpReceiver {
        timeout: Duration::from_millis(500),
        ..receiver(url)
    }
}

/// What became of the spans of `exporter`.
fn counters(exporter: &OtlpTraces) -> ExportCounters {
    exporter.courier.counters.clone()
}

/// Offers `spans` spans, ends the input, runs the exporter to its end, and checks the account:
/// (sent, rejected, failed).
async fn send(exporter: OtlpTraces, spans: u64) -> (u64, u64, u64) {
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(64);
    for sequence in 0..spans {
        offer(&queue, &counters, numbered(sequence));
    }
    drop(queue);
    Box::new(exporter)
        .run(input, CancellationToken::new())
        .await;
    assert_eq!(counters.accepted.get(), spans);
    assert_eq!(settled(&counters), spans);
    (
        counters.sent.get(),
        counters.rejected.get(),
        counters.failed.get(),
    )
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    let AnyValue { value, .. } = found.value.as_ref()?;
    value.as_ref()
}

fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

#[tokio::test]
async fn every_span_arrives_with_its_ids_and_attributes() {
    let taker = Taker::start(&[Reply::Take]).await;
    assert_eq!(send(exporter(&taker.url, QUICK), 10).await, (10, 0, 0));
    assert_eq!(taker.requests(), 3, "4 + 4 + 2");
    let spans = taker.spans();
    for (number, span) in (0_i64..).zip(&spans) {
        assert_eq!(
            span.trace_id,
            [
                0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, //
                0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef
            ]
        );
        assert_eq!(span.span_id, (1_000 + number).to_be_bytes());
        assert!(span.parent_span_id.is_empty());
        assert_eq!(span.kind, 3, "CLIENT");
        assert_eq!(span.name, "chat qwen");
        assert_eq!(
            span.end_time_unix_nano - span.start_time_unix_nano,
            43_400_000
        );
        assert_eq!(
            attribute(&span.attributes, "tokencanary.sequence"),
            Some(&Value::IntValue(number))
        );
        assert_eq!(
            attribute(&span.attributes, "tokencanary.ttft"),
            Some(&Value::DoubleValue(0.0102))
        );
        assert_eq!(attribute(&span.attributes, "error.type"), None);
    }
    assert_eq!(spans.len(), 10);
}

#[tokio::test]
async fn the_request_names_us_and_carries_the_configured_headers() {
    let taker = Taker::start(&[Reply::Take]).await;
    send(exporter(&taker.url, QUICK), 1).await;
    let requests = taker.requests.lock().expect("no test panics with it");
    assert_eq!(requests[0]["content-type"], "application/x-protobuf");
    assert_eq!(
        requests[0]["user-agent"],
        concat!("tokencanary/", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(requests[0]["x-tenant"], "s3cret");
    drop(requests);
    let messages = taker.taken.lock().expect("no test panics with it");
    let resource = messages[0].resource_spans[0].resource.as_ref();
    let attributes = &resource.expect("a resource").attributes;
    for (key, value) in [
        ("service.name", "tokencanary"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", "instance-1"),
        ("host.name", "gpu-3"),
    ] {
        assert_eq!(attribute(attributes, key), Some(&text(value)), "{key}");
    }
}

#[tokio::test]
async fn a_partial_success_counts_what_was_rejected() {
    let taker = Taker::start(&[Reply::Reject(3), Reply::Take, Reply::Reject(99)]).await;
    // 4 spans of which 3 are rejected, 4 taken, 2 of which "99" are rejected.
    assert_eq!(send(exporter(&taker.url, QUICK), 10).await, (5, 5, 0));
    assert_eq!(taker.spans().len(), 5);
}

#[tokio::test]
async fn a_busy_receiver_gets_the_same_batch_again_and_once_only() {
    let taker = Taker::start(&[Reply::Status(503), Reply::Status(503), Reply::Take]).await;
    assert_eq!(send(exporter(&taker.url, QUICK), 3).await, (3, 0, 0));
    assert_eq!(taker.requests(), 3);
    assert_eq!(taker.spans().len(), 3);
}

#[tokio::test]
async fn a_receiver_that_stays_busy_costs_its_batch_after_the_last_try() {
    let busy = Reply::Status(429);
    let taker = Taker::start(&[busy, busy, busy, busy, Reply::Take]).await;
    assert_eq!(send(exporter(&taker.url, QUICK), 6).await, (2, 0, 4));
    assert_eq!(taker.requests(), 5);
}

#[tokio::test]
async fn a_final_refusal_is_not_tried_again() {
    for reply in [Reply::Status(400), Reply::Status(413), Reply::Html] {
        let taker = Taker::start(&[reply, Reply::Take]).await;
        assert_eq!(
            send(exporter(&taker.url, QUICK), 6).await,
            (2, 0, 4),
            "{reply:?}"
        );
        assert_eq!(taker.requests(), 2, "{reply:?}");
    }
}

#[tokio::test]
async fn a_hanging_receiver_is_left_after_its_time_and_tried_again() {
    let taker = Taker::start(&[Reply::Hang, Reply::Take]).await;
    assert_eq!(
        send(exporter_to(&hasty(&taker.url), QUICK), 2).await,
        (2, 0, 0)
    );
    assert_eq!(taker.requests(), 2);
}

/// Waits until `condition` holds, for at most ten seconds.
async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("it comes to hold");
}

#[tokio::test]
async fn a_batch_in_a_long_wait_is_tried_at_once_when_the_input_ends() {
    let taker = Taker::start(&[Reply::Status(503), Reply::Take]).await;
    let mut pace = QUICK;
    pace.first = Duration::from_hours(1);
    pace.longest = Duration::from_hours(1);
    let exporter = exporter(&taker.url, pace);
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(64);
    for sequence in 0..6 {
        offer(&queue, &counters, numbered(sequence));
    }
    let running = tokio::spawn(Box::new(exporter).run(input, CancellationToken::new()));
    until(|| taker.requests() == 1).await;
    drop(queue);
    tokio::time::timeout(Duration::from_secs(10), running)
        .await
        .expect("nothing waits for an hour")
        .expect("it does not panic");
    assert_eq!((counters.sent.get(), settled(&counters)), (6, 6));
    assert_eq!(taker.requests(), 3, "4 refused, the same 4, then 2");
}

/// A URL at which nobody listens.
async fn dead_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    format!("http://{address}/v1/traces")
}

#[tokio::test]
async fn a_dead_port_fails_every_span_after_the_last_try() {
    assert_eq!(send(exporter(&dead_url().await, QUICK), 9).await, (0, 0, 9));
}

#[tokio::test]
async fn spans_outlast_a_receiver_that_is_away_for_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    drop(listener);
    let mut pace = QUICK;
    pace.tries = 1_000;
    let exporter = exporter(&format!("http://{address}/tenant/spans"), pace);
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(8);
    let running = tokio::spawn(Box::new(exporter).run(input, CancellationToken::new()));
    offer(&queue, &counters, numbered(0));
    until(|| counters.failed_tries("connect") > 1).await;
    // One is being tried; a queue of 8 takes 8 more.
    for sequence in 1..21 {
        offer(&queue, &counters, numbered(sequence));
    }
    assert_eq!(counters.dropped.get(), 12);
    let listener = TcpListener::bind(address).await.expect("the port is free");
    let taker = Taker::on(listener, &[Reply::Take]);
    drop(queue);
    running.await.expect("the exporter ends with its input");
    assert_eq!((counters.sent.get(), counters.failed.get()), (9, 0));
    assert_eq!(taker.spans().len(), 9);
    assert_eq!(settled(&counters), counters.accepted.get());
}

#[tokio::test]
async fn the_account_closes_whatever_the_receiver_does() {
    let taker = Taker::start(&[
        Reply::Take,
        Reply::Reject(1),
        Reply::Status(503),
        Reply::Html,
        Reply::Status(400),
        Reply::Reject(2),
        Reply::Hang,
        Reply::Take,
        Reply::Status(302),
        Reply::Take,
    ])
    .await;
    let exporter = exporter_to(&hasty(&taker.url), QUICK);
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(16);
    let running = tokio::spawn(Box::new(exporter).run(input, CancellationToken::new()));
    for sequence in 0..200 {
        offer(&queue, &counters, numbered(sequence));
        if sequence % 5 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(queue);
    running.await.expect("the exporter ends with its input");
    assert_eq!(counters.accepted.get(), 200);
    assert_eq!(settled(&counters), 200);
    assert!(counters.failed.get() > 0 && counters.rejected.get() > 0);
    assert_eq!(taker.spans().len() as u64, counters.sent.get());
}

#[tokio::test]
async fn at_the_deadline_everything_left_fails_at_once() {
    let mut pace = QUICK;
    pace.first = Duration::from_hours(1);
    pace.longest = Duration::from_hours(1);
    let exporter = exporter(&dead_url().await, pace);
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(8);
    for sequence in 0..14 {
        offer(&queue, &counters, numbered(sequence));
    }
    drop(queue);
    let deadline = CancellationToken::new();
    let running = tokio::spawn(Box::new(exporter).run(input, deadline.clone()));
    until(|| counters.failed_tries("connect") > 0).await;
    deadline.cancel();
    running.await.expect("the exporter ends at the deadline");
    assert_eq!(
        (counters.dropped.get(), counters.failed.get()),
        (6, 8),
        "a queue of 8 took 8"
    );
    assert_eq!(settled(&counters), counters.accepted.get());
}

#[tokio::test]
async fn an_exporter_that_is_aborted_leaves_a_closed_account() {
    let taker = Taker::start(&[Reply::Hang]).await;
    let exporter = exporter(&taker.url, QUICK);
    let counters = counters(&exporter);
    let (queue, input) = mpsc::channel(64);
    for sequence in 0..10 {
        offer(&queue, &counters, numbered(sequence));
    }
    let running = tokio::spawn(Box::new(exporter).run(input, CancellationToken::new()));
    until(|| taker.requests() > 0).await;
    running.abort();
    assert!(running.await.expect_err("it was aborted").is_cancelled());
    offer(&queue, &counters, numbered(10));
    assert_eq!(counters.failed.get(), 11);
    assert_eq!(settled(&counters), counters.accepted.get());
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
    let mut to = receiver("http://127.0.0.1:4318/v1/traces");
    to.headers = vec![("x-key".to_owned(), Secret::new("line\nbreak"))];
    let error = crate::export::otlp::sender::Sender::new(Signal::Traces, &to, TimeAnchor::start());
    let error = error.expect_err("a line break ends a header");
    assert_eq!(
        error.to_string(),
        "header `x-key` cannot be sent; wanted a name and a value of visible ASCII characters"
    );
}
