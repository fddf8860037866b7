//! What goes into the engine and what comes out of it.

use crate::clock::MonoTime;

/// Number of a request, unique over the life of a simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// One request, as far as the engine cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What each prompt token is called.
    pub prompt: Vec<u64>,
    /// Keeps the prompt apart from those with another, or none, in the prefix cache.
    pub cache_salt: Option<u64>,
    /// What it answers, token by token, where it knows: then it stops as soon as it may. What
    /// comes after is words.
    pub answer: Vec<u64>,
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
    /// It left the queue for the first time, and its prefill began.
    Admitted {
        /// Prompt tokens that were in the prefix cache.
        cached_tokens: u32,
    },
    /// It lost its blocks to an older one and waits in front of the queue.
    Preempted,
    /// It left the queue again; its prompt and what it had generated are prefilled.
    Resumed {
        /// Of these, tokens that were in the prefix cache.
        cached_tokens: u32,
    },
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
    /// Share of the KV cache's blocks that sequences hold, in [0, 1].
    pub kv_usage: f64,
}

/// Why the engine does not take a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It holds as many as it can.
    #[error("the engine already holds {0} requests, the most it takes")]
    Full(usize),
    /// The job would not fit if it were alone.
    #[error(
        "the request may need {tokens} tokens; wanted at most {most}, which the KV cache holds"
    )]
    TooLong {
        /// Its prompt and most output tokens.
        tokens: u64,
        /// Tokens that all blocks hold.
        most: u64,
    },
}
