//! The caps that a request needs a slot of, and the waiting for them.
//!
//! Arrivals pass in the order in which they were due. What they wait here is slot wait, not own
//! lag: the server causes it, unless we came to the arrival late, or a request that we sent late
//! still holds a slot: a refusal is then in our own name.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Stop;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::WhenFull;
use crate::control::{Slot, Slots};
use crate::measurement::{RefusedReason, is_own_lag};

/// The caps of one phase.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) anchor: TimeAnchor,
    pub(super) stop: Stop,
    pub(super) when_full: WhenFull,
    /// How long an arrival may wait for a slot; `None`: as long as it takes.
    pub(super) patience: Option<Duration>,
    /// The phase has no more arrivals from then on.
    pub(super) end: Option<MonoTime>,
    /// Nobody waits beyond this: the grace period of the phase is over then.
    pub(super) deadline: Option<MonoTime>,
    /// The phase's own concurrency; that of a closed loop.
    pub(super) own: Option<Slots>,
    /// The target's in-flight cap, over all its probes.
    pub(super) target: Slots,
    /// The phase's requests without a first token.
    pub(super) prefill: Option<Slots>,
}

/// The slots that one request holds.
pub(super) struct Held {
    target: Slot,
    own: Option<Slot>,
    prefill: Option<Prefill>,
    turn: Option<Slot>,
}

/// What a conversation keeps between its turns.
#[derive(Default)]
pub(super) struct Kept {
    /// Its place in a closed loop, or under a cap of the phase's own.
    own: Option<Slot>,
    /// Keeps later rows of its session back.
    turn: Option<Slot>,
}

impl Kept {
    /// Keeps what `other` has, too.
    pub(super) fn add(&mut self, other: Self) {
        self.own = self.own.take().or(other.own);
        self.turn = self.turn.take().or(other.turn);
    }

    /// Gives all back; it was free since `freed`.
    pub(super) fn release(self, freed: MonoTime) {
        for slot in [self.own, self.turn].into_iter().flatten() {
            slot.release(freed);
        }
    }
}

/// A slot that is given back at the first token. Clones share it.
#[derive(Clone)]
pub(super) struct Prefill(Arc<Mutex<Option<Slot>>>);

impl Prefill {
    fn new(slot: Slot) -> Self {
        Self(Arc::new(Mutex::new(Some(slot))))
    }

    /// Gives the slot back, once; it was free since `freed`.
    pub(super) fn release(&self, freed: MonoTime) {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(slot) = slot {
            slot.release(freed);
        }
    }
}

impl Held {
    /// The place in a closed loop, or under a cap of the phase's own.
    pub(super) fn place(&self) -> Option<u32> {
        self.own.as_ref().map(Slot::number)
    }

    pub(super) const fn prefill(&self) -> Option<&Prefill> {
        self.prefill.as_ref()
    }

    /// Gives all back but what the conversation keeps.
    pub(super) fn keep(mut self, freed: MonoTime) -> Kept {
        let kept = Kept {
            own: self.own.take(),
            turn: self.turn.take(),
        };
        self.release(freed);
        kept
    }

    /// The turn of a user or of a session, which ends with the request.
    pub(super) fn with_turn(mut self, turn: Option<Slot>) -> Self {
        self.turn = turn;
        self
    }

    /// Gives all back; they were free since `freed`.
    pub(super) fn release(self, freed: MonoTime) {
        if let Some(prefill) = self.prefill {
            prefill.release(freed);
        }
        self.target.release(freed);
        for slot in [self.own, self.turn].into_iter().flatten() {
            slot.release(freed);
        }
    }
}

impl Gate {
    /// A slot of each cap for the arrival due at `intended`, and when all were free. Until
    /// `held_until` a predecessor rightly kept us from it, so that it is no delay of ours.
    pub(super) async fn enter(
        &self,
        intended: MonoTime,
        held_until: MonoTime,
    ) -> Result<(Held, MonoTime), RefusedReason> {
        let due = (intended, held_until);
        let own = match &self.own {
            Some(slots) => Some(self.take_slot(slots, due).await?),
            None => None,
        };
        self.enter_with(own, due).await
    }

    /// As [`Self::enter`], for a conversation that has kept something.
    pub(super) async fn enter_again(
        &self,
        kept: Kept,
        (intended, held_until): (MonoTime, MonoTime),
    ) -> Result<(Held, MonoTime), RefusedReason> {
        let place = kept.own.map(|slot| (slot, intended));
        let entered = self.enter_with(place, (intended, held_until)).await;
        entered.map(|(held, free)| (held.with_turn(kept.turn), free))
    }

    async fn enter_with(
        &self,
        own: Option<(Slot, MonoTime)>,
        due: (MonoTime, MonoTime),
    ) -> Result<(Held, MonoTime), RefusedReason> {
        let target = self.take_slot(&self.target, due).await?;
        let prefill = match &self.prefill {
            Some(slots) => Some(self.take_slot(slots, due).await?),
            None => None,
        };
        let waited = [own.as_ref(), prefill.as_ref()].into_iter().flatten();
        let free = waited.map(|(_, at)| *at).fold(target.1, MonoTime::max);
        let held = Held {
            target: target.0,
            own: own.map(|(slot, _)| slot),
            prefill: prefill.map(|(slot, _)| Prefill::new(slot)),
            turn: None,
        };
        Ok((held, free))
    }

    /// Until when an arrival due at `intended` that got no slot kept those behind it waiting.
    pub(super) fn waited(&self, intended: MonoTime) -> MonoTime {
        self.patience
            .map_or_else(|| self.anchor.now(), |limit| intended + limit)
    }

    /// A slot for the arrival due at `intended`, and when there was one.
    async fn take_slot(
        &self,
        slots: &Slots,
        (intended, held_until): (MonoTime, MonoTime),
    ) -> Result<(Slot, MonoTime), RefusedReason> {
        if self.stop.at().is_some() {
            return Err(RefusedReason::Shutdown);
        }
        let late = self.anchor.now().since(intended.max(held_until));
        let is_late = is_own_lag(late, Duration::ZERO);
        if self.deadline.is_some_and(|last| last <= self.anchor.now()) {
            return Err(full(is_late));
        }
        if let Some(mut slot) = slots.try_take() {
            if is_late {
                slots.mark_late(&mut slot);
            }
            return Ok((slot, intended));
        }
        if self.when_full == WhenFull::Refuse {
            return Err(full(is_late || slots.is_late_in_use()));
        }
        self.wait_for(slots, intended).await
    }

    /// Waits for a slot whatever the policy: a user's next turn waits for the last.
    pub(super) async fn wait_for(
        &self,
        slots: &Slots,
        intended: MonoTime,
    ) -> Result<(Slot, MonoTime), RefusedReason> {
        let began = self.anchor.now();
        let patience = self.patience.map(|limit| intended + limit);
        let last = [patience, self.deadline].into_iter().flatten().min();
        tokio::select! {
            biased;
            () = self.stop.stopped() => Err(RefusedReason::Shutdown),
            // Slots that become free as requests are given up are no slots.
            () = until(self.anchor, last) => {
                let late = last.map(|last| self.anchor.now().since(last.max(began)));
                let limit = self.patience.unwrap_or_default();
                Err(full(is_own_lag(late.unwrap_or_default(), limit)))
            }
            slot = slots.take() => match slot {
                Ok(slot) => Ok((slot, slots.freed_at().max(intended))),
                Err(_) => Err(RefusedReason::Shutdown),
            },
        }
    }

    /// A slot of the closed loop and of every other cap, and when all were free. `None` once the
    /// run stops or the phase is over.
    pub(super) async fn enter_closed(&self) -> Option<(Held, MonoTime)> {
        let all = async {
            let own = self.own.as_ref()?;
            let slot = own.take().await.ok()?;
            let free = own.freed_at();
            let (target, free) = also(&self.target, free).await?;
            let (prefill, free) = match &self.prefill {
                Some(slots) => {
                    let (slot, free) = also(slots, free).await?;
                    (Some(Prefill::new(slot)), free)
                }
                None => (None, free),
            };
            let held = Held {
                target,
                own: Some(slot),
                prefill,
                turn: None,
            };
            Some((held, free))
        };
        tokio::select! {
            biased;
            () = self.stop.stopped() => None,
            held = all => held,
            () = until(self.anchor, self.end) => None,
        }
    }
}

/// Why an arrival that finds a cap full is refused.
const fn full(is_our_doing: bool) -> RefusedReason {
    if is_our_doing {
        RefusedReason::OwnLag
    } else {
        RefusedReason::InFlight
    }
}

/// Waits until `at`; for ever if there is none.
pub(super) async fn until(anchor: TimeAnchor, at: Option<MonoTime>) {
    match at {
        Some(at) => tokio::time::sleep_until(anchor.instant(at)).await,
        None => std::future::pending().await,
    }
}

/// A slot of `slots` for whoever was free to take one at `free`, and when there was one.
async fn also(slots: &Slots, free: MonoTime) -> Option<(Slot, MonoTime)> {
    if let Some(slot) = slots.try_take() {
        return Some((slot, free));
    }
    let slot = slots.take().await.ok()?;
    Some((slot, free.max(slots.freed_at())))
}
