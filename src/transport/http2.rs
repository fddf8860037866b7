//! One HTTP/2 connection: hyper's client, driven by a task of its own.
//!
//! It carries one exchange at a time: other streams would blur the stamps, and a new exchange
//! finds an idle connection anyway. The task reads ahead, so the [`super::ledger`] walks the
//! frames that pass by and tells which read brought which byte of a body.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::rt::ReadBufCursor;
use hyper::{Request, Response, Uri, header};
use hyper_util::rt::TokioExecutor;

use super::connection::{BodyError, Known, SendFailure, Taken, not_sent};
use super::ledger::Frames;
use super::{Marks, ReadMark, Spoken, tls, wire};
use crate::clock::TimeAnchor;

/// Largest response head that is read.
const MAX_HEAD: u32 = 64 * 1024;

/// A connection and the response that is under way on it.
#[derive(Debug)]
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    scheme: Scheme,
    marks: Arc<Marks>,
    anchor: TimeAnchor,
    /// The alert by which the server ended TLS, if it did.
    alert: Arc<OnceLock<String>>,
    /// What the server speaks, once it said a byte.
    spoken: Arc<OnceLock<Spoken>>,
    body: Option<Incoming>,
    /// Bytes of the body that were given out.
    count: u64,
}

impl Http2 {
    pub(super) async fn start(bytes: wire::Bytes, anchor: TimeAnchor) -> hyper::Result<Self> {
        let scheme = if bytes.is_tls() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        let marks = Arc::clone(bytes.marks());
        marks.read_ahead();
        let carrier = Carrier::new(bytes, anchor);
        let spoken = Arc::clone(&carrier.spoken);
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .max_header_list_size(MAX_HEAD)
            .handshake(carrier)
            .await?;
        Ok(Self {
            sender,
            scheme,
            marks,
            anchor,
            alert: drive(driver),
            spoken,
            body: None,
            count: 0,
        })
    }

    /// Waits until a request can be written. False if the connection is closed.
    pub(super) async fn ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Writes `request` and reads the head of its response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<()>, SendFailure> {
        let request = absolute(request, &self.scheme);
        let sent = self.sender.try_send_request(request).await;
        let response = sent.map_err(|failure| {
            let known = Known {
                alert: self.alert.get().cloned(),
                theirs: self.spoken.get().copied(),
                ours: Spoken::Http2,
            };
            not_sent(failure, known)
        })?;
        let (head, body) = response.into_parts();
        self.body = Some(body);
        self.count = 0;
        Ok(Response::from_parts(head, ()))
    }

    /// Gives the next part of the body to `take`, with the read that brought its last byte.
    pub(super) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8], ReadMark),
    ) -> Poll<Result<Taken, BodyError>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(Taken::End));
        };
        let Some(frame) = ready!(Pin::new(body).poll_frame(cx)) else {
            self.body = None;
            return Poll::Ready(Ok(Taken::End));
        };
        if let Ok(data) = frame.map_err(BodyError::Http2)?.into_data() {
            self.count += data.len() as u64;
            let read = self.marks.read_of(self.count);
            let read = read.unwrap_or_else(|| ReadMark::user(self.anchor.now(), 0));
            take(&data, read);
        }
        Poll::Ready(Ok(Taken::Part))
    }
}

/// What hyper reads and writes: tells the [`Marks`] which bytes are whose.
#[derive(Debug)]
struct Carrier {
    bytes: wire::Bytes,
    marks: Arc<Marks>,
    anchor: TimeAnchor,
    /// The frames of what is read and of what is written.
    frames: (Frames, Frames),
    /// Bytes of the request may still be inside TLS.
    unflushed: bool,
    /// What the server speaks, once it said a byte.
    spoken: Arc<OnceLock<Spoken>>,
}

impl Carrier {
    fn new(bytes: wire::Bytes, anchor: TimeAnchor) -> Self {
        Self {
            marks: Arc::clone(bytes.marks()),
            bytes,
            anchor,
            frames: (Frames::default(), Frames::of_client()),
            unflushed: false,
            spoken: Arc::default(),
        }
    }
}

impl hyper::rt::Read for Carrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            bytes,
            marks,
            frames,
            spoken,
            ..
        } = &mut *self;
        bytes.poll_look(cx, cursor.remaining(), |bytes| {
            if let Some(read) = marks.last_read().filter(|_| !bytes.is_empty()) {
                spoken.get_or_init(|| Spoken::of(bytes));
                let mut ledger = marks.ledger();
                frames.0.feed(bytes, |stream, part| {
                    if ledger.take((stream, part), read) {
                        marks.answered();
                    }
                });
            }
            cursor.put_slice(bytes);
        })
    }
}

impl hyper::rt::Write for Carrier {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.bytes.poll_write(cx, bytes))?;
        let mut is_ours = false;
        self.frames.1.feed(&bytes[..written], |_, _| is_ours = true);
        if is_ours {
            self.marks.wrote(self.anchor.now(), written);
            self.unflushed = self.bytes.is_tls();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.bytes.poll_flush(cx))?;
        if self.unflushed {
            self.unflushed = false;
            self.marks.wrote(self.anchor.now(), 0);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.poll_shutdown(cx)
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
