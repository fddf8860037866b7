//! Takes arrivals when they are due and sends them, or says why not. One loop per probe and
//! target; its arrivals are spread over the target's addresses.
//!
//! Every arrival ends as exactly one record: place for it in the queue is taken before anything
//! else is done. Arrivals that find the cap full wait in the schedule, in order, or are refused;
//! the refusal is the server's doing only if we came to the arrival in time.
//! A closed loop takes its slots first and is due then.

mod calibrate;
mod gate;
mod pacer;
mod phase;
mod request;
mod session;
mod supply;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::gate::Gate;
use self::pacer::Pacer;
use self::phase::Phase;
pub(super) use self::phase::{PhasePlan, Rules};
use self::request::{Due, Ticket};
use self::session::{Drawn, Setting};
pub(super) use self::supply::Supply;
use self::supply::{Left, RowClock};
use super::feed::Tally;
use super::lanes::{Lane, Lanes};
use super::ledger::Ledger;
use crate::client::Cancel;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Replies, TraceSampling, WhenFull};
use crate::control::{Governor, Slots};
use crate::load::schedule::Arrival;
use crate::load::workload::Prompt;
use crate::measurement::{Link, LinkKind, RequestRecord, TraceIds};

/// After this long without a request the way there is cold.
const PAUSE: Duration = Duration::from_millis(20);
/// A rehearsal begins this long before the request: cold passes of one to two milliseconds were
/// seen on a virtual machine that idles.
const REHEARSAL_LEAD: Duration = Duration::from_millis(4);
/// Conversations are numbered from here on, beside the places of a closed loop.
const FIRST_SESSION: u64 = 1 << 32;
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
    /// Which requests the servers are told to trace.
    pub(super) sampling: TraceSampling,
}

/// The loop of one probe and one target.
pub(super) struct Dispatch {
    pub(super) shared: Shared,
    pub(super) lanes: Lanes,
    pub(super) phases: VecDeque<PhasePlan>,
    pub(super) rules: Rules,
    pub(super) supply: Supply,
    /// Whose answers later turns carry, and how many conversations there were.
    pub(super) sessions: (Replies, u64),
    pub(super) ledger: Ledger,
    pub(super) ids: StdRng,
    /// The arrival before.
    pub(super) before: Option<TraceIds>,
}

impl Dispatch {
    /// Where what becomes of its file is counted, if it has one.
    pub(super) fn tally(&self) -> Option<Arc<Tally>> {
        self.supply.tally().map(Arc::clone)
    }

    /// Runs until the last phase has ended, requests included, or the run stops.
    pub(super) async fn run(mut self) {
        let (anchor, stop) = (self.shared.anchor, self.shared.stop.clone());
        let mut pacer = Pacer::new(anchor);
        let mut line = Line::default();
        let mut lingering = Vec::new();
        tokio::select! {
            biased;
            () = stop.stopped() => {}
            () = self.calibrate() => {}
        }
        let mut start = anchor.now();
        while let Some(plan) = self.phases.pop_front() {
            let mut phase = plan.begin(&self.shared, &self.rules, start);
            if phase.schedule.is_closed_loop() {
                self.ledger.next_unknown();
                self.run_closed(&mut phase).await;
            } else {
                self.run_open(&mut phase, (&mut pacer, &mut line)).await;
            }
            // Turns that follow others are not due yet.
            if self.phases.is_empty() && !self.supply.is_read() {
                self.ledger.end();
            } else {
                self.ledger.next_unknown();
            }
            let (requests, next) = phase.finish(&stop).await;
            lingering.push(requests);
            if stop.at().is_some() {
                break;
            }
            start = next.unwrap_or_else(|| anchor.now());
        }
        for requests in &lingering {
            phase::drain(requests, &stop).await;
        }
        self.ledger.end();
    }

    async fn run_open(&mut self, phase: &mut Phase, (pacer, line): (&mut Pacer, &mut Line)) {
        while self.has_more(phase.rest()).await
            && let Some(arrival) = phase.schedule.next(line.free)
        {
            if self.supply.is_read() {
                self.ledger.next_unknown();
            } else {
                self.ledger.next_due(arrival.intended);
            }
            self.supply.draw(arrival.turn.map(|turn| turn.session));
            if !self.is_due(arrival.intended, pacer).await {
                return;
            }
            let Some(due) = self.arrive(arrival, phase).await else {
                return;
            };
            if let Some(turn) = arrival.turn {
                let user = phase.user(turn, arrival.intended);
                Due::spawn(
                    (&self.shared, &phase.requests),
                    take_turn(due, user, (phase.gate.clone(), arrival.intended)),
                );
                continue;
            }
            match phase.gate.enter(arrival.intended, line.free).await {
                Ok((held, free)) => {
                    // Arrivals are served in order, so none has a slot before its predecessor had.
                    line.free = line.free.max(free);
                    due.go(held, line.free);
                }
                Err(reason) => {
                    if phase.gate.when_full == WhenFull::Wait {
                        line.free = line.free.max(phase.gate.waited(arrival.intended));
                    }
                    due.refuse(reason);
                }
            }
        }
    }

    async fn run_closed(&mut self, phase: &mut Phase) {
        self.supply.draw(None);
        while self.has_more(phase.rest()).await
            && let Some((held, free)) = phase.gate.enter_closed().await
        {
            let Some(arrival) = phase.schedule.next(free) else {
                return;
            };
            let Some(due) = self.arrive(arrival, phase).await else {
                return;
            };
            due.go(held, arrival.intended);
            self.supply.draw(None);
        }
    }

    /// Whether there is something to send, which is waited for where it is read or made elsewhere.
    /// What a file has is then told when it is due.
    async fn has_more(&mut self, (left, clock): (Left, Option<RowClock>)) -> bool {
        if !self.supply.is_read() {
            // Also when the run stops: what was due by then becomes a record.
            return self.supply.is_ready().await;
        }
        if !left.any() {
            return false;
        }
        let stop = self.shared.stop.clone();
        tokio::select! {
            biased;
            script = self.supply.upcoming() => {
                if let (Some(script), Some(clock)) = (script, clock) {
                    clock.set(script.at);
                }
                script.is_some()
            }
            () = stop.stopped() => false,
        }
    }

    /// Waits until `intended`. False if the run stops before.
    async fn is_due(&self, intended: MonoTime, pacer: &mut Pacer) -> bool {
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
            () = pacer.until(intended) => true,
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
            input_tokens: Some(1),
            output_tokens: Some(2),
            ..Prompt::default()
        };
        if !client.rehearse(record, &prompt).await {
            tracing::debug!(probe = &*stream.probe, "a rehearsal broke off");
        }
    }

    /// Makes the record of an arrival that is due. `None` if nobody takes records any more.
    async fn arrive(&mut self, arrival: Arrival, phase: &mut Phase) -> Option<Due> {
        if !phase.left.take() {
            return None;
        }
        let permit = self.shared.records.clone().reserve_owned().await.ok()?;
        let sequence = self.shared.sequence.fetch_add(1, Relaxed);
        let ids = next_ids(&mut self.ids);
        let is_second = self.lanes.is_second();
        let lane = self.lanes.pick();
        let intended = arrival.intended;
        let session = arrival.turn.map(|turn| turn.session);
        let mut record = RequestRecord::due(sequence, Arc::clone(&lane.stream), ids, intended);
        record.phase.clone_from(&phase.tag);
        record.traced = self.shared.sampling.samples(ids.trace);
        let before = self.before.replace(ids).filter(|_| is_second);
        record.link = before.map(|ids| Link {
            kind: LinkKind::Pair,
            ids,
        });
        let script = self.supply.take(session)?;
        let closed_loop = phase.schedule.is_closed_loop();
        let give_up = phase.give_up();
        let (prompt, then) = {
            let (setting, ids) = (self.setting(phase, &lane), &mut self.ids);
            session::begin(script, setting, || Drawn {
                ids: next_ids(ids),
                give_up: phase.give_up(),
            })
        };
        self.ledger.open(sequence, intended);
        Some(Due {
            shared: self.shared.clone(),
            ticket: Ticket {
                permit,
                record: Box::new(record),
                lane,
                ledger: self.ledger.clone(),
            },
            prompt,
            closed_loop,
            session: match &then {
                Some(session) => Some(session.number()),
                None => session,
            },
            then,
            give_up,
            phase: (phase.requests.clone(), phase.cancel.clone()),
        })
    }

    /// What the turns of a conversation at `lane` have in common; `None` where there are none.
    fn setting(&mut self, phase: &Phase, lane: &Lane) -> Option<Setting> {
        let Supply::Read { feed, .. } = &self.supply else {
            return None;
        };
        let (replies, begun) = &mut self.sessions;
        *begun += 1;
        Some(Setting {
            shared: self.shared.clone(),
            lane: lane.clone(),
            ledger: self.ledger.clone(),
            tag: phase.tag.clone(),
            gate: phase.gate.clone(),
            left: phase.left.clone(),
            closed_loop: phase.schedule.is_closed_loop(),
            number: FIRST_SESSION + *begun,
            replies: *replies,
            tally: Arc::clone(feed.tally()),
            phase: (phase.requests.clone(), phase.cancel.clone()),
        })
    }
}

fn next_ids(random: &mut StdRng) -> TraceIds {
    TraceIds {
        trace: random.random_range(1..=u128::MAX),
        span: random.random_range(1..=u64::MAX),
    }
}

/// The line of arrivals that wait for slots in order, over all phases of a loop.
struct Line {
    /// None behind has a slot before this.
    free: MonoTime,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            free: MonoTime::ZERO,
        }
    }
}

/// Waits for the user's last turn to end, then for the slots. Other users go on meanwhile.
async fn take_turn(due: Due, user: Slots, (gate, intended): (Gate, MonoTime)) {
    let turn = match user.try_take() {
        Some(slot) => Ok((slot, intended)),
        None => gate.wait_for(&user, intended).await,
    };
    let (turn, ready) = match turn {
        Ok(turn) => turn,
        Err(reason) => return due.refuse(reason),
    };
    match gate.enter(intended, ready).await {
        Ok((held, free)) => due.go(held.with_user(Some(turn)), free.max(ready)),
        Err(reason) => due.refuse(reason),
    }
}
