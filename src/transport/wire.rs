//! The byte stream below HTTP, with a stamp on every read and write.
//!
//! hyper's cursor can only be filled safely from a slice, so reads go through one buffer per
//! thread: no memory per stream, one copy.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

use super::Marks;
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
    /// One end of an in-memory pipe: the network of virtual-time tests.
    Pipe(DuplexStream),
}

impl Wire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Pipe(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

/// A [`Wire`] that notes in [`Marks`] when each read and write returned.
#[derive(Debug)]
pub(super) struct StampedWire {
    pub(super) wire: Wire,
    pub(super) marks: Arc<Marks>,
    pub(super) anchor: TimeAnchor,
}

impl hyper::rt::Read for StampedWire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let room = cursor.remaining().min(READ_SIZE);
            let mut buf = ReadBuf::new(&mut scratch[..room]);
            ready!(self.wire.poll_read(cx, &mut buf))?;
            if !buf.filled().is_empty() {
                self.marks.read(self.anchor.now());
                cursor.put_slice(buf.filled());
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl hyper::rt::Write for StampedWire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.wire {
            Wire::Tcp(stream) => ready!(Pin::new(stream).poll_write(cx, bytes))?,
            Wire::Pipe(stream) => ready!(Pin::new(stream).poll_write(cx, bytes))?,
        };
        self.marks.wrote(self.anchor.now());
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Pipe(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Pipe(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
