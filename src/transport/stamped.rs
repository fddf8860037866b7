//! The socket itself, with a stamp on every read.
//!
//! The kernel's stamp where it gives one (TCP on Linux), else our clock right after the read.
//! TLS lies above this: its reads are stamped by when the ciphertext came.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::marks::{Arrival, StampClock};
use super::rest::{self, Known};
use super::{Marks, kernel};
use crate::clock::{MonoTime, TimeAnchor};

/// One read for TLS takes at most this many bytes: the largest record and its head.
const RECORD: usize = 17 * 1024;

/// A stamp this much older than the moment at which the thread had nothing left to read is not
/// when the bytes became readable: they had to wait for others that were lost on the way.
const REORDERED: Duration = Duration::from_millis(5);

/// What carries the bytes.
#[derive(Debug)]
pub(super) enum Raw {
    Tcp(TcpStream),
    Unix(UnixStream),
    Pipe(DuplexStream),
}

/// A byte stream that notes its reads in [`Marks`].
#[derive(Debug)]
pub struct Stamped {
    raw: Raw,
    marks: Arc<Marks>,
    anchor: TimeAnchor,
    /// The last moment at which nothing was there to be read.
    emptied: MonoTime,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    count: usize,
    /// The kernel's stamp of the last byte, nanoseconds of Unix time.
    stamp: Option<u64>,
    /// When the read began, if it took all there was.
    emptied: Option<MonoTime>,
}

impl Stamped {
    /// The connection below, if it is one of TCP.
    pub(super) const fn tcp(&self) -> Option<&TcpStream> {
        match &self.raw {
            Raw::Tcp(stream) => Some(stream),
            Raw::Unix(_) | Raw::Pipe(_) => None,
        }
    }

    pub(super) fn new(raw: Raw, anchor: TimeAnchor) -> Self {
        #[cfg(target_os = "linux")]
        if let Raw::Tcp(stream) = &raw {
            kernel::stamp_reads(stream);
        }
        Self {
            raw,
            marks: Arc::default(),
            anchor,
            emptied: anchor.now(),
        }
    }

    pub(super) const fn marks(&self) -> &Arc<Marks> {
        &self.marks
    }

    /// Reads into `bytes` and returns how many came; 0 is the end.
    pub(super) fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let received = match &mut self.raw {
            #[cfg(target_os = "linux")]
            Raw::Tcp(stream) => ready!(poll_receive(stream, cx, (bytes, self.anchor)))?,
            #[cfg(not(target_os = "linux"))]
            Raw::Tcp(stream) => ready!(poll_plain(stream, cx, bytes))?,
            Raw::Unix(stream) => ready!(poll_plain(stream, cx, bytes))?,
            Raw::Pipe(stream) => ready!(poll_plain(stream, cx, bytes))?,
        };
        if received.count > 0 {
            self.note(received.stamp);
        }
        self.emptied = received.emptied.unwrap_or(self.emptied);
        Poll::Ready(Ok(received.count))
    }

    /// Whether there is something to read, the end included, or `None` if only a read can tell.
    pub(super) fn has_news(&self) -> Option<bool> {
        match &self.raw {
            #[cfg(target_os = "linux")]
            Raw::Tcp(stream) => kernel::has_news(stream),
            #[cfg(target_os = "linux")]
            Raw::Unix(stream) => kernel::has_news(stream),
            _ => None,
        }
    }

    fn note(&self, stamp: Option<u64>) {
        let Known { sleep, looked } = rest::known();
        let woke = sleep.map(|sleep| self.anchor.at(sleep.ended));
        let looked = looked.map(|looked| self.anchor.at(looked));
        let Some(stamp) = stamp else {
            let at = self.anchor.now();
            return self.marks.read(Arrival {
                at,
                returned: at,
                clock: StampClock::User,
                bad_stamp: false,
                woke,
                looked,
            });
        };
        let now = self.anchor.wall();
        let earliest = sleep.map_or(MonoTime::ZERO, |sleep| {
            self.anchor.at(sleep.began).minus(REORDERED)
        });
        let placed = kernel::placed(now, stamp, self.emptied.max(earliest));
        self.marks.read(Arrival {
            at: placed.unwrap_or(now.mono()),
            returned: now.mono(),
            clock: if placed.is_some() {
                StampClock::Kernel
            } else {
                StampClock::User
            },
            bad_stamp: placed.is_none(),
            woke,
            looked,
        });
    }
}

/// A read of something that has no stamps.
fn poll_plain<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    bytes: &mut [u8],
) -> Poll<io::Result<Received>> {
    let mut buf = ReadBuf::new(bytes);
    ready!(Pin::new(stream).poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(Received {
        count: buf.filled().len(),
        ..Received::default()
    }))
}

/// Like tokio's read, but with the kernel's stamp. After a short read the socket counts as
/// empty, which saves a second call per wake-up that would find nothing.
#[cfg(target_os = "linux")]
fn poll_receive(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    (bytes, anchor): (&mut [u8], TimeAnchor),
) -> Poll<io::Result<Received>> {
    let mut emptied = None;
    loop {
        ready!(stream.poll_read_ready(cx))?;
        let before = anchor.now();
        let mut got = None;
        let tried = stream.try_io(tokio::io::Interest::READABLE, || {
            let (count, stamp) = kernel::receive(stream, bytes)?;
            got = Some((count, stamp));
            if count > 0 && count < bytes.len() {
                // Clears the readiness.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        });
        match (got, tried) {
            (Some((count, stamp)), tried) => {
                return Poll::Ready(Ok(Received {
                    count,
                    stamp,
                    emptied: tried.is_err().then_some(before).or(emptied),
                }));
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                emptied = Some(before);
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            (None, Err(error)) => return Poll::Ready(Err(error)),
            (None, Ok(())) => return Poll::Ready(Ok(Received::default())),
        }
    }
}

/// For TLS, which reads its records through this.
impl AsyncRead for Stamped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining().min(RECORD);
        let count = ready!(self.poll_take(cx, buf.initialize_unfilled_to(room)))?;
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.raw {
            Raw::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Raw::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Raw::Pipe(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.raw {
            Raw::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Raw::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Raw::Pipe(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.raw {
            Raw::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Raw::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Raw::Pipe(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.raw {
            Raw::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Raw::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Raw::Pipe(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
