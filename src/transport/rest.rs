//! Whether the thread that measures was asleep before what it does now.
//!
//! A runtime that has nothing to do sleeps until something arrives. So if it had been asleep for
//! a while, nothing lay unread in any socket when it woke: the first byte that came is what woke
//! it. This bounds how long the bytes of one read can have waited for each other; see
//! `docs/decisions/0005-merged-reads.md`.
//!
//! A thread that did not sleep knows less, but not nothing: each time it goes on it has looked at
//! all sockets, and what it finds now was not there the time before.
//!
//! The hooks are installed by whoever builds the runtime. Without them nothing is known.

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

/// What a thread that is awake knows of the queues of its sockets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// The sleep right before what it does now, if it was one.
    pub(super) sleep: Option<Sleep>,
    /// When it looked at all its sockets the time before: what is to be read now came later.
    pub(super) looked: Option<Instant>,
}

thread_local! {
    static ASLEEP: Cell<Option<Instant>> = const { Cell::new(None) };
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static KNOWN: Cell<Known> = const {
        Cell::new(Known {
            sleep: None,
            looked: None,
        })
    };
}

/// To be called by the runtime when its thread has nothing to do.
pub fn thread_parks() {
    ASLEEP.set(Some(Instant::now()));
}

/// To be called by the runtime when its thread goes on.
pub fn thread_unparks() {
    let ended = Instant::now();
    let long = |began: &Instant| ended.saturating_duration_since(*began) >= LEAST;
    KNOWN.set(Known {
        sleep: ASLEEP
            .take()
            .filter(long)
            .map(|began| Sleep { began, ended }),
        looked: LOOKED.replace(Some(ended)),
    });
}

/// What is known where this thread is now.
pub(super) fn known() -> Known {
    KNOWN.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_sleep_of_some_length_right_before_counts() {
        assert!(known().sleep.is_none() && known().looked.is_none());
        thread_parks();
        tokio::time::advance(Duration::from_micros(49)).await;
        thread_unparks();
        assert!(known().sleep.is_none(), "too short");
        thread_parks();
        tokio::time::advance(Duration::from_micros(50)).await;
        thread_unparks();
        let sleep = known().sleep.expect("long enough");
        assert_eq!(sleep.ended - sleep.began, Duration::from_micros(50));
        assert_eq!(
            known().looked,
            Some(sleep.began),
            "the end of the short sleep"
        );
        thread_parks();
        thread_unparks();
        assert!(known().sleep.is_none(), "the one before is forgotten");
        assert_eq!(known().looked, Some(sleep.ended));
    }
}
