//! Whole exchanges over loopback, in all protocols, against servers that behave and that do not.

mod authority;

use std::convert::Infallible;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::authority::Authority;
use super::event::{Event, Events};
use super::fixture::{self, QUICK, receiver, rules};
use super::{OtlpSetup, OtlpTraces};
use crate::clock::TimeAnchor;
use crate::config::{Compression, OtlpProtocol, OtlpReceiver, TlsConfig};
use crate::export::fixture::{numbered, settled};
use crate::export::{Exporter, offer};
use crate::telemetry::{ExportCounters, SelfMetrics};

/// What a server does with one request.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Take,
    Status(u16, &'static str),
    Html,
    Nothing,
    /// A body that is shorter than was said, or an answer of gRPC without an end.
    Half,
    /// A status of gRPC, and its details.
    Code(&'static str, &'static str),
}

/// One request as it came.
struct Seen {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A server that answers by its script, the last reply for ever.
struct Hub {
    is_grpc: bool,
    script: Mutex<Vec<Reply>>,
    seen: Mutex<Vec<Seen>>,
}

type Body = BoxBody<Bytes, std::io::Error>;

impl Hub {
    /// Listens; the second is scheme, host and port.
    async fn start(
        protocol: OtlpProtocol,
        script: &[Reply],
        tls: Option<ServerConfig>,
    ) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let hub = Arc::new(Self {
            is_grpc: protocol == OtlpProtocol::Grpc,
            script: Mutex::new(script.iter().rev().copied().collect()),
            seen: Mutex::default(),
        });
        let (serving, acceptor) = (hub.clone(), tls.map(|tls| TlsAcceptor::from(Arc::new(tls))));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (hub, acceptor) = (serving.clone(), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => hub.serve(stream).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                hub.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        (hub, format!("{scheme}://localhost:{}", address.port()))
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self: Arc<Self>, stream: S) {
        let is_grpc = self.is_grpc;
        let service = service_fn(move |request| respond(self.clone(), request));
        let io = TokioIo::new(stream);
        // How a connection ends is the client's affair.
        let _ended = if is_grpc {
            http2::Builder::new(TokioExecutor::new())
                .serve_connection(io, service)
                .await
        } else {
            http1::Builder::new().serve_connection(io, service).await
        };
    }

    fn next(&self) -> Reply {
        let mut script = self.script.lock().expect("no test panics with it");
        let last = *script.last().expect("a script is not empty");
        if script.len() > 1 {
            script.pop();
        }
        last
    }

    /// The one request that came.
    fn only(&self) -> Seen {
        let mut seen = self.seen.lock().expect("no test panics with it");
        assert_eq!(seen.len(), 1);
        seen.remove(0)
    }

    fn requests(&self) -> usize {
        self.seen.lock().expect("no test panics with it").len()
    }
}

async fn respond(hub: Arc<Hub>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole request").to_bytes();
    let seen = Seen {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body,
    };
    hub.seen.lock().expect("no test panics with it").push(seen);
    let reply = hub.next();
    let kind = if hub.is_grpc {
        "application/grpc"
    } else {
        "application/x-protobuf"
    };
    Ok(match reply {
        Reply::Take if hub.is_grpc => response(
            (200, &[("content-type", kind)]),
            vec![data(b"\0\0\0\0\0"), trailers(&[("grpc-status", "0")])],
        ),
        Reply::Take => response((200, &[("content-type", kind)]), Vec::new()),
        Reply::Status(status, after) => response((status, &[("retry-after", after)]), Vec::new()),
        Reply::Html => response(
            (200, &[("content-type", "text/html")]),
            vec![data(b"<html>")],
        ),
        Reply::Nothing => std::future::pending().await,
        Reply::Half if hub.is_grpc => response((200, &[("content-type", kind)]), vec![data(b"\0")]),
        Reply::Half => response(
            (200, &[("content-type", kind), ("content-length", "100")]),
            vec![data(b"\x0a"), Err(std::io::Error::other("cut"))],
        ),
        Reply::Code(code, details) => response(
            (
                200,
                &[
                    ("content-type", kind),
                    ("grpc-status", code),
                    ("grpc-status-details-bin", details),
                ],
            ),
            Vec::new(),
        ),
    })
}

/// A part of a body, or the end of the connection in its place.
type Part = Result<Frame<Bytes>, std::io::Error>;

#[expect(clippy::unnecessary_wraps, reason = "it is one of two kinds of parts")]
fn data(bytes: &'static [u8]) -> Part {
    Ok(Frame::data(Bytes::from_static(bytes)))
}

fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of two kinds of parts")]
fn trailers(pairs: &[(&'static str, &'static str)]) -> Part {
    Ok(Frame::trailers(map(pairs)))
}

fn response(
    (status, headers): (u16, &[(&'static str, &'static str)]),
    parts: Vec<Part>,
) -> Response<Body> {
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream::iter(parts))));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    *response.headers_mut() = map(headers);
    response
}

/// An exporter of spans to `receiver`, and what it tells.
struct Trial {
    exporter: OtlpTraces,
    counters: ExportCounters,
    events: (Events, mpsc::Receiver<Event>),
}

impl Trial {
    fn of(receiver: &OtlpReceiver) -> Self {
        let own = SelfMetrics::new().expect("the metrics do not collide");
        let config = fixture::config();
        let (queue, input) = mpsc::channel(64);
        let events = Events::new(queue, own.export("otlp_logs"));
        let setup = OtlpSetup {
            config: &config,
            anchor: TimeAnchor::start(),
            own: &own,
            instance: "instance-1",
            events: Some(&events),
        };
        let made = OtlpTraces::new(receiver, &setup, rules());
        let mut exporter = made.expect("a usable configuration");
        exporter.courier.backoff = QUICK;
        Self {
            counters: own.export("otlp_traces"),
            exporter,
            events: (events, input),
        }
    }

    /// Sends two batches of two spans; the states that were told, `None` for a good one.
    async fn two_batches(self) -> (ExportCounters, Vec<Option<&'static str>>) {
        let Self {
            mut exporter,
            counters,
            events: (events, mut told),
        } = self;
        exporter.batching.size = 2;
        let (queue, input) = mpsc::channel(64);
        for sequence in 0..4 {
            offer(&queue, &counters, numbered(sequence));
        }
        drop(queue);
        Box::new(exporter)
            .run(input, CancellationToken::new())
            .await;
        assert_eq!(settled(&counters), 4);
        drop(events);
        let mut states = Vec::new();
        while let Some(event) = told.recv().await {
            match event {
                Event::Exporter { trouble, .. } => {
                    states.push(trouble.map(|(reason, _)| reason));
                }
                other => panic!("{other:?}"),
            }
        }
        (counters, states)
    }
}

fn decoded(protocol: OtlpProtocol, body: &[u8]) -> ExportTraceServiceRequest {
    match protocol {
        OtlpProtocol::HttpProtobuf | OtlpProtocol::Grpc => {
            ExportTraceServiceRequest::decode(body).expect("protobuf")
        }
        OtlpProtocol::HttpJson => serde_json::from_slice(body).expect("JSON"),
    }
}

#[tokio::test]
async fn a_message_is_the_same_in_every_protocol_packed_or_not() {
    for (protocol, kind, path) in [
        (OtlpProtocol::HttpProtobuf, "application/x-protobuf", "/in"),
        (OtlpProtocol::HttpJson, "application/json", "/in"),
        (
            OtlpProtocol::Grpc,
            "application/grpc",
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        ),
    ] {
        for compression in [Compression::None, Compression::Gzip] {
            let (hub, url) = Hub::start(protocol, &[Reply::Take], None).await;
            let own_path = if protocol == OtlpProtocol::Grpc {
                ""
            } else {
                "/in"
            };
            let to = OtlpReceiver {
                protocol,
                compression,
                ..receiver(&format!("{url}{own_path}"))
            };
            let mut trial = Trial::of(&to);
            trial.exporter.batching.size = 8;
            let (queue, input) = mpsc::channel(8);
            for sequence in 0..4 {
                offer(&queue, &trial.counters, numbered(sequence));
            }
            drop(queue);
            Box::new(trial.exporter)
                .run(input, CancellationToken::new())
                .await;
            assert_eq!(trial.counters.sent.get(), 4, "{protocol:?} {compression:?}");

            let seen = hub.only();
            assert_eq!(seen.path, path);
            assert_eq!(seen.headers["content-type"], kind);
            assert_eq!(seen.headers["x-tenant"], "s3cret");
            let mut body = seen.body.to_vec();
            let is_packed = compression == Compression::Gzip;
            if protocol == OtlpProtocol::Grpc {
                assert_eq!(seen.headers["te"], "trailers");
                assert_eq!(seen.headers["grpc-timeout"], "2000m");
                assert_eq!(seen.headers.contains_key("grpc-encoding"), is_packed);
                let length = u32::try_from(body.len() - 5).expect("a short message");
                assert_eq!(body[0], u8::from(is_packed));
                assert_eq!(body[1..5], length.to_be_bytes());
                body.drain(..5);
            } else {
                assert_eq!(seen.headers.contains_key("content-encoding"), is_packed);
            }
            if is_packed {
                let mut plain = Vec::new();
                let mut decoder = GzDecoder::new(body.as_slice());
                decoder.read_to_end(&mut plain).expect("gzip");
                body = plain;
            }
            let request = decoded(protocol, &body);
            let spans = &request.resource_spans[0].scope_spans[0].spans;
            let ids: Vec<_> = spans.iter().map(|span| span.span_id.clone()).collect();
            let wanted: Vec<_> = (1_000_u64..1_004)
                .map(|id| id.to_be_bytes().to_vec())
                .collect();
            assert_eq!(ids, wanted);
            assert_eq!(spans[0].name, "chat qwen");
        }
    }
}

/// The first batch meets `reply` until it is given up, the second is taken.
#[tokio::test]
async fn every_way_not_to_take_a_message_is_counted_by_its_reason_and_told_once() {
    use OtlpProtocol::{Grpc, HttpJson, HttpProtobuf};
    for (protocol, reply, reason, tries) in [
        (HttpProtobuf, Reply::Status(400, ""), "refused", 1),
        (HttpJson, Reply::Status(413, ""), "too_large", 1),
        (HttpProtobuf, Reply::Status(429, "0"), "throttled", 4),
        (HttpProtobuf, Reply::Status(500, ""), "server_error", 1),
        (HttpProtobuf, Reply::Status(503, ""), "unavailable", 4),
        (HttpJson, Reply::Html, "not_otlp", 1),
        (HttpProtobuf, Reply::Html, "not_otlp", 1),
        (HttpProtobuf, Reply::Nothing, "timeout", 4),
        (HttpProtobuf, Reply::Half, "broken", 4),
        (Grpc, Reply::Html, "not_otlp", 1),
        (Grpc, Reply::Nothing, "timeout", 4),
        (Grpc, Reply::Half, "broken", 4),
        (Grpc, Reply::Code("3", ""), "refused", 1),
        (Grpc, Reply::Code("8", ""), "throttled", 1),
        (Grpc, Reply::Code("12", ""), "not_otlp", 1),
        (Grpc, Reply::Code("14", ""), "unavailable", 4),
        (Grpc, Reply::Code("16", ""), "unauthorized", 1),
        (Grpc, Reply::Status(503, ""), "unavailable", 4),
    ] {
        let mut script = vec![reply; tries];
        script.push(Reply::Take);
        let (hub, url) = Hub::start(protocol, &script, None).await;
        let to = OtlpReceiver {
            protocol,
            timeout: Duration::from_millis(300),
            ..receiver(&url)
        };
        let (counters, states) = Trial::of(&to).two_batches().await;
        let name = format!("{protocol:?} {reply:?}");
        assert_eq!(
            (counters.failed.get(), counters.sent.get()),
            (2, 2),
            "{name}"
        );
        assert_eq!(counters.failed_tries(reason), tries as u64, "{name}");
        assert_eq!(hub.requests(), tries + 1, "{name}");
        assert_eq!(states, [Some(reason), None], "{name}");
    }
}

/// As a Go server writes it: code 8, "slow down", a `RetryInfo` of 1.5 s.
#[tokio::test]
async fn a_wait_that_grpc_asks_for_is_kept() {
    let details = "CAgSCXNsb3cgZG93bho2Cih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuUmV0cnlJbmZvEgoKCAgBEIDKte4B";
    let script = [Reply::Code("8", details), Reply::Take];
    let (hub, url) = Hub::start(OtlpProtocol::Grpc, &script, None).await;
    let to = OtlpReceiver {
        protocol: OtlpProtocol::Grpc,
        ..receiver(&url)
    };
    let trial = Trial::of(&to);
    let counters = trial.counters.clone();
    let (queue, input) = mpsc::channel(8);
    offer(&queue, &counters, numbered(0));
    let started = tokio::time::Instant::now();
    let running = tokio::spawn(Box::new(trial.exporter).run(input, CancellationToken::new()));
    let taken = async {
        while counters.sent.get() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), taken)
        .await
        .expect("it is taken in the end");
    assert!(started.elapsed() >= Duration::from_millis(1500));
    assert_eq!(hub.requests(), 2);
    drop(queue);
    running.await.expect("the exporter ends with its input");
}

#[tokio::test]
async fn both_sides_prove_who_they_are_or_nothing_is_sent() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let me = ours.identity();
    for protocol in [OtlpProtocol::HttpProtobuf, OtlpProtocol::Grpc] {
        let known = TlsConfig {
            ca: Some(ours.pem.clone()),
            cert: Some(me.cert.clone()),
            key: Some(me.key.clone()),
            server_name: None,
        };
        let nameless = TlsConfig {
            cert: None,
            key: None,
            ..known.clone()
        };
        for (tls, authority, taken) in [
            (&known, &ours, true),
            (&nameless, &ours, false),
            (&known, &theirs, false),
        ] {
            let server = authority.server(protocol);
            let (hub, url) = Hub::start(protocol, &[Reply::Take], Some(server)).await;
            let to = OtlpReceiver {
                protocol,
                tls: tls.clone(),
                ..receiver(&url)
            };
            let (counters, states) = Trial::of(&to).two_batches().await;
            if taken {
                assert_eq!((counters.sent.get(), states.len()), (4, 0), "{protocol:?}");
            } else {
                assert_eq!(counters.failed.get(), 4, "{protocol:?}");
                assert_eq!(hub.requests(), 0);
                let tries = ["tls", "broken"].map(|reason| counters.failed_tries(reason));
                assert_eq!(tries, [8, 0], "{protocol:?} {states:?}");
                assert_eq!(states.len(), 1, "{states:?}");
            }
        }
    }
}
