//! What a request is sent with: its record so far, what it says, and what is planned for it.

use std::fmt;
use std::time::Duration;

use crate::clock::MonoTime;
use crate::load::workload::Prompt;
use crate::measurement::RequestRecord;

/// One arrival that may go.
#[derive(Debug)]
pub struct Call {
    /// The record so far: due, with a slot.
    pub record: Box<RequestRecord>,
    /// What to send.
    pub prompt: Prompt,
    /// The session it belongs to: with `ConnectionPolicy::PerSession` its requests share a
    /// connection, and a request of no session opens one of its own.
    pub session: Option<u64>,
    /// It is given up this long after it was written, whatever the server does by then.
    pub give_up: Option<Duration>,
    /// The text of the answer is kept in the record, for the next turn of its conversation.
    pub keep_reply: bool,
    /// Told when the first token came.
    pub first_token: FirstToken,
}

impl Call {
    /// A request of no session for which nothing is planned.
    #[must_use]
    pub fn new(record: RequestRecord, prompt: Prompt) -> Self {
        Self {
            record: Box::new(record),
            prompt,
            session: None,
            give_up: None,
            keep_reply: false,
            first_token: FirstToken::default(),
        }
    }
}

/// Who is told when the first token came, at most once; nobody by default.
#[derive(Default)]
pub struct FirstToken(Option<Box<dyn FnOnce(MonoTime) + Send>>);

impl FirstToken {
    /// `told` is called with the instant of the first token while the response is read, so it
    /// must be short.
    pub fn new(told: impl FnOnce(MonoTime) + Send + 'static) -> Self {
        Self(Some(Box::new(told)))
    }

    /// Tells, if there was a token and nobody was told.
    pub(super) fn look(&mut self, at: Option<MonoTime>) {
        if let Some(at) = at
            && let Some(told) = self.0.take()
        {
            told(at);
        }
    }
}

impl fmt::Debug for FirstToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.0.is_some();
        f.debug_tuple("FirstToken").field(&waits).finish()
    }
}
