//! Which faults are on, and what they do to a request.
//!
//! A fault has a kind, a first instant and a length. Those that act on the engine's steps
//! (slow, freeze, hang) are handed to the engine as well; those that act on a request are looked
//! up once, when the request has arrived: one that came before the fault ends normally.

use std::time::Duration;

use crate::clock::MonoTime;

/// Faults kept at most, on and to come.
const MAX_FAULTS: usize = 4096;

/// Something that goes wrong for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// First instant.
    pub from: MonoTime,
    /// How long.
    pub lasts: Duration,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// Prefills that begin in it last `factor` times as long.
    SlowPrefill {
        /// Finite and positive.
        factor: f64,
    },
    /// Decode steps that begin in it last `factor` times as long.
    SlowDecode {
        /// Finite and positive.
        factor: f64,
    },
    /// The engine makes no step; everything is late by as much.
    Freeze,
    /// As a freeze, and requests that arrive in it are accepted and never answered.
    Hang,
    /// The connection closes after this many chunks, or before the finish frame if there are
    /// fewer, without a terminal event.
    Cut {
        /// Chunks that carry a token.
        after_chunks: u32,
    },
    /// An error object inside the 200 stream after this many chunks.
    StreamError {
        /// Chunks that carry a token.
        after_chunks: u32,
    },
    /// Requests are answered with this status.
    Status {
        /// 400 to 599.
        code: u16,
        /// Value of the `Retry-After` header; sent in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// Questions that the model can answer are answered wrongly, as by another model.
    WrongAnswers,
    /// All connections drop, engine and metrics begin anew, and all is answered with 503 while
    /// the fault lasts, for the model is loading.
    Restart {
        /// Version from then on; `None`: the last number of the present one plus 1.
        version: Option<String>,
    },
}

/// More faults were scheduled than are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} faults are scheduled already, the most there can be")]
pub struct TooManyFaults(usize);

/// What the faults of the moment do to one request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// Nothing.
    Normal,
    Hang,
    Cut {
        after_chunks: u32,
    },
    StreamError {
        after_chunks: u32,
    },
    Status {
        code: u16,
        retry_after: Option<Duration>,
    },
}

/// All faults on and to come.
#[derive(Debug, Default)]
pub(super) struct Faults {
    scheduled: Vec<Fault>,
    /// Begin and version of restarts that have not happened, soonest last.
    restarts: Vec<(MonoTime, Option<String>)>,
}

impl Fault {
    /// First instant without it.
    #[must_use]
    pub fn until(&self) -> MonoTime {
        self.from + self.lasts
    }

    fn is_on(&self, at: MonoTime) -> bool {
        self.from <= at && at < self.until()
    }
}

impl Faults {
    /// Keeps `fault`; forgets those that have ended at `now`.
    pub(super) fn schedule(&mut self, fault: Fault, now: MonoTime) -> Result<(), TooManyFaults> {
        self.scheduled.retain(|known| known.until() > now);
        if self.scheduled.len() >= MAX_FAULTS || self.restarts.len() >= MAX_FAULTS {
            return Err(TooManyFaults(MAX_FAULTS));
        }
        if let FaultKind::Restart { version } = &fault.kind {
            self.restarts.push((fault.from, version.clone()));
            self.restarts
                .sort_by(|(left, _), (right, _)| right.cmp(left));
        }
        self.scheduled.push(fault);
        Ok(())
    }

    /// Faults on at `at`, and those to come.
    pub(super) fn on_or_to_come(&self, at: MonoTime) -> impl Iterator<Item = &Fault> {
        self.scheduled.iter().filter(move |f| f.until() > at)
    }

    /// When the next restart happens.
    pub(super) fn next_restart(&self) -> Option<MonoTime> {
        self.restarts.last().map(|(at, _)| *at)
    }

    /// Marks the next restart as done and ends what a new process does not inherit: a freeze or
    /// hang that is on. Gives its instant and the version asked for.
    pub(super) fn take_restart(&mut self) -> Option<(MonoTime, Option<String>)> {
        let (at, version) = self.restarts.pop()?;
        self.scheduled
            .retain(|f| !(matches!(f.kind, FaultKind::Freeze | FaultKind::Hang) && f.is_on(at)));
        Some((at, version))
    }

    /// How long the model still loads, if it does.
    pub(super) fn loading(&self, at: MonoTime) -> Option<Duration> {
        self.scheduled
            .iter()
            .filter(|f| matches!(f.kind, FaultKind::Restart { .. }) && f.is_on(at))
            .map(|f| f.until().since(at))
            .max()
    }

    /// Whether answers to requests that arrive at `at` are wrong.
    pub(super) fn answers_wrongly(&self, at: MonoTime) -> bool {
        let is_wrong = |fault: &Fault| fault.kind == FaultKind::WrongAnswers && fault.is_on(at);
        self.scheduled.iter().any(is_wrong)
    }

    /// What the faults on at `at` do to a request that arrives then. The hardest one wins: a
    /// status before a hang before an end in mid-stream; of a kind, the one scheduled last.
    pub(super) fn ending(&self, at: MonoTime) -> Ending {
        self.scheduled
            .iter()
            .filter(|fault| fault.is_on(at))
            .filter_map(|fault| ending_of(&fault.kind))
            .max_by_key(rank)
            .unwrap_or(Ending::Normal)
    }
}

fn ending_of(kind: &FaultKind) -> Option<Ending> {
    Some(match kind {
        FaultKind::Hang => Ending::Hang,
        FaultKind::Cut { after_chunks } => Ending::Cut {
            after_chunks: *after_chunks,
        },
        FaultKind::StreamError { after_chunks } => Ending::StreamError {
            after_chunks: *after_chunks,
        },
        FaultKind::Status { code, retry_after } => Ending::Status {
            code: *code,
            retry_after: *retry_after,
        },
        FaultKind::SlowPrefill { .. }
        | FaultKind::SlowDecode { .. }
        | FaultKind::Freeze
        | FaultKind::WrongAnswers
        | FaultKind::Restart { .. } => return None,
    })
}

const fn rank(ending: &Ending) -> u8 {
    match ending {
        Ending::Normal => 0,
        Ending::StreamError { .. } => 1,
        Ending::Cut { .. } => 2,
        Ending::Hang => 3,
        Ending::Status { .. } => 4,
    }
}
