//! How far the opening of a connection has come, for whoever gives it up.
//!
//! A future that is dropped tells nothing, and a limit that passed in the TLS handshake has
//! another cause than one that passed before TCP was connected. Whoever opens notes here what it
//! has done and what it waits for.

use std::sync::{Mutex, PoisonError};

use crate::clock::{MonoTime, TimeAnchor};

/// What is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Step {
    /// The name to be resolved.
    #[default]
    Name,
    /// An address, the proxy's if there is one, to take the connection.
    Address,
    /// The proxy to make a tunnel.
    Tunnel,
    /// The server to answer in the TLS handshake.
    Tls,
}

/// How far it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reached {
    /// When the name was resolved.
    pub resolved: Option<MonoTime>,
    /// When the stream was connected; through a proxy, when it was let through.
    pub connected: Option<MonoTime>,
    /// What is waited for since then.
    pub step: Step,
}

/// The opening of one connection.
#[derive(Debug)]
pub struct Progress {
    anchor: TimeAnchor,
    reached: Mutex<Reached>,
}

impl Progress {
    /// One that has reached nothing. Its instants are offsets of `anchor`.
    #[must_use]
    pub fn new(anchor: TimeAnchor) -> Self {
        Self {
            anchor,
            reached: Mutex::default(),
        }
    }

    /// The clock.
    #[must_use]
    pub const fn anchor(&self) -> TimeAnchor {
        self.anchor
    }

    /// The instant of this call.
    #[must_use]
    pub fn now(&self) -> MonoTime {
        self.anchor.now()
    }

    /// How far it came.
    #[must_use]
    pub fn reached(&self) -> Reached {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was reached.
    pub(super) fn note(&self, note: impl FnOnce(&mut Reached)) {
        note(&mut self.reached.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
