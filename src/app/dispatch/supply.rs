//! Where the prompts of a loop come from: made as they are needed, made ahead where that takes
//! long, or read ahead from a file.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::phase::Phase;
use super::talks::{Talk, Talks};
use crate::app::feed::{Feed, Tally};
use crate::app::lanes::Lane;
use crate::client::BodyWriter;
use crate::load::schedule::{Arrival, Times};
use crate::load::workload::{Prompt, Script, Workload};

/// The prompts of a loop.
pub(in crate::app) enum Supply {
    /// Made.
    Made {
        /// What makes them.
        workload: Box<Workload>,
        /// Writes their requests.
        writer: BodyWriter,
        /// The next prompt, made while there is time.
        drawn: Option<Prompt>,
    },
    /// Made ahead.
    Ahead {
        /// Where they come from.
        prompts: mpsc::Receiver<Prompt>,
        /// The next one.
        drawn: Option<Prompt>,
    },
    /// Read.
    Read {
        /// What was read ahead.
        feed: Feed,
        /// The next conversation.
        drawn: Option<Script>,
        /// Those whose later turns have times of their own.
        talks: Talks,
    },
}

impl Supply {
    /// Prompts of `workload`.
    pub(in crate::app) fn made(workload: Workload, writer: BodyWriter) -> Self {
        Self::Made {
            workload: Box::new(workload),
            writer,
            drawn: None,
        }
    }

    /// Prompts that are made elsewhere.
    pub(in crate::app) const fn ahead(prompts: mpsc::Receiver<Prompt>) -> Self {
        Self::Ahead {
            prompts,
            drawn: None,
        }
    }

    /// Conversations of `feed`.
    pub(in crate::app) fn read(feed: Feed) -> Self {
        Self::Read {
            feed,
            drawn: None,
            talks: Talks::default(),
        }
    }

    pub(super) const fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }

    pub(super) const fn tally(&self) -> Option<&Arc<Tally>> {
        match self {
            Self::Made { .. } | Self::Ahead { .. } => None,
            Self::Read { feed, .. } => Some(feed.tally()),
        }
    }

    /// Makes the next prompt, for a request of `session`, before it is needed: a long one takes a
    /// while.
    pub(super) fn draw(&mut self, session: Option<u64>) {
        if let Self::Made {
            workload,
            writer,
            drawn,
        } = self
        {
            drawn.get_or_insert_with(|| {
                let mut prompt = workload.prompt(session);
                writer.write(&mut prompt);
                prompt
            });
        }
    }

    /// What makes prompts, if they are made.
    pub(super) fn workload(&mut self) -> Option<&mut Workload> {
        match self {
            Self::Made { workload, .. } => Some(workload),
            Self::Ahead { .. } | Self::Read { .. } => None,
        }
    }

    /// Waits for a prompt that is made elsewhere. False if no more will come.
    pub(super) async fn is_ready(&mut self) -> bool {
        let Self::Ahead { prompts, drawn } = self else {
            return true;
        };
        if drawn.is_none() {
            *drawn = prompts.recv().await;
        }
        drawn.is_some()
    }

    /// The next conversation of a file, which stays where it is; `None` if there are no more, or
    /// prompts are made.
    pub(super) async fn upcoming(&mut self) -> Option<&Script> {
        match self {
            Self::Made { .. } | Self::Ahead { .. } => None,
            Self::Read { feed, drawn, .. } => {
                if drawn.is_none() {
                    *drawn = feed.next().await;
                }
                drawn.as_ref()
            }
        }
    }

    /// What is sent next, for a request of `session`; `None` if a file has no more.
    pub(super) fn take(&mut self, session: Option<u64>) -> Option<Script> {
        self.draw(session);
        match self {
            Self::Made { drawn, .. } | Self::Ahead { drawn, .. } => {
                drawn.take().map(Script::single)
            }
            Self::Read { feed, drawn, .. } => taken(drawn, feed.tally()),
        }
    }
}

impl Supply {
    /// What is sent for `arrival` of `phase`, and the conversation of which it is a turn that is
    /// due at a time of its own; `None` if a file has no more. `begin` says where one goes that
    /// begins.
    pub(super) fn coming(
        &mut self,
        arrival: Arrival,
        phase: &mut Phase,
        begin: impl FnOnce() -> (Lane, u64),
    ) -> Option<(Script, Option<Arc<Talk>>)> {
        let Self::Read { feed, drawn, talks } = self else {
            let script = self.take(arrival.turn.map(|turn| turn.session))?;
            return Some((script, None));
        };
        let Some(turn) = arrival.turn else {
            let script = taken(drawn, feed.tally())?;
            let due = arrival.intended;
            let talk = script.session.as_ref();
            let talk = talk.map(|name| talks.of((name, due), feed.tally(), begin));
            return Some((script, talk));
        };
        let work = phase.work_of(turn);
        if work.is_done() {
            let script = taken(drawn, feed.tally())?;
            work.begin(script, Talk::new(begin(), arrival.intended));
            phase.begun();
        }
        let (script, talk) = phase.work_of(turn).next()?;
        Some((script, Some(talk)))
    }
}

/// Takes the conversation that was drawn, and counts that a file was begun again with it.
fn taken(drawn: &mut Option<Script>, tally: &Tally) -> Option<Script> {
    let script = drawn.take()?;
    if script.again {
        tally.begun_again();
    }
    Some(script)
}

/// Hands the time of the next row to the schedule that asks for it.
#[derive(Debug, Clone, Default)]
pub(super) struct RowClock(Arc<Mutex<Option<Duration>>>);

impl RowClock {
    pub(super) fn set(&self, at: Option<Duration>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// The times, each once.
    pub(super) fn times(&self) -> Times {
        let next = Arc::clone(&self.0);
        Box::new(std::iter::from_fn(move || {
            next.lock().unwrap_or_else(PoisonError::into_inner).take()
        }))
    }
}

/// How many requests a phase may still send, where turns that follow others count too.
#[derive(Debug, Clone, Default)]
pub(super) struct Left(Option<Arc<AtomicU64>>);

impl Left {
    /// At most `requests`; `None`: any number.
    pub(super) fn of(requests: Option<u64>) -> Self {
        Self(requests.map(|requests| Arc::new(AtomicU64::new(requests))))
    }

    pub(super) fn any(&self) -> bool {
        self.0.as_ref().is_none_or(|left| left.load(Relaxed) > 0)
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> bool {
        self.0.as_ref().is_none_or(|left| {
            let less = |left: u64| left.checked_sub(1);
            left.try_update(Relaxed, Relaxed, less).is_ok()
        })
    }
}
