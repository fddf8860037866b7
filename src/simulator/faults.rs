//! Which faults are on, and what they do to a request.
//!
//! A fault has a kind, a first instant and a length. Those that act on the engine (its steps, its
//! cache, the machine under it) are handed to it as well; those that act on a request are looked
//! up once, when the request has arrived: one that came before the fault ends normally.

use std::time::Duration;

use super::engine::ConditionKind;
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
    /// The GPUs' clocks are lowered: all steps last `factor` times as long.
    Throttle {
        /// Finite and positive.
        factor: f64,
    },
    /// The last GPU reports an error and does nothing for a moment, so that nothing goes on.
    Xid {
        /// Number of the error.
        code: u32,
    },
    /// One GPU has all to do and is full; the others wait for it, and steps last `factor` times
    /// as long.
    GpuFull {
        /// Finite and positive.
        factor: f64,
    },
    /// The prefix cache is emptied, and nothing is found in it.
    FlushPrefixCache,
    /// The KV cache has fewer blocks; whoever holds too many gives way.
    ShrinkKv {
        /// Of all blocks, in (0, 1).
        share: f64,
    },
    /// The host launches steps late: they last `factor` times as long, and the GPUs idle.
    HostStall {
        /// Finite and positive.
        factor: f64,
    },
    /// What is in front of the server hands requests on so much later.
    GatewayDelay {
        /// How much.
        delay: Duration,
    },
    /// What is in front of the server hands streams on as one piece, at their end.
    Buffer,
    /// What each sequence of a batch adds to a decode step lasts `factor` times as long.
    DecodeBandwidth {
        /// Finite and positive.
        factor: f64,
    },
    /// Another model is served.
    ModelChange {
        /// Its name; `None`: as before.
        model: Option<String>,
        /// Version of the server; `None`: as before.
        version: Option<String>,
        /// Steps last so many times as long; finite and positive.
        factor: f64,
    },
    /// Requests of others arrive, at random instants.
    Load {
        /// Requests a second.
        rate: f64,
        /// Prompt tokens of each.
        input_tokens: u32,
        /// Output tokens of each.
        output_tokens: u32,
    },
    /// The server's host has too few processors: steps last `factor` times as long.
    HostPressure {
        /// Finite and positive.
        factor: f64,
    },
    /// The server's frontend hands the engine only so many requests at once; the others wait
    /// where no gauge sees them.
    FrontendLimit {
        /// At least 1.
        requests: u32,
    },
}

impl FaultKind {
    /// What it is to the engine, if it is a condition of machine or model.
    #[must_use]
    pub const fn condition(&self) -> Option<ConditionKind> {
        Some(match self {
            Self::Throttle { factor } => ConditionKind::Throttle { factor: *factor },
            Self::Xid { code } => ConditionKind::GpuError { xid: *code },
            Self::GpuFull { factor } => ConditionKind::GpuFull { factor: *factor },
            Self::FlushPrefixCache => ConditionKind::NoPrefixCache,
            Self::ShrinkKv { share } => ConditionKind::SmallKv { share: *share },
            Self::HostStall { factor } => ConditionKind::HostStall { factor: *factor },
            Self::DecodeBandwidth { factor } => ConditionKind::DecodeBandwidth { factor: *factor },
            Self::ModelChange { factor, .. } => ConditionKind::Model { factor: *factor },
            Self::HostPressure { factor } => ConditionKind::HostPressure { factor: *factor },
            _ => return None,
        })
    }
}

/// What stands between a client and the engine for one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Relay {
    /// How much later the request gets to the server.
    pub(super) delay: Duration,
    /// Whether a stream is handed on as one piece.
    pub(super) buffers: bool,
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

    /// What stands between a client and the engine for a request that arrives at `at`.
    pub(super) fn relay(&self, at: MonoTime) -> Relay {
        let mut relay = Relay::default();
        for kind in self.on(at) {
            match kind {
                FaultKind::GatewayDelay { delay } => relay.delay += *delay,
                FaultKind::Buffer => relay.buffers = true,
                _ => {}
            }
        }
        relay
    }

    /// How many requests the frontend lets into the engine at once, and until when.
    pub(super) fn frontend_limit(&self, at: MonoTime) -> Option<(usize, MonoTime)> {
        self.scheduled
            .iter()
            .filter(|fault| fault.is_on(at))
            .filter_map(|fault| match fault.kind {
                FaultKind::FrontendLimit { requests } => Some((requests as usize, fault.until())),
                _ => None,
            })
            .min()
    }

    /// Model and version in place of the configured ones; of several changes the one scheduled
    /// last counts.
    pub(super) fn changed(&self, at: MonoTime) -> (Option<&str>, Option<&str>) {
        self.on(at).fold((None, None), |known, kind| match kind {
            FaultKind::ModelChange { model, version, .. } => {
                (model.as_deref().or(known.0), version.as_deref().or(known.1))
            }
            _ => known,
        })
    }

    fn on(&self, at: MonoTime) -> impl Iterator<Item = &FaultKind> {
        let on = self.scheduled.iter().filter(move |fault| fault.is_on(at));
        on.map(|fault| &fault.kind)
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
        _ => return None,
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
