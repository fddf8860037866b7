//! One HTTP connection: hyper's connection-level client over a stamped byte stream.
//!
//! HTTP/1.1 or HTTP/2, one exchange at a time in either: other streams on the connection would
//! blur the stamps, and a new exchange finds an idle connection anyway.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http2;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri, header};
use hyper_util::rt::TokioExecutor;

use super::wire::Carrier;
use super::{Marks, Spoken, Wire, tls};
use crate::clock::{MonoTime, TimeAnchor};

/// Largest response head that is read.
const MAX_HEAD: u32 = 64 * 1024;

/// An open connection. It carries one exchange at a time.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    marks: Arc<Marks>,
    /// The alert by which the server ended TLS, if it did.
    alert: Arc<OnceLock<String>>,
    /// What the server speaks, once it said a byte.
    spoken: Arc<OnceLock<Spoken>>,
    exchanges: u32,
    /// When it was opened.
    pub(super) since: MonoTime,
    /// How long the server keeps it open unused, where it said so.
    pub(super) idle_limit: Option<Duration>,
}

/// What a connection tells beside its responses.
struct Told {
    marks: Arc<Marks>,
    spoken: Arc<OnceLock<Spoken>>,
}

impl Told {
    fn of(carrier: &Carrier) -> Self {
        Self {
            marks: Arc::clone(carrier.marks()),
            spoken: Arc::clone(carrier.spoken()),
        }
    }
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>, Scheme),
}

/// Why a request got no response.
#[derive(Debug)]
pub enum SendFailure {
    /// The connection was closed before a byte of it was written.
    Unsent,
    /// The server ended TLS; it says why.
    Tls(String),
    /// The server speaks something else than we do.
    Other {
        /// What it speaks.
        theirs: Spoken,
        /// What we speak.
        ours: Spoken,
    },
    /// It was written at least in part.
    Broken(hyper::Error),
}

impl Connection {
    /// Starts HTTP/1.1 on `wire`. The task that drives the connection ends with it.
    ///
    /// # Errors
    ///
    /// If the stream is closed at once.
    pub async fn start(wire: Wire, anchor: TimeAnchor) -> hyper::Result<Self> {
        let carrier = Carrier::http1(wire.stamped(anchor), anchor);
        let told = Told::of(&carrier);
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(MAX_HEAD as usize)
            .handshake(carrier)
            .await?;
        Ok(Self::new(
            Sender::Http1(sender),
            told,
            (drive(driver), anchor),
        ))
    }

    /// Starts HTTP/2 on `wire`, which the server is known to speak.
    ///
    /// # Errors
    ///
    /// If the stream is closed at once.
    pub async fn start_http2(wire: Wire, anchor: TimeAnchor) -> hyper::Result<Self> {
        let scheme = match wire {
            Wire::Tls(_) => Scheme::HTTPS,
            Wire::Tcp(_) | Wire::Unix(_) | Wire::Pipe(_) => Scheme::HTTP,
        };
        let carrier = Carrier::http2(wire.stamped(anchor), anchor);
        let told = Told::of(&carrier);
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(MAX_HEAD)
            .handshake(carrier)
            .await?;
        let sender = Sender::Http2(sender, scheme);
        Ok(Self::new(sender, told, (drive(driver), anchor)))
    }

    fn new(
        sender: Sender,
        Told { marks, spoken }: Told,
        (alert, anchor): (Arc<OnceLock<String>>, TimeAnchor),
    ) -> Self {
        Self {
            sender,
            marks,
            alert,
            spoken,
            exchanges: 0,
            since: anchor.now(),
            idle_limit: None,
        }
    }

    /// The instants of its reads and writes.
    #[must_use]
    pub fn marks(&self) -> &Arc<Marks> {
        &self.marks
    }

    /// Whether it carried a request before this one.
    #[must_use]
    pub const fn is_reused(&self) -> bool {
        self.exchanges > 1
    }

    /// Waits until a request can be written. False if the connection is closed.
    pub async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::Http2(sender, _) => sender.ready().await.is_ok(),
        }
    }

    /// Sends `request`, whose URI is a path and which has a `host`, and waits for the response
    /// head. Interim responses are skipped.
    ///
    /// # Errors
    ///
    /// If the connection ended first; the error says whether anything was written.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendFailure> {
        self.exchanges += 1;
        let sent = match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(request).await,
            Sender::Http2(sender, scheme) => {
                let request = absolute(request, scheme);
                sender.try_send_request(request).await
            }
        };
        match sent {
            Ok(response) => {
                self.idle_limit = keep_alive_timeout(&response);
                Ok(response)
            }
            Err(mut failure) => {
                let is_unsent = failure.take_message().is_some();
                let error = failure.into_error();
                let alert = tls::alert_in(&error).or_else(|| self.alert.get().cloned());
                Err(match (alert, self.other()) {
                    (Some(alert), _) => SendFailure::Tls(alert),
                    (None, Some(other)) => other,
                    (None, None) if is_unsent => SendFailure::Unsent,
                    (None, None) => SendFailure::Broken(error),
                })
            }
        }
    }

    /// The server's first bytes, if they are of another protocol than ours.
    fn other(&self) -> Option<SendFailure> {
        let ours = match &self.sender {
            Sender::Http1(_) => Spoken::Http1,
            Sender::Http2(..) => Spoken::Http2,
        };
        let theirs = *self.spoken.get()?;
        let differs = theirs != ours && theirs != Spoken::Other;
        differs.then_some(SendFailure::Other { theirs, ours })
    }
}

/// Drives a connection to its end. The alert that ended it is kept: it may come before there is
/// a request to fail.
fn drive<F>(driver: F) -> Arc<OnceLock<String>>
where
    F: Future<Output = hyper::Result<()>> + Send + 'static,
{
    let kept = Arc::new(OnceLock::new());
    let alert = Arc::clone(&kept);
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::trace!(%error, "connection ended");
            if let Some(why) = tls::alert_in(&error) {
                alert.get_or_init(|| why);
            }
        }
    });
    kept
}

/// In HTTP/2 the URI is whole, and what was the `host` header is a part of it.
fn absolute(mut request: Request<Full<Bytes>>, scheme: &Scheme) -> Request<Full<Bytes>> {
    let host = request.headers_mut().remove(header::HOST);
    let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(scheme.clone());
    parts.authority = authority;
    parts
        .path_and_query
        .get_or_insert_with(|| PathAndQuery::from_static("/"));
    // Without an authority hyper refuses it, which ends as a record.
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    request
}

/// The `timeout` of a `Keep-Alive` header.
fn keep_alive_timeout(response: &Response<Incoming>) -> Option<Duration> {
    let header = response.headers().get("keep-alive")?.to_str().ok()?;
    header
        .split(',')
        .find_map(|part| part.trim().strip_prefix("timeout="))
        .and_then(|seconds| seconds.parse().ok())
        .map(Duration::from_secs)
}
