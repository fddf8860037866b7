//! Whether the thread that measures was asleep before what it does now.
//!
//! A runtime that has nothing to do sleeps until something arrives. So if it had been asleep for
//! a while, nothing lay unread in any socket when it woke: the first byte that came is what woke
//! it. This bounds how long the bytes of one read can have waited for each other; see
//! `docs/decisions/0005-merged-reads.md`.
//!
//! The hooks are installed by whoever builds the runtime. Without them nothing is known and
//! [`last`] is always `None`.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Shorter sleeps are none: the thread may have been set aside on its way to bed, with something
/// already there to be read.
const LEAST: Duration = Duration::from_micros(50);

/// A sleep of this thread that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sleep {
    /// When it had nothing left to do.
    pub(super) began: Instant,
    /// When it was awake again.
    pub(super) ended: Instant,
}

#[derive(Clone, Copy)]
enum Thread {
    Unknown,
    Asleep(Instant),
    Awake(Sleep),
}

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(Thread::Unknown) };
}

/// To be called by the runtime when its thread has nothing to do.
pub fn thread_parks() {
    THREAD.set(Thread::Asleep(Instant::now()));
}

/// To be called by the runtime when its thread goes on.
pub fn thread_unparks() {
    let ended = Instant::now();
    THREAD.set(match THREAD.get() {
        Thread::Asleep(began) if ended.saturating_duration_since(began) >= LEAST => {
            Thread::Awake(Sleep { began, ended })
        }
        _ => Thread::Unknown,
    });
}

/// The sleep right before what this thread does now, if it was one.
pub(super) fn last() -> Option<Sleep> {
    match THREAD.get() {
        Thread::Awake(sleep) => Some(sleep),
        Thread::Unknown | Thread::Asleep(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_sleep_of_some_length_right_before_counts() {
        assert!(last().is_none());
        thread_parks();
        tokio::time::advance(Duration::from_micros(49)).await;
        thread_unparks();
        assert!(last().is_none(), "too short");
        thread_parks();
        tokio::time::advance(Duration::from_micros(50)).await;
        thread_unparks();
        let sleep = last().expect("long enough");
        assert_eq!(sleep.ended - sleep.began, Duration::from_micros(50));
        thread_parks();
        thread_unparks();
        assert!(last().is_none(), "the one before is forgotten");
    }
}
