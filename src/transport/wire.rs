//! The plain byte stream below HTTP: a stamped socket, perhaps with TLS between.
//!
//! Reads go through one buffer per thread: no memory per stream. What is read is looked at where
//! it lies and what outlives the look is copied.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::Marks;
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
    /// Both ends, if it is a connection of TCP.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0.tcp()?,
            Self::Unix(_) | Self::Pipe(_) => return None,
        };
        Some((stream.local_addr().ok()?, stream.peer_addr().ok()?))
    }

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
    pub(super) fn marks(&self) -> &Arc<Marks> {
        match self {
            Self::Plain(stream) => stream.marks(),
            Self::Tls(stream) => stream.get_ref().0.marks(),
        }
    }

    pub(super) const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Reads at most `most` bytes once and shows them to `look`; none are the end.
    pub(super) fn poll_look<R>(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Poll<io::Result<R>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let scratch = &mut scratch[..most.min(READ_SIZE)];
            let count = match self {
                Self::Plain(stream) => ready!(stream.poll_take(cx, scratch))?,
                Self::Tls(stream) => {
                    let mut buf = ReadBuf::new(scratch);
                    ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
                    buf.filled().len()
                }
            };
            Poll::Ready(Ok(look(&scratch[..count])))
        })
    }

    /// Whether the other side has neither ended the stream nor sent anything.
    pub(super) fn is_quiet(&mut self) -> bool {
        let raw = match self {
            Self::Plain(stream) => stream.has_news(),
            Self::Tls(stream) => stream.get_ref().0.has_news(),
        };
        // TLS has messages of its own, which are read over.
        raw == Some(false)
            || (raw.is_none() || self.is_tls())
                && self
                    .poll_look(&mut Context::from_waker(Waker::noop()), READ_SIZE, |_| ())
                    .is_pending()
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Writes of several parts what is taken at once.
    pub(super) fn poll_write_parts(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
