//! Idle connections to one endpoint, the latest used first.
//!
//! A connection that the server is about to close is not handed out: a request lost to that
//! race would be our fault, not the server's.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Connection;
use crate::clock::MonoTime;

/// A connection is not reused in the last part of the idle time that the server grants.
const IDLE_MARGIN: Duration = Duration::from_secs(1);

/// Idle connections. At most as many as were ever in flight at once.
#[derive(Debug, Default)]
pub struct Pool {
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: MonoTime,
}

impl Pool {
    /// Takes the connection that was used last, if one is worth trying at `now`.
    pub fn take(&self, now: MonoTime) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|entry| {
            let limit = entry
                .connection
                .idle_limit
                .map(|limit| limit.saturating_sub(IDLE_MARGIN));
            limit.is_none_or(|limit| now.since(entry.since) < limit)
        });
        idle.pop().map(|entry| entry.connection)
    }

    /// Keeps `connection`, whose last response was read to its end, for a later request.
    pub fn give(&self, connection: Connection, now: MonoTime) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(Idle {
            connection,
            since: now,
        });
    }
}
