//! Opens connections, carries HTTP, stamps reads.
//!
//! A connection is hyper's connection-level client over an I/O wrapper that notes when each
//! read and write returned, before a byte is decoded; bodies of HTTP/1.1 are taken straight from
//! the reads. Connecting is behind [`Connect`], so that
//! a test can put an in-memory pipe where the network is.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `transport` | `Connect` | open connections, carry HTTP, stamp reads | know what an LLM is; retry |

mod body;
mod connection;
mod descriptors;
mod diagnosis;
mod endpoint;
pub mod fetch;
mod head;
mod http1;
mod http2;
mod kernel;
mod ledger;
mod marks;
mod open;
mod pool;
mod progress;
mod proxy;
mod rest;
mod spoken;
mod stamped;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

pub use body::FramingError;
pub use connection::{BodyError, Connection, SendFailure, Taken, TcpReport, with_source};
pub use descriptors::make_room;
pub use endpoint::{Endpoint, EndpointError};
pub use marks::{Marks, ReadMark, StampClock};
pub use open::TcpConnect;
pub use pool::Pool;
pub use progress::{Progress, Reached, Step};
pub use rest::{thread_parks, thread_unparks};
pub use spoken::Spoken;
pub use stamped::Stamped;
pub use wire::Wire;

use std::future::Future;
use std::io;
use std::pin::Pin;

use crate::clock::MonoTime;

/// An open byte stream and when it was opened.
#[derive(Debug)]
pub struct Opened {
    /// The byte stream.
    pub wire: Wire,
    /// When the host name was resolved; `None` for a literal address.
    pub resolved: Option<MonoTime>,
    /// When the stream was connected; through a proxy, when it was let through.
    pub connected: MonoTime,
    /// What the TLS handshake brought, if there was one.
    pub tls: Option<Handshake>,
    /// Whether the stream speaks HTTP/2.
    pub http2: bool,
}

/// What a TLS handshake brought.
#[derive(Debug, Clone, Copy)]
pub struct Handshake {
    /// When it was done.
    pub done: MonoTime,
    /// When the server's certificate expires, in seconds of Unix time.
    pub certificate_expiry: Option<i64>,
}

/// Why no connection could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host name did not resolve.
    #[error("`{host}` does not resolve: {source}")]
    Dns {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No address took the connection.
    #[error("no connection to `{authority}`: {source}")]
    Refused {
        /// Host and port.
        authority: String,
        /// When the name was resolved.
        resolved: Option<MonoTime>,
        /// What the last address said.
        source: io::Error,
    },
    /// The proxy gave no way to the target.
    #[error("no way through the proxy `{authority}`: {source}")]
    Proxy {
        /// The proxy's host and port.
        authority: String,
        /// When its name was resolved.
        resolved: Option<MonoTime>,
        /// What it, or the way to it, said.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("no TLS with `{authority}`: {source}")]
    Tls {
        /// Host and port.
        authority: String,
        /// When the name was resolved.
        resolved: Option<MonoTime>,
        /// When TCP was connected.
        connected: MonoTime,
        /// The kind of failure, in a few words.
        kind: &'static str,
        /// What went wrong.
        source: io::Error,
    },
}

impl ConnectError {
    /// Whether this machine is the cause: it has no descriptor, port or memory left.
    #[must_use]
    pub fn is_own_limit(&self) -> bool {
        let (Self::Dns { source, .. }
        | Self::Refused { source, .. }
        | Self::Proxy { source, .. }
        | Self::Tls { source, .. }) = self;
        open::is_own_limit(source)
    }
}

/// A boxed future: connecting is rare, so its cost does not matter.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Opened, ConnectError>> + Send + 'a>>;

/// Opens byte streams to endpoints.
pub trait Connect: Send + Sync {
    /// Opens one stream to `endpoint` and notes in `progress` how far it is. Dropping the future
    /// gives up.
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a>;
}
