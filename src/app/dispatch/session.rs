//! The turns of a conversation after the first: each is due when the one before has ended, and
//! some time has passed.
//!
//! A conversation keeps its place among those in flight, its address and its connection until it
//! is over; what its requests need beside, each takes for itself. It is over with its last turn,
//! with a turn that did not end well, and with the phase: what was not due by then was never an
//! arrival.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::branches::Branch;
use super::gate::{Gate, Held, Kept};
use super::pacer::Pacer;
use super::request::{Due, Ticket};
use super::supply::Left;
use super::talks::{Part, Talk};
use super::{REHEARSAL_LEAD, Shared};
use crate::app::feed::Tally;
use crate::app::lanes::Lane;
use crate::app::ledger::Ledger;
use crate::client::Cancel;
use crate::clock::MonoTime;
use crate::config::Replies;
use crate::load::workload::{After, Carry, Prompt, Script, Step};
use crate::measurement::{Link, LinkKind, Phase as Tag, RequestRecord, TraceIds};

/// What all turns of a conversation have in common.
pub(super) struct Setting {
    pub(super) shared: Shared,
    pub(super) lane: Lane,
    pub(super) ledger: Ledger,
    pub(super) tag: Option<Arc<Tag>>,
    pub(super) gate: Gate,
    pub(super) left: Left,
    pub(super) closed_loop: bool,
    /// Its number among those of the loop.
    pub(super) number: u64,
    pub(super) replies: Replies,
    pub(super) tally: Arc<Tally>,
    /// The requests of its phase, and what makes them give up.
    pub(super) phase: (TaskTracker, Cancel),
}

/// What is decided by chance about a turn, drawn when the conversation begins.
pub(super) struct Drawn {
    pub(super) ids: TraceIds,
    pub(super) give_up: Option<Duration>,
}

/// A conversation whose turn is under way, and what follows.
pub(super) struct Session {
    setting: Setting,
    rest: VecDeque<(Step, Drawn)>,
    carry: Carry,
    talk: Arc<Talk>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) ids: TraceIds,
    pub(super) intended: MonoTime,
    pub(super) at: MonoTime,
}

/// The first turn of a conversation.
pub(super) struct Begun {
    pub(super) prompt: Prompt,
    pub(super) part: Option<Part>,
    /// What follows it, if anything does.
    pub(super) then: Option<Next>,
}

/// What follows a turn.
pub(super) enum Next {
    /// One turn after the other.
    Line(Box<Session>),
    /// Those that waited for it, of a session with sub-agents.
    Branch(Branch),
}

/// Begins `script`, which is the next of `talk` if that is given. `draw` decides about a turn.
pub(super) fn begin(
    mut script: Script,
    setting: Option<Setting>,
    talk: Option<&Arc<Talk>>,
    mut draw: impl FnMut() -> Drawn,
) -> Begun {
    let Step { prompt, reply, .. } = script
        .steps
        .pop_front()
        .unwrap_or_else(|| Step::first(Prompt::default()));
    let is_one = script.steps.is_empty() && talk.is_none();
    let Some(setting) = setting.filter(|_| !is_one) else {
        return Begun {
            prompt,
            part: None,
            then: None,
        };
    };
    let talk = talk.cloned().unwrap_or_else(|| {
        let at = (setting.lane.clone(), setting.number);
        Arc::new(Talk::new(at, setting.gate.anchor.now()))
    });
    let carry = (script.carry, setting.replies);
    let part = Part::of(&talk, carry, (&prompt, reply));
    let has_branches = script
        .steps
        .iter()
        .any(|step| matches!(step.after, After::All { .. }));
    let mut rest = script
        .steps
        .into_iter()
        .map(|step| (step, draw()))
        .peekable();
    let goes_on = rest.peek().is_some();
    let then = goes_on.then(|| {
        if has_branches {
            return Next::Branch(Branch::first(setting, rest));
        }
        Next::Line(Box::new(Session {
            setting,
            rest: rest.collect(),
            carry: script.carry,
            talk,
        }))
    });
    Begun { prompt, part, then }
}

impl Next {
    fn setting(&self) -> &Setting {
        match self {
            Self::Line(session) => &session.setting,
            Self::Branch(branch) => branch.setting(),
        }
    }

    /// The turn under way did not end well: no other begins.
    pub(super) fn cut(self) {
        match self {
            Self::Line(session) => session.setting.tally.cut(session.rest.len()),
            Self::Branch(branch) => branch.cut(),
        }
    }

    /// The turn under way has ended: what follows is due some time later. `held` are its slots.
    pub(super) fn go_on(self, ended: Ended, held: Held) {
        match self {
            Self::Line(session) => session.go_on(ended, held),
            Self::Branch(branch) => branch.go_on(ended, held),
        }
    }

    /// The run or the phase ended before the turn was due.
    fn never_due(self, kept: Kept, ended: MonoTime) {
        match self {
            Self::Line(session) => {
                session.setting.tally.unsent(session.rest.len() + 1);
                kept.release(ended);
            }
            Self::Branch(branch) => branch.never_due(ended),
        }
    }
}

impl Session {
    /// The turn under way has ended: the next one is due some time later. `held` are its slots.
    fn go_on(mut self: Box<Self>, ended: Ended, held: Held) {
        let Some((step, drawn)) = self.rest.pop_front() else {
            held.release(ended.at);
            return;
        };
        let due = match &step.after {
            After::End(pause) | After::All { pause, .. } => ended.at + *pause,
            After::Due(gap) => ended.intended + *gap,
        };
        if self.setting.gate.end.is_some_and(|end| due >= end) || !self.setting.left.any() {
            self.setting.tally.unsent(self.rest.len() + 1);
            held.release(ended.at);
            return;
        }
        let Step { prompt, reply, .. } = step;
        let carry = (self.carry, self.setting.replies);
        let part = Part::of(&self.talk, carry, (&prompt, reply));
        let link = self.talk.link(drawn.ids).or(Some(Link {
            kind: LinkKind::Turn,
            ids: ended.ids,
        }));
        Turn {
            then: Next::Line(self),
            drawn,
            said: (prompt, part),
            kept: held.keep(ended.at),
            due,
            ended: ended.at,
            link,
        }
        .spawn();
    }
}

/// A turn that is not due yet.
pub(super) struct Turn {
    /// What follows it.
    pub(super) then: Next,
    pub(super) drawn: Drawn,
    pub(super) said: (Prompt, Option<Part>),
    pub(super) kept: Kept,
    pub(super) due: MonoTime,
    /// When the turn before ended.
    pub(super) ended: MonoTime,
    /// To the turn before.
    pub(super) link: Option<Link>,
}

impl Turn {
    /// Lets it come, in a task of its own.
    pub(super) fn spawn(self) {
        let setting = self.then.setting();
        let (shared, phase) = (setting.shared.clone(), setting.phase.0.clone());
        Due::spawn((&shared, &phase), self.take());
    }

    /// Waits until it is due, then for the slots, and is sent.
    async fn take(self) {
        let setting = self.then.setting();
        let shared = setting.shared.clone();
        let over = match &self.then {
            Next::Line(_) => CancellationToken::new(),
            Next::Branch(branch) => branch.over(),
        };
        let is_due = tokio::select! {
            biased;
            () = over.cancelled() => false,
            is_due = is_due(self.due, &shared) => is_due,
        };
        if !is_due || !setting.left.take() {
            return self.never_due();
        }
        let Ok(permit) = shared.records.clone().reserve_owned().await else {
            return self.never_due();
        };
        let Self {
            then,
            drawn,
            said: (prompt, part),
            kept,
            due: intended,
            ended,
            link,
        } = self;
        let setting = then.setting();
        let sequence = shared.sequence.fetch_add(1, Relaxed);
        let stream = Arc::clone(&setting.lane.stream);
        let mut record = RequestRecord::due(sequence, stream, drawn.ids, intended);
        record.phase.clone_from(&setting.tag);
        record.traced = shared.sampling.samples(drawn.ids.trace);
        record.link = link;
        setting.ledger.open(sequence, intended);
        let ready = intended.max(ended);
        let gate = setting.gate.clone();
        let due = Due {
            ticket: Ticket {
                permit,
                record: Box::new(record),
                lane: setting.lane.clone(),
                ledger: setting.ledger.clone(),
            },
            prompt,
            closed_loop: setting.closed_loop,
            session: Some(setting.number),
            talk: None,
            part,
            give_up: drawn.give_up,
            phase: setting.phase.clone(),
            shared,
            then: Some(then),
        };
        match gate.enter_again(kept, (intended, ready)).await {
            Ok((held, free)) => due.go(held, free.max(ready)),
            Err(reason) => due.refuse(reason),
        }
    }

    /// The run or the phase ended before it was due.
    fn never_due(self) {
        self.then.never_due(self.kept, self.ended);
    }
}

/// Waits until `due`. False if the run stops before.
async fn is_due(due: MonoTime, shared: &Shared) -> bool {
    let Shared { anchor, stop, .. } = shared;
    let waiting = async {
        // A timer of the kernel is for the last bit of the way: there may be many of us.
        let early = due.minus(REHEARSAL_LEAD);
        if early > anchor.now() {
            tokio::time::sleep_until(anchor.instant(early)).await;
        }
        if due > anchor.now() {
            Pacer::new(*anchor).until(due).await;
        }
    };
    tokio::select! {
        biased;
        () = waiting => stop.at().is_none_or(|stop| due <= stop),
        () = stop.stopped() => stop.at().is_some_and(|stop| due <= stop),
    }
}
