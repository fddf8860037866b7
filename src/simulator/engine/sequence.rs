//! One job on its way through the engine.

use std::time::Duration;

use super::disturbance::Phase;
use super::job::{Finish, Job, JobId};
use super::kv::{Chain, Held};
use crate::clock::MonoTime;

/// A job that was taken and has not ended.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) prompt_tokens: u32,
    /// Most output tokens that were asked for.
    pub(super) max_tokens: u32,
    /// How many it will get.
    pub(super) output_tokens: u32,
    pub(super) arrived: MonoTime,
    /// When it last left the queue before its first token, and when that came.
    pub(super) scheduled: MonoTime,
    pub(super) first_token: MonoTime,
    pub(super) last_token: MonoTime,
    pub(super) produced: u32,
    /// The first tokens of its answer, where they are not any words.
    pub(super) answer: Vec<u64>,
    /// Its prompt and what it produced, but for the last token of all.
    pub(super) chain: Chain,
    /// Set while it runs.
    pub(super) place: Option<Place>,
    /// Whether it ran before and had to give way.
    pub(super) preempted: bool,
}

/// What a running sequence has.
#[derive(Debug)]
pub(super) struct Place {
    /// Number of its admission; who came last gives way first.
    pub(super) order: u64,
    pub(super) held: Held,
    pub(super) phase: Phase,
}

/// Where the time of one sequence went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// In the queue, until it was last scheduled before its first token.
    pub(super) queue: Duration,
    /// From there to its first token.
    pub(super) prefill: Duration,
    /// From the first token to the last.
    pub(super) decode: Duration,
}

impl Times {
    /// All of it.
    pub(super) fn whole(&self) -> Duration {
        self.queue + self.prefill + self.decode
    }
}

impl Sequence {
    /// For `job`, which arrives at `now` and will get so many tokens. `chain` is empty.
    pub(super) fn new(job: &Job, mut chain: Chain, (output_tokens, now): (u32, MonoTime)) -> Self {
        job.prompt.iter().for_each(|token| chain.push(*token));
        Self {
            prompt_tokens: chain.tokens(),
            max_tokens: job.max_tokens,
            output_tokens,
            arrived: now,
            scheduled: now,
            first_token: now,
            last_token: now,
            produced: 0,
            answer: job.answer.clone(),
            chain,
            place: None,
            preempted: false,
        }
    }

    /// Where its time went, now that its last token has come.
    pub(super) fn times(&self, now: MonoTime) -> Times {
        Times {
            queue: self.scheduled.since(self.arrived),
            prefill: self.first_token.since(self.scheduled),
            decode: now.since(self.first_token),
        }
    }

    /// Why it is over, if it is.
    pub(super) const fn finish(&self) -> Option<Finish> {
        if self.produced < self.output_tokens {
            None
        } else if self.produced < self.max_tokens {
            Some(Finish::Stop)
        } else {
            Some(Finish::Length)
        }
    }
}

/// The next token of a running job. Ordered by instant, then as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) at: MonoTime,
    pub(super) order: u64,
    pub(super) job: JobId,
}
