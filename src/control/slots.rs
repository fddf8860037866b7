//! The in-flight cap: a fixed number of slots, handed out in order of asking.
//!
//! Slots remember when the last one was given back. That instant, and not the one at which a
//! waiting arrival got to run, is when a slot was free: the difference is our own lag.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::clock::MonoTime;

/// The slots of one target, or of one closed loop. Clones share them.
#[derive(Debug, Clone)]
pub struct Slots {
    free: Arc<Semaphore>,
    freed_at: Arc<AtomicU64>,
    cap: u32,
}

/// A taken slot. Dropping it gives it back without a time.
#[derive(Debug)]
pub struct Slot {
    permit: OwnedSemaphorePermit,
    freed_at: Arc<AtomicU64>,
}

impl Slots {
    /// `cap` free slots, free since `now`.
    #[must_use]
    pub fn new(cap: u32, now: MonoTime) -> Self {
        Self {
            free: Arc::new(Semaphore::new(cap as usize)),
            freed_at: Arc::new(AtomicU64::new(now.as_nanos())),
            cap,
        }
    }

    /// Takes a slot if one is free.
    #[must_use]
    pub fn try_take(&self) -> Option<Slot> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(self.slot(permit))
    }

    /// Waits for a slot, first come, first served.
    pub fn take(&self) -> impl Future<Output = Result<Slot, AcquireError>> + Send + use<> {
        let slots = self.clone();
        let permit = Arc::clone(&self.free).acquire_owned();
        futures_util::FutureExt::map(permit, move |permit| permit.map(|p| slots.slot(p)))
    }

    /// When a slot was last given back.
    #[must_use]
    pub fn freed_at(&self) -> MonoTime {
        MonoTime::from_nanos(self.freed_at.load(Relaxed))
    }

    /// Slots in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        let free = u32::try_from(self.free.available_permits()).unwrap_or(self.cap);
        self.cap.saturating_sub(free)
    }

    /// All slots, used or not.
    #[must_use]
    pub const fn cap(&self) -> u32 {
        self.cap
    }

    fn slot(&self, permit: OwnedSemaphorePermit) -> Slot {
        Slot {
            permit,
            freed_at: Arc::clone(&self.freed_at),
        }
    }
}

impl Slot {
    /// Gives the slot back; it was free since `freed`.
    pub fn release(self, freed: MonoTime) {
        self.freed_at.fetch_max(freed.as_nanos(), Relaxed);
        drop(self.permit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cap_refuses_and_a_released_slot_says_when() {
        let slots = Slots::new(1, MonoTime::ZERO);
        let slot = slots.try_take().expect("one is free");
        assert!(slots.try_take().is_none());
        assert_eq!(slots.in_use(), 1);
        slot.release(MonoTime::from_nanos(77));
        assert_eq!(
            (slots.in_use(), slots.freed_at()),
            (0, MonoTime::from_nanos(77))
        );
        assert!(slots.try_take().is_some());
    }
}
