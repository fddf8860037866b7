//! When a request is given up: its limits, and its planned end so long after it was written.
//!
//! The timer is armed before the last byte has left, and nothing wakes it then. So while there is
//! no response it looks again when the planned end may have come; a plan of less than a
//! millisecond is looked at every millisecond.

use std::time::Duration;

use super::Exchange;
use crate::clock::MonoTime;
use crate::measurement::Outcome;
use crate::transport::Marks;

/// How soon it is looked again whether the request has been written.
const LOOK: Duration = Duration::from_millis(1);

impl Exchange<'_> {
    /// The next limit that can pass, or the planned end, and the outcome it would bring.
    pub(super) fn next_deadline(&self) -> (MonoTime, Outcome) {
        let limit = self.next_limit();
        match self.given_up_at(self.record.timeline.sent) {
            Some(planned) if planned < limit.0 => (planned, Outcome::Cancelled),
            _ => limit,
        }
    }

    /// The next limit that can pass, and the outcome it would bring.
    fn next_limit(&self) -> (MonoTime, Outcome) {
        let limits = &self.client.setup.limits;
        let total = (self.start + limits.total, Outcome::TimeoutTotal);
        let step = match self.record.timeline.last_token {
            _ if !self.record.stream.streaming => None,
            None => limits
                .first_token
                .map(|limit| (self.start + limit, Outcome::TimeoutFirstToken)),
            Some(last) => limits.gap.map(|limit| (last + limit, Outcome::TimeoutGap)),
        };
        step.filter(|step| step.0 < total.0).unwrap_or(total)
    }

    /// When it is given up, if it was written at `written`.
    pub(super) fn given_up_at(&self, written: Option<MonoTime>) -> Option<MonoTime> {
        Some(written? + self.give_up?)
    }

    /// Whether a request of `length` bytes, at least, has been written and is to be given up now.
    pub(super) fn is_given_up(&self, marks: &Marks, length: u64) -> bool {
        let at = self.given_up_at(marks.wrote_all(length));
        at.is_some_and(|at| at <= self.client.setup.anchor.now())
    }

    /// The next limit that can pass before there is a response head; the planned end is one of
    /// them, at the latest when it may be.
    pub(super) fn deadline_of_sending(&self, written: Option<MonoTime>) -> (MonoTime, Outcome) {
        let limit = self.next_limit();
        let Some(after) = self.give_up else {
            return limit;
        };
        let look = || self.client.setup.anchor.now() + after.max(LOOK);
        let planned = self.given_up_at(written).unwrap_or_else(look);
        if planned < limit.0 {
            (planned, Outcome::Cancelled)
        } else {
            limit
        }
    }
}
