//! What goes into the engine and what comes out of it.

use crate::clock::MonoTime;

/// Number of a request, unique over the life of a simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// One request, as far as the engine cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Prompt tokens.
    pub prompt_tokens: u32,
    /// Fewest output tokens, at most `max_tokens`.
    pub min_tokens: u32,
    /// Most output tokens, at least 1. Reached exactly unless the profile stops early.
    pub max_tokens: u32,
}

/// Why a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It reached the most tokens asked for.
    Length,
}

/// Something the engine did for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emission {
    /// For which job.
    pub job: JobId,
    /// When.
    pub at: MonoTime,
    /// What.
    pub kind: EmissionKind,
}

/// What the engine did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmissionKind {
    /// It left the queue and its prefill began.
    Admitted,
    /// It produced a token.
    Token {
        /// Number of the token, from 0.
        index: u32,
        /// Set on the last one.
        finish: Option<Finish>,
    },
}

/// What the gauges show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineState {
    /// Sequences admitted and not ended.
    pub running: usize,
    /// Requests in the queue.
    pub waiting: usize,
    /// Share of the KV cache in use, in [0, 1].
    pub kv_usage: f64,
}

/// The engine holds as many jobs as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the engine already holds {0} requests, the most it takes")]
pub struct EngineFull(pub usize);
