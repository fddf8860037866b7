//! One HTTP connection over a stamped byte stream.
//!
//! HTTP/1.1 or HTTP/2, one exchange at a time in either. A response comes as its head, then as
//! parts of its body, each with the read that brought it.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::TrySendError;
use hyper::{Request, Response};

use super::body::FramingError;
use super::diagnosis::{Ends, tcp_info_now};
use super::http1::Http1;
use super::http2::Http2;
use super::{Marks, ReadMark, Spoken, Wire, tls};
use crate::clock::{MonoTime, TimeAnchor};

/// An open connection. It carries one exchange at a time.
#[derive(Debug)]
pub struct Connection {
    http: Http,
    marks: Arc<Marks>,
    exchanges: u32,
    /// Its ends, if it is one of TCP.
    ends: Option<Ends>,
    /// At the end of which exchange the kernel was asked about it, and what had been sent again by then.
    told: (u32, u32),
    /// When it was opened.
    pub(super) since: MonoTime,
    /// How long the server keeps it open unused, where it said so.
    pub(super) idle_limit: Option<Duration>,
}

#[derive(Debug)]
enum Http {
    One(Http1),
    Two(Http2),
}

/// What the kernel knows of a connection of TCP at the end of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpReport {
    /// Smoothed round trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rtt_deviation: Duration,
    /// Segments that we had to send again since the exchange before this one ended; `None` if the
    /// kernel was not asked then.
    pub retransmits: Option<u32>,
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

/// What was taken of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A part, perhaps an empty one.
    Part,
    /// Nothing: it is over.
    End,
    /// Nothing: the connection ended, and with it the body, which has no other end.
    Closed,
}

/// Why a body has no proper end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection could not be read.
    #[error("error reading a body from connection: {0}")]
    Read(io::Error),
    /// It ended in the middle of the body.
    #[error("the connection ended before the body did")]
    Cut,
    /// The body is not framed as HTTP/1.1 wants it.
    #[error("bad framing of the body: {0}")]
    Framing(FramingError),
    /// The stream of HTTP/2 failed.
    #[error("{}", with_source(.0))]
    Http2(hyper::Error),
}

impl Connection {
    /// Starts HTTP/1.1 on `wire`.
    #[must_use]
    pub fn start(wire: Wire, anchor: TimeAnchor) -> Self {
        let ends = wire.ends();
        let bytes = wire.stamped(anchor);
        let marks = Arc::clone(bytes.marks());
        Self::new(Http::One(Http1::new(bytes, anchor)), (marks, ends), anchor)
    }

    /// Starts HTTP/2 on `wire`, which the server is known to speak. The task that drives the
    /// connection ends with it.
    ///
    /// # Errors
    ///
    /// If the stream is closed at once.
    pub async fn start_http2(wire: Wire, anchor: TimeAnchor) -> hyper::Result<Self> {
        let ends = wire.ends();
        let bytes = wire.stamped(anchor);
        let marks = Arc::clone(bytes.marks());
        let http = Http2::start(bytes, anchor).await?;
        Ok(Self::new(Http::Two(http), (marks, ends), anchor))
    }

    fn new(http: Http, (marks, ends): (Arc<Marks>, Option<Ends>), anchor: TimeAnchor) -> Self {
        Self {
            http,
            marks,
            exchanges: 0,
            ends,
            told: (0, 0),
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

    /// What the kernel knows of it, at the end of an exchange; `None` if it is no connection of
    /// TCP, or the kernel was asked just now, or does not say.
    pub fn tcp_report(&mut self, now: MonoTime) -> Option<TcpReport> {
        let info = tcp_info_now(self.ends?, now)?;
        let (exchange, retransmits) = self.told;
        self.told = (self.exchanges, info.retransmits);
        let since = info.retransmits.checked_sub(retransmits);
        Some(TcpReport {
            rtt: info.rtt,
            rtt_deviation: info.rtt_deviation,
            retransmits: since.filter(|_| exchange + 1 == self.exchanges),
        })
    }

    /// Waits until a request can be written. False if the connection is closed, or its last
    /// response was not read to its end.
    pub async fn ready(&mut self) -> bool {
        match &mut self.http {
            Http::One(http) => http.is_open(),
            Http::Two(http) => http.ready().await,
        }
    }

    /// Whether a connection that rests is known to have been closed.
    pub(super) fn is_closed(&mut self) -> bool {
        match &mut self.http {
            Http::One(http) => !http.is_open(),
            Http::Two(http) => http.is_closed(),
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
    ) -> Result<Response<()>, SendFailure> {
        self.exchanges += 1;
        let response = match &mut self.http {
            Http::One(http) => http.send(request).await?,
            Http::Two(http) => http.send(request).await?,
        };
        self.idle_limit = keep_alive_timeout(&response);
        Ok(response)
    }

    /// Waits for more of the body of the response and gives it to `take`, in parts, each with
    /// the read that brought its last byte.
    ///
    /// # Errors
    ///
    /// If the body can have no proper end any more.
    pub async fn body(
        &mut self,
        mut take: impl FnMut(&[u8], ReadMark),
    ) -> Result<Taken, BodyError> {
        poll_fn(|cx| -> Poll<Result<Taken, BodyError>> {
            match &mut self.http {
                Http::One(http) => http.poll_body(cx, &mut take),
                Http::Two(http) => http.poll_body(cx, &mut take),
            }
        })
        .await
    }
}

/// hyper's message and the error below it.
#[must_use]
pub fn with_source(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// What is known of a failed request beside what hyper says.
pub(super) struct Known {
    /// The alert by which the server ended TLS.
    pub(super) alert: Option<String>,
    /// What the server speaks, if it said a byte.
    pub(super) theirs: Option<Spoken>,
    pub(super) ours: Spoken,
}

/// Why hyper got no response.
pub(super) fn not_sent(
    mut failure: TrySendError<Request<Full<Bytes>>>,
    known: Known,
) -> SendFailure {
    let is_unsent = failure.take_message().is_some();
    let error = failure.into_error();
    let Known {
        alert,
        theirs,
        ours,
    } = known;
    let theirs = theirs.filter(|theirs| *theirs != ours && *theirs != Spoken::Other);
    match (tls::alert_in(&error).or(alert), theirs) {
        (Some(alert), _) => SendFailure::Tls(alert),
        (None, Some(theirs)) => SendFailure::Other { theirs, ours },
        (None, None) if is_unsent => SendFailure::Unsent,
        (None, None) => SendFailure::Broken(error),
    }
}

/// The `timeout` of a `Keep-Alive` header.
fn keep_alive_timeout(response: &Response<()>) -> Option<Duration> {
    let header = response.headers().get("keep-alive")?.to_str().ok()?;
    header
        .split(',')
        .find_map(|part| part.trim().strip_prefix("timeout="))
        .and_then(|seconds| seconds.parse().ok())
        .map(Duration::from_secs)
}
