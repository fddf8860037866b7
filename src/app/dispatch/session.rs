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

use tokio_util::task::TaskTracker;

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
    pub(super) then: Option<Box<Session>>,
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
    let rest: VecDeque<_> = script
        .steps
        .into_iter()
        .map(|step| (step, draw()))
        .collect();
    let then = (!rest.is_empty()).then(|| {
        Box::new(Session {
            setting,
            rest,
            carry: script.carry,
            talk,
        })
    });
    Begun { prompt, part, then }
}

impl Session {
    /// The turn under way did not end well: there will be no other.
    pub(super) fn cut(self: Box<Self>) {
        self.setting.tally.cut(self.rest.len());
    }

    /// The turn under way has ended: the next one is due some time later. `held` are its slots.
    pub(super) fn go_on(mut self: Box<Self>, ended: Ended, held: Held) {
        let Some((step, drawn)) = self.rest.pop_front() else {
            held.release(ended.at);
            return;
        };
        let due = match step.after {
            After::End(pause) => ended.at + pause,
            After::Due(gap) => ended.intended + gap,
        };
        if self.setting.gate.end.is_some_and(|end| due >= end) || !self.setting.left.any() {
            self.setting.tally.unsent(self.rest.len() + 1);
            held.release(ended.at);
            return;
        }
        let Step { prompt, reply, .. } = step;
        let carry = (self.carry, self.setting.replies);
        let part = Part::of(&self.talk, carry, (&prompt, reply));
        let turn = Turn {
            session: self,
            drawn,
            said: (prompt, part),
            kept: held.keep(ended.at),
            due,
            ended: ended.at,
            before: ended.ids,
        };
        let (shared, phase) = (&turn.session.setting.shared, &turn.session.setting.phase.0);
        let (shared, phase) = (shared.clone(), phase.clone());
        Due::spawn((&shared, &phase), turn.take());
    }
}

/// A turn that is not due yet.
struct Turn {
    session: Box<Session>,
    drawn: Drawn,
    said: (Prompt, Option<Part>),
    kept: Kept,
    due: MonoTime,
    /// When the turn before ended.
    ended: MonoTime,
    /// The turn before.
    before: TraceIds,
}

impl Turn {
    /// Waits until it is due, then for the slots, and is sent.
    async fn take(self) {
        let setting = &self.session.setting;
        let shared = setting.shared.clone();
        if !is_due(self.due, &shared).await || !setting.left.take() {
            return self.never_due();
        }
        let Ok(permit) = shared.records.clone().reserve_owned().await else {
            return self.never_due();
        };
        let Self {
            session,
            drawn,
            said: (prompt, part),
            kept,
            due: intended,
            ended,
            before,
        } = self;
        let setting = &session.setting;
        let sequence = shared.sequence.fetch_add(1, Relaxed);
        let stream = Arc::clone(&setting.lane.stream);
        let mut record = RequestRecord::due(sequence, stream, drawn.ids, intended);
        record.phase.clone_from(&setting.tag);
        record.traced = shared.sampling.samples(drawn.ids.trace);
        record.link = session.talk.link(drawn.ids).or(Some(Link {
            kind: LinkKind::Turn,
            ids: before,
        }));
        setting.ledger.open(sequence, intended);
        let ready = intended.max(ended);
        let gate = setting.gate.clone();
        let due = Due {
            ticket: Ticket {
                permit,
                record,
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
            then: Some(session),
        };
        match gate.enter_again(kept, (intended, ready)).await {
            Ok((held, free)) => due.go(held, free.max(ready)),
            Err(reason) => due.refuse(reason),
        }
    }

    /// The run or the phase ended before it was due.
    fn never_due(self) {
        let setting = &self.session.setting;
        setting.tally.unsent(self.session.rest.len() + 1);
        self.kept.release(self.ended);
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
