//! The turns of a session whose sub-agents are at work beside it: each is due when all that it
//! waits for have ended. The session has one place among those in flight, whoever of it is at
//! work. It is over when nothing is left, or when a turn did not end well and those under way
//! have ended.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::gate::{Held, Kept};
use super::session::{Drawn, Ended, Next, Setting, Turn};
use crate::clock::MonoTime;
use crate::load::workload::{After, Step};
use crate::measurement::{Link, LinkKind};

/// One turn of a session that is under way, or about to be.
pub(super) struct Branch {
    all: Arc<Branches>,
    place: usize,
}

/// All turns of a session.
struct Branches {
    setting: Setting,
    /// A turn did not end well: those that are not due yet never are.
    over: CancellationToken,
    state: Mutex<State>,
}

struct State {
    /// Those that have not begun, by their places; the first has.
    waiting: Vec<Option<(Step, Drawn)>>,
    ended: Vec<Option<Ended>>,
    /// Under way, or about to be.
    running: usize,
    kept: Kept,
    failed: bool,
}

impl Branch {
    /// The first turn, which `rest` follow.
    pub(super) fn first(setting: Setting, rest: impl Iterator<Item = (Step, Drawn)>) -> Self {
        let waiting: Vec<_> = std::iter::once(None).chain(rest.map(Some)).collect();
        let state = State {
            ended: waiting.iter().map(|_| None).collect(),
            waiting,
            running: 1,
            kept: Kept::default(),
            failed: false,
        };
        Self {
            all: Arc::new(Branches {
                setting,
                over: CancellationToken::new(),
                state: Mutex::new(state),
            }),
            place: 0,
        }
    }

    pub(super) fn setting(&self) -> &Setting {
        &self.all.setting
    }

    /// Told when no turn becomes due any more.
    pub(super) fn over(&self) -> CancellationToken {
        self.all.over.clone()
    }

    /// The turn has ended: those that waited for it last are due some time later.
    pub(super) fn go_on(self, ended: Ended, held: Held) {
        let Self { all, place } = self;
        let mut state = all.state();
        state.running -= 1;
        state.ended[place] = Some(ended);
        state.kept.add(held.keep(ended.at));
        let mut due = Vec::new();
        if !state.failed {
            for place in 0..state.waiting.len() {
                due.extend(state.due(place).map(|turn| (place, turn)));
            }
        }
        let (gate, left) = (&all.setting.gate, &all.setting.left);
        for (place, (step, drawn, last)) in due {
            let at = last.at + pause(&step);
            // What is not due before the end never was, and nothing that waits for it.
            if gate.end.is_some_and(|end| at >= end) || !left.any() {
                state.waiting[place] = Some((step, drawn));
                continue;
            }
            state.running += 1;
            let branch = Self {
                all: Arc::clone(&all),
                place,
            };
            Turn {
                then: Next::Branch(branch),
                drawn,
                said: (step.prompt, None),
                kept: Kept::default(),
                due: at,
                ended: last.at,
                link: Some(Link {
                    kind: LinkKind::Turn,
                    ids: last.ids,
                }),
            }
            .spawn();
        }
        all.settle(&mut state, ended.at);
    }

    /// The turn did not end well: no other begins.
    pub(super) fn cut(self) {
        let mut state = self.all.state();
        state.running -= 1;
        state.failed = true;
        self.all.over.cancel();
        let now = self.all.setting.gate.anchor.now();
        self.all.settle(&mut state, now);
    }

    /// The run or the phase ended before the turn was due.
    pub(super) fn never_due(self, ended: MonoTime) {
        self.all.setting.tally.unsent(1);
        let mut state = self.all.state();
        state.running -= 1;
        self.all.settle(&mut state, ended);
    }
}

impl Branches {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the place back and counts what was never due, if nothing is under way.
    fn settle(&self, state: &mut State, freed: MonoTime) {
        if state.running > 0 {
            return;
        }
        std::mem::take(&mut state.kept).release(freed);
        let unsent = state.waiting.drain(..).flatten().count();
        if state.failed {
            self.setting.tally.cut(unsent);
        } else {
            self.setting.tally.unsent(unsent);
        }
    }
}

impl State {
    /// The turn at `place`, if all that it waits for have ended, with the last of them.
    fn due(&mut self, place: usize) -> Option<(Step, Drawn, Ended)> {
        let (step, _) = self.waiting[place].as_ref()?;
        let After::All { turns, .. } = &step.after else {
            return None;
        };
        let mut last: Option<Ended> = None;
        for turn in turns {
            let ended = self.ended.get(*turn).copied().flatten()?;
            if last.is_none_or(|last| ended.at > last.at) {
                last = Some(ended);
            }
        }
        let last = last?;
        let (step, drawn) = self.waiting[place].take()?;
        Some((step, drawn, last))
    }
}

fn pause(step: &Step) -> std::time::Duration {
    match &step.after {
        After::All { pause, .. } | After::End(pause) | After::Due(pause) => *pause,
    }
}
