//! Which arrivals are still open, so that a window knows when all of its own have ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::MonoTime;

/// A slot that was given back becomes an arrival within this time at the latest.
const SLOT_TO_ARRIVAL: Duration = Duration::from_secs(1);

/// The open arrivals of one stream. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    /// Intended times of arrivals whose record has not been handed on, by sequence number.
    pending: BTreeMap<u64, MonoTime>,
    /// Nothing before this is still to become due.
    frontier: Frontier,
}

#[derive(Debug, Default)]
enum Frontier {
    /// The next arrival of an open process is due then.
    Next(MonoTime),
    /// A closed loop: the next arrival is due about now.
    #[default]
    Now,
    /// There will be no more.
    Ended,
}

impl Ledger {
    /// The next arrival will be due at `at`, none before.
    pub(super) fn next_due(&self, at: MonoTime) {
        self.with(|open| open.frontier = Frontier::Next(at));
    }

    /// The next arrival is due about now, or later: nobody knows when.
    pub(super) fn next_unknown(&self) {
        self.with(|open| open.frontier = Frontier::Now);
    }

    /// An arrival became due and is open.
    pub(super) fn open(&self, sequence: u64, intended: MonoTime) {
        self.with(|open| {
            open.pending.insert(sequence, intended);
        });
    }

    /// The record of an arrival was handed on.
    pub(super) fn closed(&self, sequence: u64) {
        self.with(|open| {
            open.pending.remove(&sequence);
        });
    }

    /// No arrival will come any more.
    pub(super) fn end(&self) {
        self.with(|open| open.frontier = Frontier::Ended);
    }

    /// Every arrival before this instant has been handed on.
    pub(super) fn settled(&self, now: MonoTime) -> MonoTime {
        self.with(|open| {
            let frontier = match open.frontier {
                Frontier::Next(at) => at,
                Frontier::Now => now.minus(SLOT_TO_ARRIVAL),
                Frontier::Ended => MonoTime::from_nanos(u64::MAX),
            };
            // Turns of conversations are numbered as they become due, which may be out of order.
            open.pending
                .values()
                .min()
                .map_or(frontier, |first| frontier.min(*first))
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Open) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> MonoTime {
        MonoTime::from_nanos(ns)
    }

    #[test]
    fn nothing_is_settled_beyond_the_oldest_open_arrival() {
        let ledger = Ledger::default();
        ledger.next_due(at(10));
        assert_eq!(ledger.settled(at(99)), at(10));
        ledger.open(0, at(10));
        ledger.open(1, at(20));
        ledger.next_due(at(30));
        ledger.closed(1);
        assert_eq!(ledger.settled(at(99)), at(10), "the first is still open");
        ledger.closed(0);
        assert_eq!(ledger.settled(at(99)), at(30));
        ledger.end();
        assert_eq!(ledger.settled(at(99)), at(u64::MAX));
    }
}
