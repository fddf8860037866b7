//! One phase of a probe: its schedule, its caps and their ramps, and how it ends.
//!
//! Its end is an instant, or its last arrival. From then on its requests have the grace period;
//! what is in flight after that is cancelled, and who still waits for a slot is refused. The
//! next phase begins when all that is over, or at the end itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::gate::{Gate, until};
use super::supply::{Left, RowClock};
use super::{Shared, Stop};
use crate::client::Cancel;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Arrivals, Bounds, Cancellation, PhaseConfig, Ramp, WhenFull};
use crate::control::Slots;
use crate::load::schedule::{CapRamp, Schedule, Span, Turn};
use crate::measurement::Phase as Tag;

/// Conversations at a time that no cap of the phase's own bounds.
const MOST_SESSIONS: u32 = 100_000;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// A phase that has not begun.
pub(in crate::app) struct PhasePlan {
    pub(in crate::app) config: PhaseConfig,
    /// On its records; `None`: it is the only one.
    pub(in crate::app) tag: Option<Arc<Tag>>,
    /// For its arrivals.
    pub(in crate::app) arrivals: StdRng,
    /// For planned cancellations.
    pub(in crate::app) chance: StdRng,
    /// Prompts come from a file: an arrival may begin a conversation.
    pub(in crate::app) has_sessions: bool,
}

/// What all phases of a loop have in common.
#[derive(Clone)]
pub(in crate::app) struct Rules {
    pub(in crate::app) when_full: WhenFull,
    /// How long an arrival may wait for a slot; `None`: as long as it takes.
    pub(in crate::app) patience: Option<Duration>,
    /// The target's in-flight cap, over all its probes.
    pub(in crate::app) target_slots: Slots,
}

/// A phase that runs.
pub(super) struct Phase {
    pub(super) schedule: Schedule,
    pub(super) gate: Gate,
    pub(super) tag: Option<Arc<Tag>>,
    /// Makes its requests give up.
    pub(super) cancel: Cancel,
    pub(super) requests: TaskTracker,
    /// The turn of each user that has had one.
    users: HashMap<u64, Slots>,
    /// Says when the next row is due, where rows do.
    clock: Option<RowClock>,
    /// Requests that may still be sent, where the schedule does not see them all.
    pub(super) left: Left,
    cancellation: Option<Cancellation>,
    chance: StdRng,
    seamless: bool,
    /// Ends its ramps.
    _ramps: DropGuard,
}

impl PhasePlan {
    /// Begins at `start`.
    pub(super) fn begin(self, shared: &Shared, rules: &Rules, start: MonoTime) -> Phase {
        let Self {
            config,
            tag,
            arrivals,
            chance,
            has_sessions,
        } = self;
        let mut bounds = config.bounds;
        let Bounds { duration, .. } = bounds;
        let requests = has_sessions.then(|| bounds.requests.take()).flatten();
        let end = duration.map(|span| start + span);
        let anchor = shared.anchor;
        let ramps = CancellationToken::new();
        let ramping = Ramping {
            shared,
            start,
            over: &ramps,
        };
        let own = config
            .cap()
            .or(has_sessions.then_some(MOST_SESSIONS))
            .map(|cap| ramping.slots(cap, config.ramps.concurrency));
        let prefill = config
            .prefill_concurrency
            .map(|cap| ramping.slots(cap, config.ramps.prefill_concurrency));
        let span = Span {
            start,
            since_midnight: since_midnight(anchor, start),
            bounds,
        };
        let (schedule, clock) = match &config.arrivals {
            Arrivals::Trace { replay } => {
                let clock = RowClock::default();
                let schedule = Schedule::recorded((clock.times(), *replay), span);
                (schedule, Some(clock))
            }
            process => (
                Schedule::new((process, config.ramps.rate), span, arrivals),
                None,
            ),
        };
        let phase = Phase {
            schedule,
            gate: Gate {
                anchor,
                stop: shared.stop.clone(),
                when_full: rules.when_full,
                patience: rules.patience,
                end,
                deadline: end.zip(config.grace).map(|(end, grace)| end + grace),
                own,
                target: rules.target_slots.clone(),
                prefill,
            },
            tag,
            cancel: shared.cancel.child(),
            requests: TaskTracker::new(),
            users: HashMap::new(),
            clock,
            left: Left::of(requests),
            cancellation: config.cancellation,
            chance,
            seamless: config.seamless,
            _ramps: ramps.drop_guard(),
        };
        phase.cancel_in_time(shared);
        phase
    }
}

impl Phase {
    /// When the request that is due now is given up after it was written, if that is planned.
    pub(super) fn give_up(&mut self) -> Option<Duration> {
        let Cancellation { share, after } = self.cancellation?;
        self.chance.random_bool(share).then_some(after)
    }

    /// What a file has to know: how many requests may still be sent, and who says when.
    pub(super) fn rest(&self) -> (Left, Option<RowClock>) {
        (self.left.clone(), self.clock.clone())
    }

    /// The slot that lets a user's turns follow each other.
    pub(super) fn user(&mut self, turn: Turn, now: MonoTime) -> Slots {
        let slots = self
            .users
            .entry(turn.session)
            .or_insert_with(|| Slots::new(1, now))
            .clone();
        if turn.last {
            self.users.remove(&turn.session);
        }
        slots
    }

    /// Ends it: there are no more arrivals. Its requests, and when the next phase begins;
    /// `None`: now.
    pub(super) async fn finish(self, stop: &Stop) -> (TaskTracker, Option<MonoTime>) {
        let Self {
            requests,
            seamless,
            gate,
            ..
        } = self;
        requests.close();
        if seamless {
            return (requests, gate.end);
        }
        drain(&requests, stop).await;
        (requests, None)
    }

    /// Cancels what is in flight when the grace period is over.
    fn cancel_in_time(&self, shared: &Shared) {
        let Some(deadline) = self.gate.deadline else {
            return;
        };
        let (requests, cancel) = (self.requests.clone(), self.cancel.clone());
        let anchor = shared.anchor;
        let reaper = async move {
            tokio::select! {
                biased;
                () = requests.wait() => {}
                () = until(anchor, Some(deadline)) => cancel.cancel(),
            }
        };
        shared.requests.spawn_on(reaper, &shared.measuring);
    }
}

/// Waits until all of `requests` have ended, or the run stops.
pub(super) async fn drain(requests: &TaskTracker, stop: &Stop) {
    tokio::select! {
        biased;
        () = requests.wait() => {}
        () = stop.stopped() => {}
    }
}

/// Moves caps along their ramps.
struct Ramping<'s> {
    shared: &'s Shared,
    start: MonoTime,
    over: &'s CancellationToken,
}

impl Ramping<'_> {
    /// Slots that become `cap` along `ramp`.
    fn slots(&self, cap: u32, ramp: Option<Ramp>) -> Slots {
        let Some(ramp) = ramp else {
            return Slots::new(cap, self.start);
        };
        let ramp = CapRamp::new(ramp, cap);
        let slots = Slots::new(ramp.first(), self.start);
        let (anchor, start) = (self.shared.anchor, self.start);
        let (over, stop, moved) = (self.over.clone(), self.shared.stop.clone(), slots.clone());
        let moving = async move {
            for step in ramp {
                let at = start + step.after;
                tokio::select! {
                    biased;
                    () = over.cancelled() => return,
                    () = stop.stopped() => return,
                    () = until(anchor, Some(at)) => moved.resize(step.cap, at),
                }
            }
        };
        let tasks = &self.shared.requests;
        tasks.spawn_on(moving, &self.shared.measuring);
        slots
    }
}

/// How much of the UTC day has passed at `at`.
fn since_midnight(anchor: TimeAnchor, at: MonoTime) -> Duration {
    Duration::from_nanos(anchor.wall().unix_ns(at) % DAY_NS)
}
