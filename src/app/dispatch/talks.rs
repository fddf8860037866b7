//! Conversations: what was said in each, and those whose turns are due at times of their own.
//!
//! A row of a recording that has a time, and a turn of a user, is due whether or not the one
//! before it was answered; then it waits for that, while others go on. It is sent whatever became
//! of the one before: what that one asked is part of the history only if it was answered. All
//! turns go to one address, on one connection where connections belong to sessions.
//!
//! Nobody says when a session of a recording has ended. So the sessions that were idle for
//! longest are forgotten when there are very many; what comes of them later begins anew, and is
//! counted.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::gate::Gate;
use super::request::Due;
use crate::app::feed::Tally;
use crate::app::lanes::Lane;
use crate::clock::MonoTime;
use crate::config::Replies;
use crate::control::Slots;
use crate::load::workload::{Carry, Message, Prompt, Role, Script, Step};
use crate::measurement::{Link, LinkKind, TraceIds};

/// Sessions of a recording that are remembered,
const MOST: usize = 10_000;
/// and bytes of what was said in them.
const MOST_BYTES: usize = 64 << 20;

/// One conversation.
pub(super) struct Talk {
    pub(super) lane: Lane,
    /// Its number among those of the loop.
    pub(super) number: u64,
    /// Lets its turns follow each other.
    pub(super) turns: Slots,
    said: Mutex<Said>,
    /// Bytes of what was said in all conversations of its kind.
    held: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Said {
    messages: Vec<Message>,
    bytes: usize,
    /// The request of the last turn.
    last: Option<TraceIds>,
}

impl Talk {
    /// Nothing was said yet.
    pub(super) fn new((lane, number): (Lane, u64), now: MonoTime) -> Self {
        Self::among((lane, number), now, Arc::default())
    }

    fn among((lane, number): (Lane, u64), now: MonoTime, held: Arc<AtomicUsize>) -> Self {
        Self {
            lane,
            number,
            turns: Slots::new(1, now),
            said: Mutex::default(),
            held,
        }
    }

    /// What leads to the turn before; from now on that is `ids`.
    pub(super) fn link(&self, ids: TraceIds) -> Option<Link> {
        self.said().last.replace(ids).map(|ids| Link {
            kind: LinkKind::Turn,
            ids,
        })
    }

    fn say(&self, asked: Arc<str>, answer: Option<Arc<str>>) {
        let said = &mut *self.said();
        let message = |role, text| Message { role, text };
        let answer = answer.map(|text| message(Role::Assistant, text));
        for message in [message(Role::User, asked)].into_iter().chain(answer) {
            said.bytes += message.text.len();
            self.held.fetch_add(message.text.len(), Relaxed);
            said.messages.push(message);
        }
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        self.turns.in_use() == 0
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let bytes = self.said().bytes;
        self.held.fetch_sub(bytes, Relaxed);
    }
}

/// What one turn has to do with the others of its conversation.
pub(super) struct Part {
    talk: Arc<Talk>,
    asked: Arc<str>,
    /// What was answered to it when it was recorded.
    recorded: Option<Arc<str>>,
    /// Whose answers later turns carry.
    replies: Replies,
}

impl Part {
    /// That of the turn `prompt`; `None` where nothing is carried.
    pub(super) fn of(
        talk: &Arc<Talk>,
        (carry, replies): (Carry, Replies),
        (prompt, recorded): (&Prompt, Option<Arc<str>>),
    ) -> Option<Self> {
        (carry == Carry::History).then(|| Self {
            talk: Arc::clone(talk),
            asked: prompt.text.as_str().into(),
            recorded,
            replies,
        })
    }

    /// Puts what was said before `prompt` in front of it. Call it when that has ended.
    pub(super) fn recall(&self, prompt: &mut Prompt) {
        let said = self.talk.said();
        if said.messages.is_empty() {
            return;
        }
        prompt.history.clone_from(&said.messages);
        // What was asked for is what is new; with all before it the length is not known.
        prompt.input_tokens = None;
        prompt.written = None;
    }

    /// Whether later turns are sent with the text of this answer.
    pub(super) fn wants_reply(&self) -> bool {
        self.replies == Replies::Live
    }

    /// The turn was answered, with `reply` if that was kept.
    pub(super) fn answered(self, reply: Option<Box<str>>) {
        let answer = match self.replies {
            Replies::Live => reply.map(Arc::from),
            Replies::Recorded => self.recorded,
        };
        self.talk.say(self.asked, answer);
    }
}

/// The sessions of a recording.
#[derive(Default)]
pub(in crate::app) struct Talks {
    all: HashMap<Arc<str>, (Arc<Talk>, MonoTime)>,
    held: Arc<AtomicUsize>,
}

impl Talks {
    /// The one called `name`, of which a turn is due at `due`; `begin` says where it goes.
    pub(super) fn of(
        &mut self,
        (name, due): (&Arc<str>, MonoTime),
        tally: &Tally,
        begin: impl FnOnce() -> (Lane, u64),
    ) -> Arc<Talk> {
        if let Some((talk, last)) = self.all.get_mut(name) {
            *last = due;
            return Arc::clone(talk);
        }
        if self.all.len() >= MOST || self.held.load(Relaxed) > MOST_BYTES {
            tally.forgot(self.forget());
        }
        let talk = Arc::new(Talk::among(begin(), due, Arc::clone(&self.held)));
        let kept = (Arc::clone(&talk), due);
        self.all.insert(Arc::clone(name), kept);
        talk
    }

    /// Forgets those that are idle and have been for longest: half of the idle ones.
    fn forget(&mut self) -> usize {
        let idle = self.all.values().filter(|(talk, _)| talk.is_idle());
        let mut since: Vec<MonoTime> = idle.map(|(_, last)| *last).collect();
        if since.is_empty() {
            return 0;
        }
        let middle = since.len() / 2;
        let until = *since.select_nth_unstable(middle).1;
        let before = self.all.len();
        self.all
            .retain(|_, (talk, last)| *last > until || !talk.is_idle());
        before - self.all.len()
    }
}

/// What a user works through: one conversation of a file after the other.
#[derive(Default)]
pub(super) struct Work {
    now: Option<(Arc<Talk>, Carry)>,
    rest: VecDeque<Step>,
}

impl Work {
    /// Whether the next turn begins another conversation.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Turns that are left of the conversation.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Begins `script`.
    pub(super) fn begin(&mut self, script: Script, talk: Talk) {
        self.now = Some((Arc::new(talk), script.carry));
        self.rest = script.steps;
    }

    /// The next turn.
    pub(super) fn next(&mut self) -> Option<(Script, Arc<Talk>)> {
        let step = self.rest.pop_front()?;
        let (talk, carry) = self.now.as_ref()?;
        let script = Script {
            steps: VecDeque::from([step]),
            carry: *carry,
            ..Script::default()
        };
        Some((script, Arc::clone(talk)))
    }
}

/// Waits for the turn before to end, then for the slots. Other conversations go on meanwhile.
pub(super) async fn take_turn(due: Due, turns: Slots, (gate, intended): (Gate, MonoTime)) {
    let turn = match turns.try_take() {
        Some(slot) => Ok((slot, intended)),
        None => gate.wait_for(&turns, intended).await,
    };
    let (turn, ready) = match turn {
        Ok(turn) => turn,
        Err(reason) => return due.refuse(reason),
    };
    match gate.enter(intended, ready).await {
        Ok((held, free)) => due.go(held.with_turn(Some(turn)), free.max(ready)),
        Err(reason) => due.refuse(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::lanes::Load;
    use crate::app::streams::streams;
    use crate::app::tcp;
    use crate::clock::TimeAnchor;
    use crate::config::{Format, from_text};

    fn lane() -> Lane {
        let text = "targets: [{ name: t, url: 'http://t', model: m }]
probes: [{ name: p, targets: [t], workload: { synthetic: { input_tokens: 1, output_tokens: 1 } }, arrivals: { process: closed, concurrency: 1 } }]";
        let config = from_text(text, Format::Yaml, "c.yaml").expect("good");
        let plans = streams(&config).expect("good");
        let client = plans[0].client(tcp(), TimeAnchor::start()).expect("good");
        Lane {
            stream: Arc::clone(&plans[0].stream),
            client: Arc::new(client),
            load: Load::default(),
        }
    }

    fn at(nanos: usize) -> MonoTime {
        MonoTime::from_nanos(nanos as u64)
    }

    #[tokio::test]
    async fn very_many_sessions_are_not_remembered_and_it_is_counted() {
        let (lane, tally) = (lane(), Tally::new("f".to_owned(), false));
        let mut talks = Talks::default();
        let mut of = |session: usize, due: usize| {
            let name: Arc<str> = session.to_string().into();
            let begin = || (lane.clone(), 0);
            talks.of((&name, at(due)), &tally, begin)
        };
        for session in 0..MOST {
            of(session, session).say("asked".into(), None);
        }
        let busy = of(0, 0);
        let turn = busy.turns.try_take().expect("it is idle");
        let recent = of(1, MOST);
        assert_eq!(tally.report().forgotten_sessions, 0);
        of(MOST, MOST + 1);
        let forgotten = tally.report().forgotten_sessions;
        assert!((4_990..5_010).contains(&forgotten), "{forgotten}");
        assert!(Arc::ptr_eq(&busy, &of(0, 0)), "a turn is under way");
        assert!(Arc::ptr_eq(&recent, &of(1, 1)));
        assert!(of(2, 2).said().messages.is_empty(), "it begins anew");
        assert_eq!(of(MOST - 1, 3).said().messages.len(), 1);
        drop(turn);
        let held = Arc::clone(&recent.held);
        let bytes = held.load(Relaxed);
        assert_eq!(
            bytes,
            5 * (MOST - usize::try_from(forgotten).expect("small"))
        );
    }
}
