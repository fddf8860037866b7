//! Puts the routes on a listener, within bounds: so many connections, so long in silence, so
//! long at the stop. A client that is stuck holds neither the others nor the exit: where there is
//! no place for a new connection, the one on which nothing has moved for longest gives its up.

mod places;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::places::{Place, Places};

/// Connections at a time; a browser holds six, a Prometheus one.
const CONNECTIONS: usize = 64;

/// A connection on which nothing moves for so long is closed. Longer than any usual scrape
/// interval, so that those connections are kept.
const SILENCE: Duration = Duration::from_mins(3);

/// A request must be there in full within this time of its first byte, or of the connection.
const ASKING: Duration = Duration::from_secs(10);

/// Open answers may take so long after the stop.
const GRACE: Duration = Duration::from_millis(500);

/// Serves until `stop` is done, then for half a second at most.
///
/// # Errors
///
/// If the listener's address cannot be read. Failed accepts are retried, failed connections
/// end alone.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let stopping = CancellationToken::new();
    let bounded = Bounded {
        listener,
        places: Places::new(CONNECTIONS),
    };
    let server = axum::serve(bounded, router)
        .with_graceful_shutdown(stopping.clone().cancelled_owned())
        .into_future();
    tokio::pin!(server);
    tokio::select! {
        result = &mut server => return result,
        () = stop => stopping.cancel(),
    }
    // Who is not done by then is cut off when the runtime ends.
    timeout(GRACE, server).await.unwrap_or(Ok(()))
}

/// A listener whose connections have a place each.
struct Bounded {
    listener: TcpListener,
    places: Places,
}

impl Listener for Bounded {
    type Io = Watched;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The accept of axum's own implementation waits and retries after an error.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let place = self.places.take().await;
        let watched = Watched {
            stream,
            asking: true,
            silence: Box::pin(sleep(ASKING)),
            place,
        };
        (watched, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when nothing has moved on it for [`SILENCE`], when a request has not
/// come in full after [`ASKING`], or when another needs its place.
struct Watched {
    stream: TcpStream,
    /// A request is being read, or has not begun on a new connection.
    asking: bool,
    silence: Pin<Box<Sleep>>,
    place: Place,
}

impl Watched {
    /// An answer moves: the request was there.
    fn wrote<T>(&mut self, moved: &Poll<io::Result<T>>) {
        if moved.is_ready() {
            self.place.answers();
            self.asking = false;
            self.silence.as_mut().set(sleep(SILENCE));
        }
    }

    /// Passes on what moved, and fails what has been waited for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        moved: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            return moved;
        }
        if self.place.poll_taken(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let moved = Pin::new(&mut self.stream).poll_read(context, buffer);
        if moved.is_ready() {
            self.place.asks();
        }
        if moved.is_ready() && !self.asking {
            self.asking = true;
            self.silence.as_mut().set(sleep(ASKING));
        }
        self.watch(context, moved)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&moved);
        self.watch(context, moved)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wrote(&moved);
        self.watch(context, moved)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
