//! An arrival with its record, and the request that becomes of it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::unconstrained;
use tokio_util::task::TaskTracker;

use super::gate::Held;
use super::session::{Ended, Next};
use super::talks::{Part, Talk};
use super::{Shared, unix_day};
use crate::app::lanes::{Flight, Lane};
use crate::app::ledger::Ledger;
use crate::client::{Call, Cancel, FirstToken};
use crate::clock::MonoTime;
use crate::control::Reservation;
use crate::load::workload::Prompt;
use crate::measurement::{Outcome, RefusedReason, RequestRecord};

/// A closed loop asks an empty budget again after this time.
const BUDGET_PAUSE: Duration = Duration::from_mins(1);
/// A closed loop does not hammer a server that cannot be reached.
const CLOSED_LOOP_PAUSE: Duration = Duration::from_millis(100);
/// Output tokens reserved where none are asked for.
const RESERVED_OUTPUT: u64 = 4096;
/// Prompt tokens reserved where a file or a conversation does not say how many they are.
const RESERVED_INPUT: u64 = 4096;

/// An arrival with a place in the queue of records.
pub(super) struct Ticket {
    pub(super) permit: mpsc::OwnedPermit<RequestRecord>,
    pub(super) record: Box<RequestRecord>,
    /// Where it goes.
    pub(super) lane: Lane,
    pub(super) ledger: Ledger,
}

impl Ticket {
    pub(super) fn hand_on(self) {
        let sequence = self.record.sequence;
        self.permit.send(*self.record);
        self.ledger.closed(sequence);
    }

    pub(super) fn refuse(mut self, reason: RefusedReason) {
        self.record.outcome = Outcome::Refused;
        self.record.refused = Some(reason);
        self.hand_on();
    }
}

/// An arrival that is due: all that is known of its request before it has its slots.
pub(super) struct Due {
    pub(super) shared: Shared,
    pub(super) ticket: Ticket,
    pub(super) prompt: Prompt,
    /// Whether the next arrival is due when this one's slots are free.
    pub(super) closed_loop: bool,
    /// The turns of its conversation after it.
    pub(super) then: Option<Next>,
    /// The conversation of which it is a turn that is due at a time of its own.
    pub(super) talk: Option<Arc<Talk>>,
    /// What it has to do with the other turns of its conversation.
    pub(super) part: Option<Part>,
    /// Its user, who keeps a connection.
    pub(super) session: Option<u64>,
    pub(super) give_up: Option<Duration>,
    /// The requests of its phase, and what makes them give up.
    pub(super) phase: (TaskTracker, Cancel),
}

impl Due {
    pub(super) fn refuse(self, reason: RefusedReason) {
        if let Some(then) = self.then {
            then.cut();
        }
        self.ticket.refuse(reason);
    }

    /// Runs `task` as one of the phase and of the run.
    pub(super) fn spawn(
        (shared, phase): (&Shared, &TaskTracker),
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = phase.track_future(task);
        shared.requests.spawn_on(task, &shared.measuring);
    }

    /// Begins `task` at once, and lets it go on as [`Self::spawn`] does: what is due is sent before
    /// anything else that this thread has to do.
    fn begin(
        (shared, phase): (&Shared, &TaskTracker),
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut task = Box::pin(phase.track_future(task));
        // It is polled again as a task, and what it waits for is told then whom to wake.
        let mut nobody = Context::from_waker(Waker::noop());
        if pin!(unconstrained(task.as_mut()))
            .poll(&mut nobody)
            .is_pending()
        {
            shared.requests.spawn_on(task, &shared.measuring);
        }
    }

    /// Sends the request in a task of its own, if the budgets allow it. Its slots were all free
    /// at `free`.
    pub(super) fn go(mut self, held: Held, free: MonoTime) {
        self.ticket.record.timeline.slot_free = Some(free);
        if let Some(part) = &self.part {
            part.recall(&mut self.prompt);
        }
        let (shared, phase) = (self.shared.clone(), self.phase.0.clone());
        let output = self.prompt.output_tokens.map_or(RESERVED_OUTPUT, u64::from);
        let input = self.prompt.input_tokens.map_or(RESERVED_INPUT, u64::from);
        let tokens = input + output;
        let reserved = shared.governor.reserve(unix_day(shared.anchor), tokens);
        match reserved {
            Ok(reserved) => {
                let request = Request {
                    flight: self.ticket.lane.load.begin(),
                    due: self,
                    reserved,
                    held,
                };
                Self::begin((&shared, &phase), request.run());
            }
            Err(reason) => {
                let closed_loop = self.closed_loop;
                self.refuse(reason);
                give_back(held, closed_loop, (&shared, &phase));
            }
        }
    }
}

/// Gives slots back; in a closed loop after a pause.
fn give_back(held: Held, closed_loop: bool, (shared, phase): (&Shared, &TaskTracker)) {
    let anchor = shared.anchor;
    if !closed_loop {
        held.release(anchor.now());
        return;
    }
    let stop = shared.stop.clone();
    let release = async move {
        tokio::select! {
            () = tokio::time::sleep(BUDGET_PAUSE) => {}
            () = stop.stopped() => {}
        }
        held.release(anchor.now());
    };
    Due::spawn((shared, phase), release);
}

/// One request on its way.
struct Request {
    due: Due,
    reserved: Reservation,
    held: Held,
    flight: Flight,
}

impl Request {
    async fn run(self) {
        let Self {
            due,
            reserved,
            held,
            flight,
        } = self;
        let Due {
            shared,
            mut ticket,
            prompt,
            closed_loop,
            then,
            part,
            talk: _,
            session,
            give_up,
            phase: (_, cancel),
        } = due;
        let keeps_reply =
            ticket.record.answer.is_some() || part.as_ref().is_some_and(Part::wants_reply);
        let call = Call {
            record: ticket.record,
            prompt,
            // The place in a closed loop stands for a user, who keeps a connection.
            session: session.or_else(|| held.place().filter(|_| closed_loop).map(u64::from)),
            give_up,
            keep_reply: keeps_reply,
            first_token: held
                .prefill()
                .cloned()
                .map_or_else(FirstToken::default, |slot| {
                    FirstToken::new(move |at| slot.release(at))
                }),
        };
        let client = Arc::clone(&ticket.lane.client);
        ticket.record = client.send(call, &cancel).await;
        ticket.record.judge();
        drop(flight);
        shared.governor.settle(reserved, used(&ticket.record));
        let outcome = ticket.record.outcome;
        let unreached = closed_loop && !was_reached(outcome);
        let ended = ticket.record.timeline.end;
        let turn = Ended {
            ids: ticket.record.ids,
            intended: ticket.record.timeline.intended,
            at: ended.unwrap_or_else(|| shared.anchor.now()),
        };
        let reply = ticket.record.reply.take();
        if let Some(part) = part.filter(|_| outcome == Outcome::Ok) {
            part.answered(reply);
        }
        ticket.hand_on();
        match then {
            Some(then) if outcome == Outcome::Ok => return then.go_on(turn, held),
            Some(then) => then.cut(),
            None => {}
        }
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
