//! Which of the kept connections are a request's to use.

use crate::measurement::ConnectionPolicy;

/// Whose connections a request may use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share {
    /// Nobody's: it opens a new one, which is not kept.
    Nothing,
    /// Those that are free; or those of a session.
    Idle(Option<u64>),
}

impl Share {
    pub(super) const fn of(policy: ConnectionPolicy, session: Option<u64>) -> Self {
        match (policy, session) {
            (ConnectionPolicy::New, _) | (ConnectionPolicy::PerSession, None) => Self::Nothing,
            (ConnectionPolicy::Pooled, _) => Self::Idle(None),
            (ConnectionPolicy::PerSession, session) => Self::Idle(session),
        }
    }
}
