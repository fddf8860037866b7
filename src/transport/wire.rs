//! The plain byte stream below HTTP: what hyper reads and writes.
//!
//! Below it lies the stamped socket, perhaps with TLS between. hyper's cursor can only be filled
//! safely from a slice, so reads go through one buffer per thread: no memory per stream, one
//! copy. Here it is also seen which bytes belong to a request or a response: with HTTP/1.1 all,
//! with HTTP/2 those of header and data frames; TLS brings messages of its own, which do not
//! count.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::Marks;
use super::ledger::Frames;
use super::stamped::{Raw, Stamped};
use crate::clock::TimeAnchor;

/// One read takes at most this many bytes.
const READ_SIZE: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_SIZE]);
}

/// A byte stream to an endpoint.
#[derive(Debug)]
pub enum Wire {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// One end of an in-memory pipe: the network of virtual-time tests.
    Pipe(DuplexStream),
    /// TLS over one of these.
    Tls(Box<TlsStream<Stamped>>),
}

impl Wire {
    /// The stamped stream of its bytes.
    pub(super) fn stamped(self, anchor: TimeAnchor) -> Bytes {
        match self {
            Self::Tcp(stream) => Bytes::Plain(Stamped::new(Raw::Tcp(stream), anchor)),
            Self::Unix(stream) => Bytes::Plain(Stamped::new(Raw::Unix(stream), anchor)),
            Self::Pipe(stream) => Bytes::Plain(Stamped::new(Raw::Pipe(stream), anchor)),
            Self::Tls(stream) => Bytes::Tls(stream),
        }
    }
}

/// The bytes of HTTP.
#[derive(Debug)]
pub(super) enum Bytes {
    Plain(Stamped),
    Tls(Box<TlsStream<Stamped>>),
}

impl Bytes {
    fn marks(&self) -> &Arc<Marks> {
        match self {
            Self::Plain(stream) => stream.marks(),
            Self::Tls(stream) => stream.get_ref().0.marks(),
        }
    }

    const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

/// What hyper is given: tells the [`Marks`] which bytes are whose.
#[derive(Debug)]
pub(super) struct Carrier {
    bytes: Bytes,
    marks: Arc<Marks>,
    anchor: TimeAnchor,
    /// The frames of what is read and of what is written, with HTTP/2.
    frames: Option<Box<(Frames, Frames)>>,
    /// Bytes of the request may still be inside TLS.
    unflushed: bool,
}

impl Carrier {
    /// For HTTP/1.1.
    pub(super) fn http1(bytes: Bytes, anchor: TimeAnchor) -> Self {
        Self {
            marks: Arc::clone(bytes.marks()),
            bytes,
            anchor,
            frames: None,
            unflushed: false,
        }
    }

    /// For HTTP/2.
    pub(super) fn http2(bytes: Bytes, anchor: TimeAnchor) -> Self {
        let mut carrier = Self::http1(bytes, anchor);
        carrier.marks.read_ahead();
        carrier.frames = Some(Box::new((Frames::default(), Frames::of_client())));
        carrier
    }

    pub(super) const fn marks(&self) -> &Arc<Marks> {
        &self.marks
    }

    /// `bytes` were read.
    fn arrived(&mut self, bytes: &[u8]) {
        let Some(frames) = &mut self.frames else {
            return self.marks.answered();
        };
        let Some(read) = self.marks.last_read() else {
            return;
        };
        let mut ledger = self.marks.ledger();
        frames.0.feed(bytes, |stream, part| {
            if ledger.take((stream, part), read) {
                self.marks.answered();
            }
        });
    }

    /// `bytes` were written.
    fn left(&mut self, bytes: &[u8]) {
        let mut ours = true;
        if let Some(frames) = &mut self.frames {
            ours = false;
            frames.1.feed(bytes, |_, _| ours = true);
        }
        if ours {
            self.marks.wrote(self.anchor.now(), bytes.len());
            self.unflushed = self.bytes.is_tls();
        }
    }
}

impl hyper::rt::Read for Carrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let room = cursor.remaining().min(READ_SIZE);
            let scratch = &mut scratch[..room];
            let count = match &mut self.bytes {
                Bytes::Plain(stream) => ready!(stream.poll_take(cx, scratch))?,
                Bytes::Tls(stream) => {
                    let mut buf = ReadBuf::new(scratch);
                    ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
                    buf.filled().len()
                }
            };
            if count > 0 {
                self.arrived(&scratch[..count]);
                cursor.put_slice(&scratch[..count]);
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl hyper::rt::Write for Carrier {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.bytes {
            Bytes::Plain(stream) => ready!(Pin::new(stream).poll_write(cx, bytes))?,
            Bytes::Tls(stream) => ready!(Pin::new(stream).poll_write(cx, bytes))?,
        };
        self.left(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => ready!(Pin::new(stream).poll_flush(cx))?,
            Bytes::Tls(stream) => ready!(Pin::new(stream).poll_flush(cx))?,
        }
        if self.unflushed {
            self.unflushed = false;
            self.marks.wrote(self.anchor.now(), 0);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
