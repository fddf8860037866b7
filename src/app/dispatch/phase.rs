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
use super::request::Due;
use super::supply::{Left, RowClock};
use super::talks::Work;
use super::{Shared, Stop};
use crate::client::Cancel;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Arrivals, Bounds, Cancellation, PhaseConfig, Ramp, WhenFull};
use crate::control::Slots;
use crate::load::schedule::{Arrival, CapRamp, Schedule, Span, Turn};
use crate::measurement::Phase as Tag;

/// Conversations at a time that no cap of the phase's own bounds.
const MOST_SESSIONS: u32 = 100_000;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// A phase that has not begun.
pub(in crate::app) struct PhasePlan {
    pub(in crate::app) config: PhaseConfig,
    /// How long after its start its arrivals begin.
    pub(in crate::app) offset: Duration,
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
    /// What each user works through, where that is read.
    works: HashMap<u64, Work>,
    /// Conversations that users may still begin.
    sessions: Left,
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
            offset,
            tag,
            arrivals,
            chance,
            has_sessions,
        } = self;
        let mut bounds = config.bounds;
        let Bounds { duration, .. } = bounds;
        let requests = has_sessions.then(|| bounds.requests.take()).flatten();
        let works = has_sessions && matches!(config.arrivals, Arrivals::Users { .. });
        let sessions = works.then(|| bounds.sessions.take()).flatten();
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
            start: start + offset,
            since_midnight: since_midnight(anchor, start),
            bounds,
        };
        let (schedule, clock) = schedule(&config, span, arrivals);
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
            works: HashMap::new(),
            sessions: Left::of(sessions),
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

    /// What lets the turn of a user that is `due` follow the one before; `None` where there are
    /// no users.
    pub(super) fn turns_of(&mut self, arrival: Arrival, due: &Due) -> Option<Slots> {
        let turn = arrival.turn?;
        Some(match &due.talk {
            Some(talk) => talk.turns.clone(),
            None => self.user(turn, arrival.intended),
        })
    }

    /// What the user of `turn` works through.
    pub(super) fn work_of(&mut self, turn: Turn) -> &mut Work {
        self.works.entry(turn.session).or_default()
    }

    /// A user has begun a conversation.
    pub(super) fn begun(&self) {
        self.sessions.take();
    }

    /// Whether the user of `turn` has something to send: the rest of a conversation, or another
    /// one.
    pub(super) fn goes_on(&self, turn: Option<Turn>) -> bool {
        let Some(turn) = turn else { return true };
        let work = self.works.get(&turn.session);
        self.sessions.any() || work.is_some_and(|work| !work.is_done())
    }

    /// Whether no user has.
    pub(super) fn is_worked_off(&self) -> bool {
        !self.sessions.any() && self.works.values().all(Work::is_done)
    }

    /// Turns that users would have had.
    pub(super) fn turns_left(&self) -> usize {
        self.works.values().map(Work::left).sum()
    }

    fn user(&mut self, turn: Turn, now: MonoTime) -> Slots {
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

/// When the arrivals of `config` are due, and who is told the times of rows, where they decide.
fn schedule(config: &PhaseConfig, span: Span, random: StdRng) -> (Schedule, Option<RowClock>) {
    match &config.arrivals {
        Arrivals::Trace { replay } => {
            let clock = RowClock::default();
            let schedule = Schedule::recorded((clock.times(), *replay), span);
            (schedule, Some(clock))
        }
        process => {
            let process = (process, config.ramps.rate);
            (Schedule::new(process, span, random), None)
        }
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
