//! When the reads and writes of one connection returned.
//!
//! The I/O wrapper stores, the client reads right when a frame comes out. Both run on one
//! thread, so that "the last read" is the read that completed the frame: hyper does not read
//! again until its one-frame body channel was emptied.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::clock::MonoTime;

/// Whose clock a read was stamped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampClock {
    /// The kernel's, when the last segment of the read arrived.
    Kernel,
    /// Ours, when the read returned.
    User,
}

/// One read of a connection, as the bytes that it brought see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadMark {
    /// When its last byte arrived by `clock`.
    pub at: MonoTime,
    /// When it returned to us.
    pub returned: MonoTime,
    /// Its number on the connection, from 1.
    pub number: u32,
    /// All but its last bytes may have arrived up to this much before `at`.
    pub spread: Duration,
    /// Whose clock `at` is of.
    pub clock: StampClock,
    /// The kernel's stamp was there but not usable.
    pub bad_stamp: bool,
}

impl ReadMark {
    /// A read that is known only by when it returned.
    #[must_use]
    pub const fn user(at: MonoTime, number: u32) -> Self {
        Self {
            at,
            returned: at,
            number,
            spread: Duration::ZERO,
            clock: StampClock::User,
            bad_stamp: false,
        }
    }
}

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

    /// The latest read.
    #[must_use]
    pub fn last_read(&self) -> Option<ReadMark> {
        let at = self.last_read.get()?;
        Some(ReadMark::user(at, self.reads.load(Relaxed)))
    }
}
