//! One HTTP/1.1 connection: hyper writes requests and reads response heads, we read the bodies.
//!
//! hyper gives a body out one HTTP chunk at a time through a channel between two tasks, which
//! cost more than all else that we do with a chunk (`docs/decisions/0008-http1-bodies.md`). So
//! hyper runs within the exchange, is shown a response up to the end of its head, and is let go;
//! the body is then taken straight from the buffer of the read that brought it. Nothing runs for
//! a connection that rests: whether it is still open is asked when it is needed.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HeaderMap, TRANSFER_ENCODING};
use hyper::http::HeaderName;
use hyper::rt::ReadBufCursor;
use hyper::{Request, Response, Version};

use super::body::Framing;
use super::connection::{BodyError, Known, SendFailure, Taken, not_sent};
use super::head::HeadEnd;
use super::{Marks, ReadMark, Spoken, tls, wire};
use crate::clock::TimeAnchor;

/// Largest response head that is read.
const MAX_HEAD: usize = 64 * 1024;
/// One read of a body takes at most this many bytes.
const READ_SIZE: usize = 64 * 1024;

/// A connection and the response that is under way on it.
#[derive(Debug)]
pub(super) struct Http1 {
    /// Absent where hyper did not give it back: the connection is of no use any more.
    line: Option<Line>,
    framing: Framing,
    /// Whether the connection can be used after this response.
    may_stay: bool,
}

/// What hyper reads and writes.
#[derive(Debug)]
struct Line {
    bytes: wire::Bytes,
    marks: Arc<Marks>,
    anchor: TimeAnchor,
    /// Bytes of the request may still be inside TLS.
    unflushed: bool,
    request: Outgoing,
    head: HeadEnd,
    /// What the server speaks, once it said a byte.
    spoken: Option<Spoken>,
    /// What came in one read with the end of the head.
    rest: Vec<u8>,
}

/// How much of a request was written.
#[derive(Debug, Clone, Copy, Default)]
struct Outgoing {
    head: HeadEnd,
    /// Bytes of its body that are not written yet.
    left: u64,
}

impl Http1 {
    pub(super) fn new(bytes: wire::Bytes, anchor: TimeAnchor) -> Self {
        Self {
            line: Some(Line {
                marks: Arc::clone(bytes.marks()),
                bytes,
                anchor,
                unflushed: false,
                request: Outgoing::default(),
                head: HeadEnd::default(),
                spoken: None,
                rest: Vec::new(),
            }),
            framing: Framing::Length(0),
            may_stay: true,
        }
    }

    /// Whether another request can be written.
    pub(super) fn is_open(&mut self) -> bool {
        self.may_stay
            && self.framing.is_over()
            && self.line.as_mut().is_some_and(|line| line.bytes.is_quiet())
    }

    /// Writes `request` and reads the head of its response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<()>, SendFailure> {
        let Some(mut line) = self.line.take() else {
            return Err(SendFailure::Unsent);
        };
        let length = request.body().size_hint().exact();
        line.begin(length.unwrap_or_default());
        let marks = Arc::clone(&line.marks);
        let (mut sender, mut driver) = http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .handshake(line)
            .await
            .map_err(SendFailure::Broken)?;
        let mut sent = pin!(sender.try_send_request(request));
        let mut ended = None;
        let response = std::future::poll_fn(|cx| {
            if ended.is_none()
                && let Poll::Ready(end) = driver.poll_without_shutdown(cx)
            {
                ended = Some(end);
            }
            sent.as_mut().poll(cx)
        })
        .await;
        let response = match response {
            Ok(response) => response,
            Err(failure) => {
                let ended = ended.and_then(Result::err);
                let known = Known {
                    alert: ended.and_then(|error| tls::alert_in(&error)),
                    theirs: driver.into_parts().io.spoken,
                    ours: Spoken::Http1,
                };
                return Err(not_sent(failure, known));
            }
        };
        if response.status().is_success() {
            // A server that answers before it has the whole request gets the rest all the same.
            std::future::poll_fn(|cx| {
                let ended = driver.poll_without_shutdown(cx).is_ready();
                if ended || marks.is_sent() {
                    return Poll::Ready(());
                }
                Poll::Pending
            })
            .await;
        }
        let line = driver.into_parts().io;
        self.may_stay = marks.is_sent() && stays_open(&response);
        self.framing = framing(&response);
        self.line = Some(line);
        Ok(response.map(drop))
    }

    /// Reads once, if need be, and gives the parts of the body to `take`, with the read that
    /// brought them.
    pub(super) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8], ReadMark),
    ) -> Poll<Result<Taken, BodyError>> {
        let Some(line) = self.line.as_mut() else {
            return Poll::Ready(Ok(Taken::End));
        };
        if self.framing.is_over() && line.rest.is_empty() {
            return Poll::Ready(Ok(Taken::End));
        }
        let (marks, anchor) = (&line.marks, line.anchor);
        let framing = &mut self.framing;
        let mut look = |bytes: &[u8]| {
            let read = marks.last_read();
            let read = read.unwrap_or_else(|| ReadMark::user(anchor.now(), 0));
            let used = framing.feed(bytes, &mut |part| take(part, read))?;
            Ok((bytes.len(), used))
        };
        let rest = std::mem::take(&mut line.rest);
        let fed = if rest.is_empty() {
            ready!(line.bytes.poll_look(cx, READ_SIZE, look)).map_err(BodyError::Read)?
        } else {
            look(&rest)
        };
        let (count, used) = fed.map_err(BodyError::Framing)?;
        if count == 0 {
            self.may_stay = false;
            return Poll::Ready(match self.framing {
                Framing::UntilClose => Ok(Taken::Closed),
                _ => Err(BodyError::Cut),
            });
        }
        // What follows a response that nobody asked for more of is not of HTTP.
        self.may_stay &= used == count;
        Poll::Ready(Ok(Taken::Part))
    }
}

impl Line {
    /// A request whose body has `length` bytes is written next.
    fn begin(&mut self, length: u64) {
        self.request = Outgoing {
            head: HeadEnd::of_request(),
            left: length,
        };
        self.head = HeadEnd::default();
        self.unflushed = false;
        self.marks.set_sent(false);
    }

    /// The first `written` bytes of `parts` are on their way.
    fn left<'p>(&mut self, parts: impl IntoIterator<Item = &'p [u8]>, written: usize) {
        self.marks.wrote(self.anchor.now(), written);
        self.unflushed = self.bytes.is_tls();
        let (request, mut rest) = (&mut self.request, written);
        for part in parts {
            let part = &part[..part.len().min(rest)];
            rest -= part.len();
            let mut body = part.len();
            if !request.head.is_over() {
                body -= request.head.feed(part);
            }
            request.left = request.left.saturating_sub(body as u64);
        }
        self.note_sent();
    }

    fn note_sent(&self) {
        if self.request.head.is_over() && self.request.left == 0 && !self.unflushed {
            self.marks.set_sent(true);
        }
    }
}

impl hyper::rt::Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            bytes,
            marks,
            head,
            rest,
            spoken,
            ..
        } = &mut *self;
        if head.is_over() {
            // The rest is not for hyper, which is about to be let go.
            return Poll::Pending;
        }
        bytes.poll_look(cx, cursor.remaining(), |bytes| {
            if bytes.is_empty() {
                return;
            }
            marks.answered();
            spoken.get_or_insert_with(|| Spoken::of(bytes));
            let (of_head, behind) = bytes.split_at(head.feed(bytes));
            cursor.put_slice(of_head);
            rest.extend_from_slice(behind);
        })
    }
}

impl hyper::rt::Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.bytes.poll_write(cx, bytes))?;
        self.left([bytes], written);
        Poll::Ready(Ok(written))
    }

    /// A body is written from where it lies, however long it is.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.bytes.poll_write_parts(cx, parts))?;
        self.left(parts.iter().map(|part| &**part), written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.bytes.poll_flush(cx))?;
        if self.unflushed {
            self.unflushed = false;
            self.marks.wrote(self.anchor.now(), 0);
            self.note_sent();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.poll_shutdown(cx)
    }
}

/// How the end of the body of `response` is known; hyper has checked that its head agrees with
/// itself.
fn framing(response: &Response<Incoming>) -> Framing {
    if let Some(length) = response.body().size_hint().exact() {
        return Framing::Length(length);
    }
    if tokens(response.headers(), &TRANSFER_ENCODING)
        .last()
        .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    {
        Framing::CHUNKED
    } else {
        Framing::UntilClose
    }
}

/// Whether the server keeps the connection open after `response`, by its head.
fn stays_open(response: &Response<Incoming>) -> bool {
    let says = |what: &str| {
        tokens(response.headers(), &CONNECTION).any(|token| token.eq_ignore_ascii_case(what))
    };
    match response.version() {
        Version::HTTP_10 => says("keep-alive"),
        _ => !says("close"),
    }
}

/// The comma-separated values of all headers called `name`.
fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}
