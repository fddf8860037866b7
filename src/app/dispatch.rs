//! Takes arrivals when they are due and sends them, or says why not. One loop per probe and
//! target; its arrivals are spread over the target's addresses.
//!
//! Every arrival ends as exactly one record: place for it in the queue is taken before anything
//! else is done. Arrivals that find the cap full wait in the schedule, in order, or are refused;
//! the refusal is the server's doing only if we came to the arrival in time.
//! A closed loop takes its slots first and is due then.

mod branches;
mod calibrate;
mod gate;
mod pacer;
mod phase;
mod request;
mod session;
mod supply;
mod talks;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::pacer::Pacer;
use self::phase::Phase;
pub(super) use self::phase::{PhasePlan, Rules};
use self::request::{Due, Ticket};
use self::session::{Begun, Drawn, Setting};
pub(super) use self::supply::Supply;
use self::supply::{Left, RowClock};
use self::talks::{Talk, take_turn};
use super::feed::Tally;
use super::lanes::{Lane, Lanes};
use super::ledger::Ledger;
use crate::client::Cancel;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Replies, TraceSampling, WhenFull};
use crate::control::{Governor, Slot};
use crate::load::schedule::Arrival;
use crate::load::workload::Prompt;
use crate::measurement::{Link, LinkKind, PhaseKind, RequestRecord, TraceIds, Wanted};

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

    /// Runs `task` on `runtime` until it ends or the run is stopping.
    pub(super) fn spawn(&self, runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = task => {}
                () = stop.stopped() => {}
            }
        });
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
    /// What warm-ups send of a file, so that they do not move the place in it; `None`: the same.
    pub(super) warm_up: Option<Supply>,
    /// Whose answers later turns carry, and how many conversations there were.
    pub(super) sessions: (Replies, u64),
    pub(super) ledger: Ledger,
    pub(super) ids: StdRng,
    /// The arrival before.
    pub(super) before: Option<TraceIds>,
}

impl Dispatch {
    /// Where what becomes of its file is counted, if it has one, and of the same in warm-ups.
    pub(super) fn tallies(&self) -> impl Iterator<Item = Arc<Tally>> {
        let supplies = [Some(&self.supply), self.warm_up.as_ref()];
        supplies
            .into_iter()
            .flatten()
            .filter_map(Supply::tally)
            .cloned()
    }

    /// Takes what warm-ups send for what is sent, or back again.
    fn change_supply(&mut self) {
        if let Some(warm_up) = &mut self.warm_up {
            std::mem::swap(&mut self.supply, warm_up);
        }
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
            let is_warm_up = plan.config.kind == PhaseKind::WarmUp;
            let mut phase = plan.begin(&self.shared, &self.rules, start);
            if is_warm_up {
                self.change_supply();
            }
            if phase.schedule.is_closed_loop() {
                self.ledger.next_unknown();
                self.run_closed(&mut phase).await;
            } else {
                self.run_open(&mut phase, (&mut pacer, &mut line)).await;
                if let Some(tally) = self.supply.tally() {
                    tally.unsent(phase.turns_left());
                }
            }
            if is_warm_up {
                self.change_supply();
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
                if !phase.goes_on(arrival.turn) {
                    if phase.is_worked_off() {
                        return;
                    }
                    continue;
                }
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
            let (due, turn) = match self.turn(due, arrival, phase) {
                ControlFlow::Continue(due) => due,
                ControlFlow::Break(()) => continue,
            };
            match phase.gate.enter(arrival.intended, line.free).await {
                Ok((held, free)) => {
                    // Arrivals are served in order, so none has a slot before its predecessor had.
                    line.free = line.free.max(free);
                    due.go(held.with_turn(turn), line.free);
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

    /// The turn of its session that `due` takes at once, if it has one. Where it has to wait for
    /// the one before, or belongs to a user, it goes its own way, and others go on.
    fn turn(
        &self,
        due: Due,
        arrival: Arrival,
        phase: &mut Phase,
    ) -> ControlFlow<(), (Due, Option<Slot>)> {
        let turns = match (phase.turns_of(arrival, &due), &due.talk) {
            (Some(turns), _) => turns,
            (None, None) => return ControlFlow::Continue((due, None)),
            (None, Some(talk)) => {
                if let Some(turn) = talk.turns.try_take() {
                    return ControlFlow::Continue((due, Some(turn)));
                }
                talk.turns.clone()
            }
        };
        let waits = (phase.gate.clone(), arrival.intended);
        let waiting = take_turn(due, turns, waits);
        Due::spawn((&self.shared, &phase.requests), waiting);
        ControlFlow::Break(())
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
        let (lanes, count) = (&mut self.lanes, &mut self.sessions.1);
        let begin = || {
            *count += 1;
            (lanes.pick(), FIRST_SESSION + *count)
        };
        let (script, talk) = self.supply.coming(arrival, phase, begin)?;
        let lane = match &talk {
            Some(talk) => talk.lane.clone(),
            None => self.lanes.pick(),
        };
        let intended = arrival.intended;
        let mut record = RequestRecord::due(sequence, Arc::clone(&lane.stream), ids, intended);
        record.phase.clone_from(&phase.tag);
        record.traced = self.shared.sampling.samples(ids.trace);
        let before = self.before.replace(ids).filter(|_| is_second);
        let pair = before.map(|ids| Link {
            kind: LinkKind::Pair,
            ids,
        });
        record.link = pair.or_else(|| talk.as_ref()?.link(ids));
        let closed_loop = phase.schedule.is_closed_loop();
        let give_up = phase.give_up();
        let setting = self.setting(phase, (&lane, talk.as_ref()));
        let of_file = setting.as_ref().map(|setting| setting.number);
        let ids = &mut self.ids;
        let Begun { prompt, part, then } =
            session::begin(script, setting, talk.as_ref(), || Drawn {
                ids: next_ids(ids),
                give_up: phase.give_up(),
            });
        record.answer = prompt.wanted.clone().map(Wanted::unjudged);
        self.ledger.open(sequence, intended);
        // Who is one of several turns keeps a connection with them.
        let is_one = then.is_none() && talk.is_none();
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
            session: of_file
                .filter(|_| !is_one)
                .or(arrival.turn.map(|turn| turn.session)),
            talk,
            part,
            then,
            give_up,
            phase: (phase.requests.clone(), phase.cancel.clone()),
        })
    }

    /// What the turns of a conversation at `lane` have in common; `None` where there are none.
    fn setting(
        &mut self,
        phase: &Phase,
        (lane, talk): (&Lane, Option<&Arc<Talk>>),
    ) -> Option<Setting> {
        let Supply::Read { feed, .. } = &self.supply else {
            return None;
        };
        let (replies, begun) = &mut self.sessions;
        let number = talk.map_or_else(
            || {
                *begun += 1;
                FIRST_SESSION + *begun
            },
            |talk| talk.number,
        );
        Some(Setting {
            shared: self.shared.clone(),
            lane: lane.clone(),
            ledger: self.ledger.clone(),
            tag: phase.tag.clone(),
            gate: phase.gate.clone(),
            left: phase.left.clone(),
            closed_loop: phase.schedule.is_closed_loop(),
            number,
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
