//! Takes arrivals when they are due and sends them, or says why not. One loop per probe and
//! target; its arrivals are spread over the target's addresses.
//!
//! Every arrival ends as exactly one record: place for it in the queue is taken before anything
//! else is done. Arrivals that find the cap full wait in the schedule, in order, or are refused;
//! the refusal is the server's doing only if we came to the arrival in time.
//! A closed loop takes its slots first and is due then.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lanes::{Flight, Lane, Lanes};
use super::ledger::Ledger;
use crate::client::{Call, Cancel, Client};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::WhenFull;
use crate::control::{Governor, Reservation, Slot, Slots};
use crate::load::schedule::Schedule;
use crate::load::workload::{Prompt, Workload};
use crate::measurement::{Outcome, RefusedReason, RequestRecord, TraceIds, is_own_lag};

/// A closed loop asks an empty budget again after this time.
const BUDGET_PAUSE: Duration = Duration::from_mins(1);
/// A closed loop does not hammer a server that cannot be reached.
const CLOSED_LOOP_PAUSE: Duration = Duration::from_millis(100);
/// After this long without a request the way there is cold.
const PAUSE: Duration = Duration::from_millis(20);
/// A rehearsal begins this long before the request: cold passes of one to two milliseconds were
/// seen on a virtual machine that idles.
const REHEARSAL_LEAD: Duration = Duration::from_millis(4);
/// Output tokens reserved where none are asked for.
const RESERVED_OUTPUT: u64 = 4096;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Days since the Unix epoch, in UTC.
pub(super) fn unix_day(anchor: TimeAnchor) -> u64 {
    anchor.wall().unix_ns(anchor.now()) / DAY_NS
}

/// When the run was told to stop: what was due by then still becomes a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    at: Arc<OnceLock<MonoTime>>,
    token: CancellationToken,
}

impl Stop {
    /// Ends all schedules at `now`.
    pub(super) fn stop(&self, now: MonoTime) {
        self.at.get_or_init(|| now);
        self.token.cancel();
    }

    fn at(&self) -> Option<MonoTime> {
        self.at.get().copied()
    }

    /// Resolves once the run is stopping.
    pub(super) async fn stopped(&self) {
        self.token.cancelled().await;
    }
}

/// What all dispatch loops share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) anchor: TimeAnchor,
    pub(super) governor: Arc<Governor>,
    pub(super) sequence: Arc<AtomicU64>,
    pub(super) records: mpsc::Sender<RequestRecord>,
    pub(super) stop: Stop,
    /// Makes requests in flight give up.
    pub(super) cancel: Cancel,
    pub(super) requests: TaskTracker,
    pub(super) measuring: Handle,
}

/// The loop of one probe and one target.
pub(super) struct Dispatch {
    pub(super) shared: Shared,
    pub(super) lanes: Lanes,
    pub(super) schedule: Schedule,
    pub(super) workload: Workload,
    pub(super) when_full: WhenFull,
    /// How long an arrival may wait for a slot; `None`: as long as it takes.
    pub(super) patience: Option<Duration>,
    /// The target's in-flight cap, over all its probes.
    pub(super) target_slots: Slots,
    /// A closed loop's own concurrency.
    pub(super) loop_slots: Option<Slots>,
    pub(super) ledger: Ledger,
    pub(super) ids: StdRng,
}

/// An arrival with a place in the queue of records.
struct Ticket {
    permit: mpsc::OwnedPermit<RequestRecord>,
    record: RequestRecord,
    /// Where it goes.
    lane: Lane,
    ledger: Ledger,
}

impl Ticket {
    fn hand_on(self) {
        let sequence = self.record.sequence;
        self.permit.send(self.record);
        self.ledger.closed(sequence);
    }

    fn refuse(mut self, reason: RefusedReason) {
        self.record.outcome = Outcome::Refused;
        self.record.refused = Some(reason);
        self.hand_on();
    }
}

/// The slots that one request holds.
struct Held {
    target: Slot,
    own: Option<Slot>,
}

impl Held {
    fn release(self, now: MonoTime) {
        self.target.release(now);
        if let Some(own) = self.own {
            own.release(now);
        }
    }
}

impl Dispatch {
    /// Runs until the schedule ends or the run stops.
    pub(super) async fn run(mut self) {
        match self.loop_slots.clone() {
            None => self.run_open().await,
            Some(slots) => self.run_closed(&slots).await,
        }
        self.ledger.end();
    }

    async fn run_open(&mut self) {
        // Arrivals are served in order, so none has a slot before its predecessor had.
        let mut slot_free = MonoTime::ZERO;
        // So long a predecessor rightly kept us from the next.
        let mut held_until = MonoTime::ZERO;
        while let Some(arrival) = self.schedule.next(slot_free) {
            self.ledger.next_due(arrival.intended);
            if !self.is_due(arrival.intended).await {
                return;
            }
            let Some(mut ticket) = self.arrive(arrival.intended).await else {
                return;
            };
            match self.take_slot(arrival.intended, held_until).await {
                Ok((target, free)) => {
                    slot_free = slot_free.max(free);
                    held_until = slot_free;
                    ticket.record.timeline.slot_free = Some(slot_free);
                    self.go(ticket, Held { target, own: None });
                }
                Err(reason) => {
                    if let (WhenFull::Wait, Some(limit)) = (self.when_full, self.patience) {
                        held_until = held_until.max(arrival.intended + limit);
                    }
                    ticket.refuse(reason);
                }
            }
        }
    }

    async fn run_closed(&mut self, slots: &Slots) {
        while let Some((held, free)) = self.take_both(slots).await {
            let Some(arrival) = self.schedule.next(free) else {
                return;
            };
            let Some(mut ticket) = self.arrive(arrival.intended).await else {
                return;
            };
            ticket.record.timeline.slot_free = Some(arrival.intended);
            self.go(ticket, held);
        }
    }

    /// Waits until `intended`. False if the run stops before.
    async fn is_due(&self, intended: MonoTime) -> bool {
        let Shared { anchor, stop, .. } = &self.shared;
        if let Some(stop) = stop.at() {
            return intended <= stop;
        }
        if intended <= anchor.now() {
            return true;
        }
        self.rehearse_before(intended).await;
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(anchor.instant(intended)) => true,
            // Both may have come while we were not running.
            () = stop.stopped() => stop.at().is_some_and(|stop| intended <= stop),
        }
    }

    /// Wakes a little before `intended`, if that is some time away, and plays the request path
    /// through, so that the first request after a pause is timed like any other.
    async fn rehearse_before(&self, intended: MonoTime) {
        let Shared { anchor, stop, .. } = &self.shared;
        let early = intended.minus(REHEARSAL_LEAD);
        if early <= anchor.now() + PAUSE {
            return;
        }
        tokio::select! {
            biased;
            () = stop.stopped() => return,
            () = tokio::time::sleep_until(anchor.instant(early)) => {}
        }
        let ids = TraceIds { trace: 1, span: 1 };
        let Lane { stream, client, .. } = self.lanes.upcoming();
        let record = RequestRecord::due(0, Arc::clone(stream), ids, intended);
        let prompt = Prompt {
            text: "rehearsal".to_owned(),
            input_tokens: 1,
            output_tokens: Some(2),
        };
        if !client.rehearse(record, &prompt).await {
            tracing::debug!(probe = &*stream.probe, "a rehearsal broke off");
        }
    }

    /// Makes the record of an arrival that is due. `None` if nobody takes records any more.
    async fn arrive(&mut self, intended: MonoTime) -> Option<Ticket> {
        let permit = self.shared.records.clone().reserve_owned().await.ok()?;
        let sequence = self.shared.sequence.fetch_add(1, Relaxed);
        let ids = self.next_ids();
        let lane = self.lanes.pick();
        let record = RequestRecord::due(sequence, Arc::clone(&lane.stream), ids, intended);
        self.ledger.open(sequence, intended);
        Some(Ticket {
            permit,
            record,
            lane,
            ledger: self.ledger.clone(),
        })
    }

    /// A slot for the arrival due at `intended`, and when there was one. Until `held_until` a
    /// predecessor waited for its slot, so that it is no delay of ours.
    async fn take_slot(
        &self,
        intended: MonoTime,
        held_until: MonoTime,
    ) -> Result<(Slot, MonoTime), RefusedReason> {
        let Shared { anchor, stop, .. } = &self.shared;
        if stop.at().is_some() {
            return Err(RefusedReason::Shutdown);
        }
        let late = anchor.now().since(intended.max(held_until));
        let is_late = is_own_lag(late, Duration::ZERO);
        if let Some(mut slot) = self.target_slots.try_take() {
            if is_late {
                self.target_slots.mark_late(&mut slot);
            }
            return Ok((slot, intended));
        }
        if self.when_full == WhenFull::Refuse {
            let ours = is_late || self.target_slots.is_late_in_use();
            return Err(full(ours));
        }
        let patience = async {
            let Some(limit) = self.patience else {
                return std::future::pending().await;
            };
            let until = intended + limit;
            tokio::time::sleep_until(anchor.instant(until)).await;
            is_own_lag(late.max(anchor.now().since(until)), limit)
        };
        tokio::select! {
            biased;
            slot = self.target_slots.take() => match slot {
                Ok(slot) => Ok((slot, self.target_slots.freed_at().max(intended))),
                Err(_) => Err(RefusedReason::Shutdown),
            },
            () = stop.stopped() => Err(RefusedReason::Shutdown),
            ours = patience => Err(full(ours)),
        }
    }

    /// A slot of the closed loop and one of the target, and when both were free. `None` once the
    /// run stops.
    async fn take_both(&self, slots: &Slots) -> Option<(Held, MonoTime)> {
        let both = async {
            let own = slots.take().await.ok()?;
            let own_free = slots.freed_at();
            if let Some(target) = self.target_slots.try_take() {
                return Some((
                    Held {
                        target,
                        own: Some(own),
                    },
                    own_free,
                ));
            }
            let target = self.target_slots.take().await.ok()?;
            let free = own_free.max(self.target_slots.freed_at());
            Some((
                Held {
                    target,
                    own: Some(own),
                },
                free,
            ))
        };
        tokio::select! {
            biased;
            () = self.shared.stop.stopped() => None,
            held = both => held,
        }
    }

    /// Sends the request in a task of its own, if the budgets allow it.
    fn go(&mut self, ticket: Ticket, held: Held) {
        let prompt = self.workload.prompt();
        let day = unix_day(self.shared.anchor);
        let output = prompt.output_tokens.map_or(RESERVED_OUTPUT, u64::from);
        let reserved = self
            .shared
            .governor
            .reserve(day, u64::from(prompt.input_tokens) + output);
        let reserved = match reserved {
            Ok(reserved) => reserved,
            Err(reason) => {
                ticket.refuse(reason);
                self.spawn_release(held);
                return;
            }
        };
        let request = Request {
            shared: self.shared.clone(),
            client: Arc::clone(&ticket.lane.client),
            prompt,
            reserved,
            held,
            flight: ticket.lane.load.begin(),
        };
        let tasks = &self.shared.requests;
        tasks.spawn_on(request.run(ticket), &self.shared.measuring);
    }

    /// Gives slots back; in a closed loop after a pause.
    fn spawn_release(&self, held: Held) {
        let anchor = self.shared.anchor;
        if held.own.is_none() {
            held.release(anchor.now());
            return;
        }
        let stop = self.shared.stop.clone();
        let release = async move {
            tokio::select! {
                () = tokio::time::sleep(BUDGET_PAUSE) => {}
                () = stop.stopped() => {}
            }
            held.release(anchor.now());
        };
        self.shared
            .requests
            .spawn_on(release, &self.shared.measuring);
    }

    fn next_ids(&mut self) -> TraceIds {
        TraceIds {
            trace: self.ids.random_range(1..=u128::MAX),
            span: self.ids.random_range(1..=u64::MAX),
        }
    }
}

/// Why an arrival that finds the cap full is refused.
const fn full(is_our_doing: bool) -> RefusedReason {
    if is_our_doing {
        RefusedReason::OwnLag
    } else {
        RefusedReason::InFlight
    }
}

/// One request on its way.
struct Request {
    shared: Shared,
    client: Arc<Client>,
    prompt: Prompt,
    reserved: Reservation,
    held: Held,
    flight: Flight,
}

impl Request {
    async fn run(self, mut ticket: Ticket) {
        let Self {
            shared,
            client,
            prompt,
            reserved,
            held,
            flight,
        } = self;
        let call = Call {
            record: ticket.record,
            prompt,
            // The place in a closed loop stands for a user, who keeps a connection.
            session: held.own.as_ref().map(|slot| u64::from(slot.number())),
        };
        ticket.record = client.send(call, &shared.cancel).await;
        drop(flight);
        shared.governor.settle(reserved, used(&ticket.record));
        let unreached = held.own.is_some() && !was_reached(ticket.record.outcome);
        let ended = ticket.record.timeline.end;
        ticket.hand_on();
        if unreached {
            tokio::time::sleep(CLOSED_LOOP_PAUSE).await;
            held.release(shared.anchor.now());
        } else {
            // The server was done then; what came after is our own lag, not a wait for a slot.
            held.release(ended.unwrap_or_else(|| shared.anchor.now()));
        }
    }
}

/// Tokens that a request used, if that is known.
fn used(record: &RequestRecord) -> Option<u64> {
    if record.outcome == Outcome::Refused {
        return Some(0); // it never left
    }
    let (input, output) = record.tokens.input.zip(record.tokens.output)?;
    Some(u64::from(input) + u64::from(output))
}

/// Whether the server took the connection at all.
const fn was_reached(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Dns | Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect | Outcome::Refused
    )
}
