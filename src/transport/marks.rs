//! When the reads and writes of one connection returned.
//!
//! The I/O wrapper stores, the client reads right when a frame comes out. Both run on one
//! thread, so that "the last read" is the read that completed the frame: hyper does not read
//! again until its one-frame body channel was emptied.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::clock::MonoTime;

/// Instants of one connection, reset at the start of each exchange.
#[derive(Debug, Default)]
pub struct Marks {
    first_write: Slot,
    last_write: Slot,
    first_read: Slot,
    last_read: Slot,
    reads: AtomicU32,
}

/// An instant that may be absent: nanoseconds plus one, or zero.
#[derive(Debug, Default)]
struct Slot(AtomicU64);

impl Slot {
    fn set(&self, at: MonoTime) {
        self.0.store(at.as_nanos() + 1, Relaxed);
    }

    fn set_once(&self, at: MonoTime) {
        if self.0.load(Relaxed) == 0 {
            self.set(at);
        }
    }

    fn get(&self) -> Option<MonoTime> {
        self.0
            .load(Relaxed)
            .checked_sub(1)
            .map(MonoTime::from_nanos)
    }

    fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Marks {
    /// Forgets the instants of the exchange before. Reads go on being numbered.
    pub fn begin(&self) {
        for slot in [
            &self.first_write,
            &self.last_write,
            &self.first_read,
            &self.last_read,
        ] {
            slot.clear();
        }
    }

    pub(super) fn wrote(&self, at: MonoTime) {
        self.first_write.set_once(at);
        self.last_write.set(at);
    }

    pub(super) fn read(&self, at: MonoTime) {
        self.first_read.set_once(at);
        self.last_read.set(at);
        self.reads.fetch_add(1, Relaxed);
    }

    /// When the first byte of the request was written.
    #[must_use]
    pub fn first_write(&self) -> Option<MonoTime> {
        self.first_write.get()
    }

    /// When the last byte so far was written.
    #[must_use]
    pub fn last_write(&self) -> Option<MonoTime> {
        self.last_write.get()
    }

    /// When the first read of this exchange returned.
    #[must_use]
    pub fn first_read(&self) -> Option<MonoTime> {
        self.first_read.get()
    }

    /// When the latest read returned, and its number on this connection.
    #[must_use]
    pub fn last_read(&self) -> Option<(MonoTime, u32)> {
        Some((self.last_read.get()?, self.reads.load(Relaxed)))
    }
}
