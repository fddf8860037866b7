//! One HTTP/1.1 connection: hyper's connection-level client over a stamped byte stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};

use super::wire::Carrier;
use super::{Marks, Wire};
use crate::clock::TimeAnchor;

/// Largest response head that is read.
const MAX_HEAD: usize = 64 * 1024;

/// An open connection. It carries one exchange at a time.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    marks: Arc<Marks>,
    exchanges: u32,
    /// How long the server keeps it open unused, where it said so.
    pub(super) idle_limit: Option<Duration>,
}

/// Why a request got no response.
#[derive(Debug)]
pub enum SendFailure {
    /// The connection was closed before a byte of it was written.
    Unsent,
    /// It was written at least in part.
    Broken(hyper::Error),
}

impl Connection {
    /// Starts HTTP on `wire`. The task that drives the connection ends with it.
    ///
    /// # Errors
    ///
    /// If the stream is closed at once.
    pub async fn start(wire: Wire, anchor: TimeAnchor) -> hyper::Result<Self> {
        let carrier = Carrier::http1(wire.stamped(anchor), anchor);
        let marks = Arc::clone(carrier.marks());
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .handshake(carrier)
            .await?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::trace!(%error, "connection ended");
            }
        });
        Ok(Self {
            sender,
            marks,
            exchanges: 0,
            idle_limit: None,
        })
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
        self.sender.ready().await.is_ok()
    }

    /// Sends `request` and waits for the response head.
    ///
    /// # Errors
    ///
    /// If the connection ended first; the error says whether anything was written.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendFailure> {
        self.exchanges += 1;
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                self.idle_limit = keep_alive_timeout(&response);
                Ok(response)
            }
            Err(mut failure) => Err(match failure.take_message() {
                Some(_) => SendFailure::Unsent,
                None => SendFailure::Broken(failure.into_error()),
            }),
        }
    }
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
