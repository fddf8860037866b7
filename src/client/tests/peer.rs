//! A server of hyper's over any byte stream, with certificates made on the spot, and a client
//! that is joined to it by in-memory pipes.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::super::*;
use super::{DONE, FINISH, TOKEN, USAGE};
use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Limits, NetworkConfig, RequestConfig, TlsConfig};
use crate::load::workload::Prompt;
use crate::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, RequestRecord, Stream, StreamId, TraceIds,
};
use crate::transport::{Connect, Endpoint, Opened, Opening, Progress, Wire};

/// What the server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Three tokens, 10 ms before each, the last one together with what ends the stream; then
    /// trailers.
    Stream,
    /// Two tokens, then the stream is broken off.
    Cut,
}

/// A server.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// HTTP/2 where nothing was agreed on.
    pub(super) http2: bool,
    pub(super) answer: Answer,
    pub(super) connections: Arc<AtomicU32>,
}

impl Peer {
    pub(super) fn new(tls: Option<ServerConfig>) -> Self {
        Self {
            tls: tls.map(Arc::new),
            http2: false,
            answer: Answer::Stream,
            connections: Arc::default(),
        }
    }

    /// Serves one connection to its end.
    pub(super) async fn serve<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let Some(tls) = self.tls.clone() else {
            return self.speak(stream, self.http2).await;
        };
        if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
            let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            self.speak(stream, is_h2).await;
        }
    }

    async fn speak<S>(&self, stream: S, http2: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answer = self.answer;
        let service = service_fn(move |request| respond(answer, request));
        let io = TokioIo::new(stream);
        // How a connection ends is the client's affair.
        let _ended = if http2 {
            http2::Builder::new(TokioExecutor::new())
                .serve_connection(io, service)
                .await
        } else {
            http1::Builder::new().serve_connection(io, service).await
        };
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

async fn respond(answer: Answer, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.version() == hyper::Version::HTTP_2 {
        assert!(request.uri().authority().is_some(), "{:?}", request.uri());
        assert!(!request.headers().contains_key("host"));
    }
    assert_eq!(request.uri().path(), "/v1/chat/completions");
    request
        .into_body()
        .collect()
        .await
        .expect("a whole request");
    let last = match answer {
        Answer::Stream => vec![
            format!("{TOKEN}{FINISH}{USAGE}{DONE}"),
            "trailers".to_owned(),
        ],
        Answer::Cut => vec!["cut".to_owned()],
    };
    let mut steps = vec![TOKEN.to_owned(), TOKEN.to_owned()];
    steps.extend(last);
    let frames = stream::unfold(steps.into_iter(), |mut steps| async move {
        let step = steps.next()?;
        let frame = match step.as_str() {
            "cut" => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Err(std::io::Error::other("cut"))
            }
            "trailers" => {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-done", hyper::header::HeaderValue::from_static("yes"));
                Ok(Frame::trailers(trailers))
            }
            _ => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(Frame::data(Bytes::from(step)))
            }
        };
        Some((frame, steps))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    response.headers_mut().insert(
        "content-type",
        hyper::header::HeaderValue::from_static("text/event-stream"),
    );
    Ok(response)
}

/// An authority and what it signs. Made once: keys are slow.
pub(super) struct Authority {
    pub(super) pem: PathBuf,
    der: CertificateDer<'static>,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate, its key, and both as files.
pub(super) struct Identity {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    private: PrivateKeyDer<'static>,
}

/// A file of its own below the system's directory for such.
pub(super) fn file(text: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tokencanary-tls-{}-{number}.pem", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a writable directory");
    path
}

impl Authority {
    /// The one that the tests trust.
    pub(super) fn ours() -> &'static Self {
        static OURS: OnceLock<Authority> = OnceLock::new();
        OURS.get_or_init(|| Self::called("ours"))
    }

    pub(super) fn called(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        Self {
            pem: file(&certificate.pem()),
            der: certificate.der().clone(),
            key: key.serialize_pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// Its own certificate, as that of a server.
    pub(super) fn itself(&self) -> Identity {
        let key = KeyPair::from_pem(&self.key).expect("a key");
        Identity {
            cert: self.pem.clone(),
            key: file(&self.key),
            chain: vec![self.der.clone()],
            private: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        }
    }

    /// A certificate for `name` that is good until the end of `year`.
    pub(super) fn identity(&self, name: &str, year: i32) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        Identity {
            cert: file(&certificate.pem()),
            key: file(&key.serialize_pem()),
            chain: vec![certificate.der().clone()],
            private: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        }
    }

    /// TLS of a server with this identity; with `clients`, only for those it has signed.
    pub(super) fn server(&self, identity: Identity, alpn: &[&str], clients: bool) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.der.clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .expect("a verifier");
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder
            .with_single_cert(identity.chain, identity.private)
            .expect("an identity");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }
}

/// Trust in our authority only.
pub(super) fn trusting() -> NetworkConfig {
    NetworkConfig {
        tls: TlsConfig {
            ca: Some(Authority::ours().pem.clone()),
            ..TlsConfig::default()
        },
        ..NetworkConfig::default()
    }
}

/// A network in memory that has one host.
struct Pipes(Peer);

impl Connect for Pipes {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(self.0.clone().serve(theirs));
            let opened = Opened {
                wire: Wire::Pipe(ours),
                resolved: None,
                connected: progress.now(),
                tls: None,
                http2: false,
            };
            endpoint.secure(opened, progress).await
        })
    }
}

/// Several requests to one address, one after another, each of a session.
pub(super) struct Trial {
    pub(super) url: String,
    pub(super) network: NetworkConfig,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) policy: ConnectionPolicy,
    pub(super) limits: Limits,
    /// Before each request this many milliseconds pass.
    pub(super) requests: Vec<(u64, Option<u64>)>,
}

impl Trial {
    /// One request to `peer` in memory.
    pub(super) fn of(peer: &Peer, network: NetworkConfig) -> Self {
        let scheme = if peer.tls.is_some() { "https" } else { "http" };
        Self {
            url: format!("{scheme}://canary.test:1"),
            network,
            connect: Arc::new(Pipes(peer.clone())),
            policy: ConnectionPolicy::Pooled,
            limits: Limits::PROBE,
            requests: vec![(0, None)],
        }
    }

    pub(super) async fn one(self) -> RequestRecord {
        self.run().await.remove(0)
    }

    pub(super) async fn run(self) -> Vec<RequestRecord> {
        let anchor = TimeAnchor::start();
        let url = BaseUrl::parse(&self.url).expect("a good URL");
        let client = Client::new(ClientSetup {
            endpoint: Endpoint::new(url, self.network).expect("good files"),
            protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body"),
            headers: HeaderMap::new(),
            limits: self.limits,
            connect: self.connect,
            anchor,
        })
        .expect("a good path");
        let stream = Arc::new(Stream {
            id: StreamId(0),
            target_index: 0,
            target: "t".into(),
            endpoint: self.url.into(),
            probe: "p".into(),
            api: Api::Chat,
            cache: CacheMode::Cold,
            connection: self.policy,
            length: LengthMode::Exact,
            streaming: true,
            closed_loop: false,
            model: OnceLock::new(),
        });
        let mut records = Vec::new();
        for (wait, session) in self.requests {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let ids = TraceIds { trace: 1, span: 2 };
            let record = RequestRecord::due(0, Arc::clone(&stream), ids, anchor.now());
            let prompt = Prompt {
                text: "hi".into(),
                input_tokens: Some(1),
                output_tokens: Some(3),
                ..Prompt::default()
            };
            let call = Call {
                session,
                ..Call::new(record, prompt)
            };
            records.push(*client.send(call, &Cancel::default()).await);
        }
        records
    }
}
