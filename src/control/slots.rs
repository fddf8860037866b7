//! The in-flight cap: a fixed number of slots, handed out in order of asking.
//!
//! Slots remember when the last one was given back. That instant, and not the one at which a
//! waiting arrival got to run, is when a slot was free: the difference is our own lag.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::clock::MonoTime;

/// The slots of one target, or of one closed loop. Clones share them.
#[derive(Debug, Clone)]
pub struct Slots {
    free: Arc<Semaphore>,
    freed_at: Arc<AtomicU64>,
    numbers: Arc<Mutex<Numbers>>,
    late: Arc<AtomicU32>,
    size: Arc<Mutex<Size>>,
}

/// How many slots there are.
#[derive(Debug)]
struct Size {
    cap: u32,
    /// Slots in use beyond the cap: they vanish when they are given back.
    surplus: u32,
}

/// The numbers of free slots.
#[derive(Debug, Default)]
struct Numbers {
    /// Those that were given back.
    returned: Vec<u32>,
    /// The first that was never given out.
    next: u32,
}

/// A taken slot. Dropping it gives it back without a time.
#[derive(Debug)]
pub struct Slot {
    // Fields are dropped in this order: the number is back before another can be taken.
    number: Number,
    late: Option<Late>,
    permit: Permit,
    freed_at: Arc<AtomicU64>,
}

/// Counts a slot among those taken late, until this is dropped.
#[derive(Debug)]
struct Late(Arc<AtomicU32>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A place among the slots.
#[derive(Debug)]
struct Permit {
    permit: Option<OwnedSemaphorePermit>,
    size: Arc<Mutex<Size>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permit) = self.permit.take()
            && size.surplus > 0
        {
            size.surplus -= 1;
            permit.forget();
        }
    }
}

/// A number that nobody else has until this is dropped.
#[derive(Debug)]
struct Number {
    number: u32,
    numbers: Arc<Mutex<Numbers>>,
}

impl Number {
    fn take(numbers: &Arc<Mutex<Numbers>>) -> Self {
        let mut free = numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = free.returned.pop().unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        });
        drop(free);
        Self {
            number,
            numbers: Arc::clone(numbers),
        }
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut free = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.push(self.number);
    }
}

impl Slots {
    /// `cap` free slots, free since `now`.
    #[must_use]
    pub fn new(cap: u32, now: MonoTime) -> Self {
        Self {
            free: Arc::new(Semaphore::new(cap as usize)),
            freed_at: Arc::new(AtomicU64::new(now.as_nanos())),
            numbers: Arc::default(),
            late: Arc::default(),
            size: Arc::new(Mutex::new(Size { cap, surplus: 0 })),
        }
    }

    /// Makes it `cap` slots; those that are new are free since `at`. Slots in use stay in use,
    /// and vanish when they are given back where they are too many.
    pub fn resize(&self, cap: u32, at: MonoTime) {
        let mut size = self.size();
        let before = size.cap;
        size.cap = cap;
        if cap >= before {
            let more = cap - before;
            let kept = more.min(size.surplus);
            size.surplus -= kept;
            self.freed_at.fetch_max(at.as_nanos(), Relaxed);
            self.free.add_permits((more - kept) as usize);
        } else {
            let fewer = before - cap;
            let gone = self.free.forget_permits(fewer as usize);
            size.surplus += fewer - u32::try_from(gone).unwrap_or(fewer);
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
        let size = self.size();
        let free = u32::try_from(self.free.available_permits()).unwrap_or(size.cap);
        (size.cap + size.surplus).saturating_sub(free)
    }

    /// Whether one is in use that was taken late, through our own delay: it would be free sooner.
    #[must_use]
    pub fn is_late_in_use(&self) -> bool {
        self.late.load(Relaxed) > 0
    }

    /// Marks `slot`, one of these, as taken late.
    pub fn mark_late(&self, slot: &mut Slot) {
        slot.late.get_or_insert_with(|| {
            self.late.fetch_add(1, Relaxed);
            Late(Arc::clone(&self.late))
        });
    }

    /// All slots, used or not.
    #[must_use]
    pub fn cap(&self) -> u32 {
        self.size().cap
    }

    fn size(&self) -> std::sync::MutexGuard<'_, Size> {
        self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, permit: OwnedSemaphorePermit) -> Slot {
        Slot {
            number: Number::take(&self.numbers),
            late: None,
            permit: Permit {
                permit: Some(permit),
                size: Arc::clone(&self.size),
            },
            freed_at: Arc::clone(&self.freed_at),
        }
    }
}

impl Slot {
    /// Its number, below the cap: no two slots in use have the same.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number.number
    }

    /// Gives the slot back; it was free since `freed`.
    pub fn release(self, freed: MonoTime) {
        let Self {
            number,
            late,
            permit,
            freed_at,
        } = self;
        freed_at.fetch_max(freed.as_nanos(), Relaxed);
        drop(late);
        drop(number);
        drop(permit);
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

    #[test]
    fn a_slot_that_was_taken_late_shows_until_it_is_given_back() {
        let slots = Slots::new(2, MonoTime::ZERO);
        let mut late = slots.try_take().expect("one is free");
        let other = slots.try_take().expect("one is free");
        assert!(!slots.is_late_in_use());
        slots.mark_late(&mut late);
        slots.mark_late(&mut late);
        drop(other);
        assert!(slots.is_late_in_use());
        late.release(MonoTime::ZERO);
        assert!(!slots.is_late_in_use());
    }

    #[test]
    fn a_cap_goes_up_at_once_and_down_as_slots_come_back() {
        let at = MonoTime::from_nanos;
        let slots = Slots::new(1, at(1));
        let one = slots.try_take().expect("one is free");
        slots.resize(3, at(5));
        assert_eq!((slots.cap(), slots.freed_at()), (3, at(5)));
        let two = slots.try_take().expect("two are new");
        slots.resize(1, at(6));
        assert_eq!((slots.cap(), slots.in_use()), (1, 2));
        assert!(slots.try_take().is_none(), "the free one is gone at once");
        one.release(at(7));
        assert!(slots.try_take().is_none(), "this one was too many");
        slots.resize(2, at(8));
        let three = slots.try_take().expect("one more again");
        two.release(at(9));
        three.release(at(9));
        assert_eq!((slots.cap(), slots.in_use()), (2, 0));
    }

    #[test]
    fn slots_in_use_have_numbers_of_their_own() {
        let slots = Slots::new(3, MonoTime::ZERO);
        let take = || slots.try_take().expect("one is free");
        let (one, two) = (take(), take());
        assert_eq!((one.number(), two.number()), (0, 1));
        one.release(MonoTime::ZERO);
        let (again, third) = (take(), take());
        assert_eq!((again.number(), third.number()), (0, 2));
        drop(two);
        assert_eq!(take().number(), 1);
    }
}
