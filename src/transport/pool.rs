//! Idle connections to one endpoint, the latest used first; those of a session apart.
//!
//! A connection that the server is about to close is not handed out: a request lost to that
//! race would be our fault, not the server's. Nor is one that is older than the endpoint allows,
//! so that its name is resolved anew from time to time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Connection;
use crate::clock::MonoTime;

/// A connection is not reused in the last part of the idle time that the server grants.
const IDLE_MARGIN: Duration = Duration::from_secs(1);
/// Sessions whose connection is kept; the one that rested longest gives way, and its next
/// request opens a new one.
const MOST_SESSIONS: usize = 1024;

/// Resting connections that are looked at whenever one is given back.
const LOOKED_AT: usize = 2;

/// Idle connections. Those of no session: at most as many as were ever in flight at once.
#[derive(Debug, Default)]
pub struct Pool {
    /// Those given last are at the end.
    idle: Mutex<Vec<Idle>>,
    reuse_for: Option<Duration>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    session: Option<u64>,
    since: MonoTime,
}

impl Pool {
    /// An empty pool, whose connections are used for `reuse_for` after they were opened.
    #[must_use]
    pub fn new(reuse_for: Option<Duration>) -> Self {
        Self {
            idle: Mutex::default(),
            reuse_for,
        }
    }

    /// Takes the connection of `session` (or of none) that was used last, if one is worth trying
    /// at `now`.
    pub fn take(&self, session: Option<u64>, now: MonoTime) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|entry| self.is_good(entry, now));
        let place = idle.iter().rposition(|entry| entry.session == session)?;
        Some(idle.remove(place).connection)
    }

    fn is_good(&self, entry: &Idle, now: MonoTime) -> bool {
        let connection = &entry.connection;
        let idle_limit = connection
            .idle_limit
            .map(|limit| limit.saturating_sub(IDLE_MARGIN));
        idle_limit.is_none_or(|limit| now.since(entry.since) < limit)
            && self
                .reuse_for
                .is_none_or(|limit| now.since(connection.since) < limit)
    }

    /// Keeps `connection`, whose last response was read to its end, for a later request of
    /// `session` (or of none).
    pub fn give(&self, connection: Connection, session: Option<u64>, now: MonoTime) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if session.is_some() {
            let of_sessions = |entry: &&Idle| entry.session.is_some();
            if idle.iter().filter(of_sessions).count() >= MOST_SESSIONS
                && let Some(oldest) = idle.iter().position(|entry| entry.session.is_some())
            {
                idle.remove(oldest);
            }
        }
        // Nothing runs for a connection that rests, so the ones that rest longest are looked at
        // now and then; otherwise those that are never used again would stay half closed.
        for place in (0..idle.len().min(LOOKED_AT)).rev() {
            if idle[place].connection.is_closed() {
                idle.remove(place);
            }
        }
        idle.push(Idle {
            connection,
            session,
            since: now,
        });
    }
}
