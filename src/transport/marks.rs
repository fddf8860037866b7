//! When the reads and writes of one connection happened.
//!
//! The byte stream stores, the connection asks right when it gives out a part of a body. With
//! HTTP/1.1 "the last read" is the one that brought the part. HTTP/2 is read ahead; there the
//! [`Ledger`] tells which read brought a byte of the body.
//!
//! # How far the bytes of one read may lie apart
//!
//! The kernel joins what arrives between two of our reads and keeps the stamp of the last
//! segment. So of a read only the last byte's instant is known; the others came after the read
//! before it (or after the request was written) and not later than the last: that interval is
//! the plain [`ReadMark::spread`]. It would call nearly every record merged whose server sends
//! its last token and its closing events together, a whole token gap after the read before.
//! But the measuring thread knows more: if it had been asleep, nothing lay in the queue when it
//! woke, since the first byte is what woke it. The spread is then at most the time from waking
//! to the last byte: zero, if that was there already. If we woke late (the last byte had been
//! there for [`LATE_WAKE`]), the thread had to wait for a core, more may have come meanwhile, and the
//! plain interval holds. A thread that did not sleep has still looked at all sockets once in
//! each round: what it finds came after its last look. Reasons: `docs/decisions/0005-merged-reads.md`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ledger::Ledger;
use crate::clock::MonoTime;

/// A thread that got a core this long after the last byte came was kept waiting for it: as long
/// as the lag that marks a record. Machines that idle wake one to two milliseconds late.
const LATE_WAKE: Duration = Duration::from_millis(5);

/// Whose clock a read was stamped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StampClock {
    /// The kernel's, when the last segment of the read arrived.
    Kernel,
    /// The kernel's or ours, of a read at or after the one that brought the bytes: the
    /// connection was read ahead and it is no longer known which one did.
    Read,
    /// Ours, when the read returned.
    User,
}

/// One read of a connection, as the bytes that it brought see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadMark {
    /// When its last byte arrived by `clock`; not before the request had been written.
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

/// A read as the socket saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// When its last byte arrived by `clock`.
    pub(super) at: MonoTime,
    /// When it returned.
    pub(super) returned: MonoTime,
    pub(super) clock: StampClock,
    pub(super) bad_stamp: bool,
    /// When the thread woke, if it had been asleep before.
    pub(super) woke: Option<MonoTime>,
    /// When the thread had looked at all sockets the time before.
    pub(super) looked: Option<MonoTime>,
}

/// Instants of one connection, reset at the start of each exchange.
#[derive(Debug, Default)]
pub struct Marks {
    first_write: Slot,
    last_write: Slot,
    first_read: Slot,
    at: Slot,
    returned: Slot,
    spread_ns: AtomicU64,
    reads: AtomicU32,
    /// Bytes of the request written so far.
    written: AtomicU64,
    is_kernel: AtomicBool,
    is_bad: AtomicBool,
    /// Whether the whole request was written; kept with HTTP/1.1.
    is_sent: AtomicBool,
    /// Whether the connection is read ahead, so that the ledger has to be asked.
    is_ahead: AtomicBool,
    ledger: Mutex<Ledger>,
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
            &self.at,
            &self.returned,
        ] {
            slot.clear();
        }
        self.written.store(0, Relaxed);
        if self.is_ahead.load(Relaxed) {
            self.ledger().begin();
        }
    }

    /// `bytes` of the request were written; 0 if such as were written before went out now.
    pub(super) fn wrote(&self, at: MonoTime, bytes: usize) {
        self.first_write.set_once(at);
        self.last_write.set(at);
        self.written.fetch_add(bytes as u64, Relaxed);
    }

    /// When the last byte so far was written, if at least `bytes` were.
    #[must_use]
    pub fn wrote_all(&self, bytes: u64) -> Option<MonoTime> {
        let all = self.written.load(Relaxed) >= bytes;
        self.last_write.get().filter(|_| all)
    }

    /// Whether the whole request was written.
    pub(super) fn set_sent(&self, is_sent: bool) {
        self.is_sent.store(is_sent, Relaxed);
    }

    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Relaxed)
    }

    /// The socket was read.
    pub(super) fn read(&self, arrival: Arrival) {
        let sent = self.last_write.get();
        let at = sent.map_or(arrival.at, |sent| arrival.at.max(sent));
        let before = self.at.get().max(sent);
        let spread = spread(
            (at, arrival.returned),
            before,
            (arrival.woke, arrival.looked),
        );
        self.at.set(at);
        self.returned.set(arrival.returned);
        let nanos = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX);
        self.spread_ns.store(nanos, Relaxed);
        self.reads.fetch_add(1, Relaxed);
        let is_kernel = arrival.clock == StampClock::Kernel;
        self.is_kernel.store(is_kernel, Relaxed);
        self.is_bad.store(arrival.bad_stamp, Relaxed);
    }

    /// The last read brought bytes of a response.
    pub(super) fn answered(&self) {
        if let Some(at) = self.at.get() {
            self.first_read.set_once(at);
        }
    }

    /// From now on the ledger is kept: the connection is read ahead.
    pub(super) fn read_ahead(&self) {
        self.is_ahead.store(true, Relaxed);
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the first byte of the request was written.
    #[must_use]
    pub fn first_write(&self) -> Option<MonoTime> {
        self.first_write.get()
    }

    /// When the last byte of the request so far was written.
    #[must_use]
    pub fn last_write(&self) -> Option<MonoTime> {
        self.last_write.get()
    }

    /// When the first read that brought bytes of a response arrived.
    #[must_use]
    pub fn first_read(&self) -> Option<MonoTime> {
        self.first_read.get()
    }

    /// The latest read.
    #[must_use]
    pub fn last_read(&self) -> Option<ReadMark> {
        let clock = if self.is_kernel.load(Relaxed) {
            StampClock::Kernel
        } else {
            StampClock::User
        };
        Some(ReadMark {
            at: self.at.get()?,
            returned: self.returned.get()?,
            number: self.reads.load(Relaxed),
            spread: Duration::from_nanos(self.spread_ns.load(Relaxed)),
            clock,
            bad_stamp: self.is_bad.load(Relaxed),
        })
    }

    /// The read that brought byte number `count` of the body, counted from 1. The connection
    /// gives the body out in order, so `count` never goes down.
    #[must_use]
    pub fn read_of(&self, count: u64) -> Option<ReadMark> {
        let last = self.last_read()?;
        if !self.is_ahead.load(Relaxed) {
            return Some(last);
        }
        let known = self.ledger().read_of(count);
        Some(known.unwrap_or(ReadMark {
            clock: StampClock::Read,
            ..last
        }))
    }
}

/// How long before `at` the other bytes of a read that returned at `returned` may have come: not
/// before the read `before` it, nor before the thread had `looked` at the socket without finding
/// them, nor before it `woke`, unless it woke late.
fn spread(
    (at, returned): (MonoTime, MonoTime),
    before: Option<MonoTime>,
    (woke, looked): (Option<MonoTime>, Option<MonoTime>),
) -> Duration {
    let mut spread = before.map_or(Duration::ZERO, |before| at.since(before));
    if let Some(looked) = looked.filter(|looked| *looked <= at) {
        spread = spread.min(at.since(looked));
    }
    match woke {
        Some(woke) if woke <= returned && woke.since(at) <= LATE_WAKE => spread.min(at.since(woke)),
        _ => spread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> MonoTime {
        MonoTime::from_nanos(micros * 1_000)
    }

    fn arrival(at: u64, returned: u64, woke: Option<u64>) -> Arrival {
        Arrival {
            at: us(at),
            returned: us(returned),
            clock: StampClock::Kernel,
            bad_stamp: false,
            woke: woke.map(us),
            looked: None,
        }
    }

    /// The spread in microseconds of a read after one at 10,000.
    fn spread_of(second: Arrival) -> u128 {
        let marks = Marks::default();
        marks.wrote(us(1_000), 1);
        marks.read(arrival(10_000, 10_050, None));
        marks.read(second);
        marks.last_read().expect("read").spread.as_micros()
    }

    #[test]
    fn nothing_is_known_of_a_busy_thread_so_bytes_may_lie_a_whole_interval_apart() {
        assert_eq!(spread_of(arrival(20_000, 20_900, None)), 10_000);
    }

    #[test]
    fn what_was_not_there_at_the_last_look_came_after_it() {
        let looked = |at| Arrival {
            looked: Some(us(at)),
            ..arrival(20_000, 20_100, None)
        };
        assert_eq!(spread_of(looked(19_700)), 300);
        assert_eq!(spread_of(looked(20_050)), 10_000, "it was not read then");
    }

    #[test]
    fn what_wakes_the_thread_is_the_first_byte() {
        assert_eq!(spread_of(arrival(20_000, 20_100, Some(20_060))), 0);
        assert_eq!(spread_of(arrival(20_400, 20_500, Some(20_060))), 340);
    }

    #[test]
    fn a_thread_that_waited_for_a_core_knows_nothing() {
        assert_eq!(spread_of(arrival(20_000, 25_100, Some(25_001))), 10_000);
        assert_eq!(spread_of(arrival(20_000, 25_100, Some(25_000))), 0);
    }

    #[test]
    fn the_first_read_is_bounded_by_the_request_and_never_before_it() {
        let marks = Marks::default();
        marks.wrote(us(1_000), 1);
        marks.wrote(us(1_500), 1);
        marks.read(arrival(4_000, 4_100, None));
        let read = marks.last_read().expect("read");
        assert_eq!(
            (read.at, read.spread),
            (us(4_000), Duration::from_micros(2_500))
        );
        marks.wrote(us(5_000), 1);
        marks.read(arrival(4_500, 5_100, None));
        let read = marks.last_read().expect("read");
        assert_eq!(
            (read.at, read.returned, read.number),
            (us(5_000), us(5_100), 2)
        );
        assert_eq!(read.spread, Duration::ZERO);
    }

    #[test]
    fn each_exchange_begins_anew_but_reads_go_on_being_numbered() {
        let marks = Marks::default();
        marks.wrote(us(1), 1);
        marks.read(arrival(2, 3, None));
        marks.answered();
        assert_eq!(marks.first_read(), Some(us(2)));
        marks.begin();
        assert_eq!((marks.first_write(), marks.first_read()), (None, None));
        assert_eq!(marks.last_read(), None);
        marks.wrote(us(1_000), 1);
        marks.read(arrival(1_200, 1_300, None));
        let read = marks.last_read().expect("read");
        assert_eq!((read.number, read.spread), (2, Duration::from_micros(200)));
    }
}
