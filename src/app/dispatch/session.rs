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

use super::gate::{Gate, Held};
use super::pacer::Pacer;
use super::request::{Due, Ticket};
use super::supply::Left;
use super::{REHEARSAL_LEAD, Shared};
use crate::app::feed::Tally;
use crate::app::lanes::Lane;
use crate::app::ledger::Ledger;
use crate::client::Cancel;
use crate::clock::MonoTime;
use crate::config::Replies;
use crate::control::Slot;
use crate::load::workload::{After, Carry, Message, Prompt, Role, Script, Step};
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
    /// The turns before the one under way.
    history: Vec<Message>,
    /// The one under way.
    asked: Arc<str>,
    /// What was answered to it when it was recorded.
    recorded: Option<Arc<str>>,
}

/// How a turn ended.
pub(super) struct Ended {
    pub(super) ids: TraceIds,
    pub(super) intended: MonoTime,
    pub(super) at: MonoTime,
    /// The text of the answer, if it was kept.
    pub(super) reply: Option<Box<str>>,
}

/// The first turn of `script`, and what follows it, if anything does. `draw` decides about a turn.
pub(super) fn begin(
    mut script: Script,
    setting: Option<Setting>,
    mut draw: impl FnMut() -> Drawn,
) -> (Prompt, Option<Box<Session>>) {
    let Some(first) = script.steps.pop_front() else {
        return (Prompt::default(), None);
    };
    if script.steps.is_empty() {
        return (first.prompt, None);
    }
    let Some(setting) = setting else {
        return (first.prompt, None);
    };
    let asked = asked(&first.prompt, script.carry);
    let session = Session {
        setting,
        rest: script
            .steps
            .into_iter()
            .map(|step| (step, draw()))
            .collect(),
        carry: script.carry,
        history: Vec::new(),
        asked,
        recorded: first.reply,
    };
    (first.prompt, Some(Box::new(session)))
}

/// What the turn of `prompt` is in the turns after it.
fn asked(prompt: &Prompt, carry: Carry) -> Arc<str> {
    match carry {
        Carry::History => prompt.text.as_str().into(),
        Carry::Nothing => "".into(),
    }
}

impl Session {
    /// Its number among those of the loop.
    pub(super) const fn number(&self) -> u64 {
        self.setting.number
    }

    /// Whether the next turn is sent with the text of this answer.
    pub(super) const fn wants_reply(&self) -> bool {
        matches!(
            (self.carry, self.setting.replies),
            (Carry::History, Replies::Live)
        )
    }

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
        let prompt = self.prompt(step, ended.reply);
        let place = held.keep_place(ended.at);
        let turn = Turn {
            session: self,
            drawn,
            prompt,
            place,
            due,
            ended: ended.at,
            before: ended.ids,
        };
        let (shared, phase) = (&turn.session.setting.shared, &turn.session.setting.phase.0);
        let (shared, phase) = (shared.clone(), phase.clone());
        Due::spawn((&shared, &phase), turn.take());
    }

    /// The prompt of `step`, to which `reply` was the answer before.
    fn prompt(&mut self, step: Step, reply: Option<Box<str>>) -> Prompt {
        let mut prompt = step.prompt;
        let recorded = std::mem::replace(&mut self.recorded, step.reply);
        if self.carry == Carry::Nothing {
            return prompt;
        }
        let answer = match self.setting.replies {
            Replies::Live => reply.map(Arc::from),
            Replies::Recorded => recorded,
        };
        let asked = std::mem::replace(&mut self.asked, asked(&prompt, self.carry));
        let said = |role, text| Message { role, text };
        self.history.push(said(Role::User, asked));
        self.history
            .extend(answer.map(|text| said(Role::Assistant, text)));
        prompt.history.clone_from(&self.history);
        // What was asked for is what is new; with all before it the length is not known.
        prompt.input_tokens = None;
        prompt
    }
}

/// A turn that is not due yet.
struct Turn {
    session: Box<Session>,
    drawn: Drawn,
    prompt: Prompt,
    /// The place of the conversation among those in flight.
    place: Option<Slot>,
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
            prompt,
            place,
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
        record.link = Some(Link {
            kind: LinkKind::Turn,
            ids: before,
        });
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
            session: Some(session.number()),
            give_up: drawn.give_up,
            phase: setting.phase.clone(),
            shared,
            then: Some(session),
        };
        match gate.enter_again(place, (intended, ready)).await {
            Ok((held, free)) => due.go(held, free.max(ready)),
            Err(reason) => due.refuse(reason),
        }
    }

    /// The run or the phase ended before it was due.
    fn never_due(self) {
        let setting = &self.session.setting;
        setting.tally.unsent(self.session.rest.len() + 1);
        if let Some(place) = self.place {
            place.release(self.ended);
        }
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
