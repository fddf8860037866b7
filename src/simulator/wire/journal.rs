//! The engine's own times of each request, kept for tests that compare them with measured ones.
//!
//! Off unless a capacity is given; what finds no room is counted.

use std::collections::HashMap;

use crate::clock::MonoTime;
use crate::simulator::engine::{Emission, EmissionKind, JobId};

/// When the engine did what for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTimes {
    /// Value of the request's `x-request-id`.
    pub request: Option<String>,
    /// When the request was read to its end and handed to the engine.
    pub received: MonoTime,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// When it left the queue for the first time.
    pub admitted: Option<MonoTime>,
    /// Prompt tokens that were in the prefix cache then.
    pub cached_tokens: Option<u32>,
    /// How often it had to give way and was prefilled again.
    pub preemptions: u32,
    /// When each token came.
    pub tokens: Vec<MonoTime>,
    /// When the last token came, if all did.
    pub finished: Option<MonoTime>,
}

#[derive(Debug)]
pub(super) struct Journal {
    capacity: usize,
    requests: Vec<RequestTimes>,
    under_way: HashMap<JobId, usize>,
    lost: u64,
}

impl Journal {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            requests: Vec::new(),
            under_way: HashMap::new(),
            lost: 0,
        }
    }

    pub(super) fn receive(
        &mut self,
        job: JobId,
        (request, prompt_tokens): (Option<String>, u32),
        now: MonoTime,
    ) {
        if self.requests.len() >= self.capacity {
            self.lost += 1;
            return;
        }
        self.under_way.insert(job, self.requests.len());
        self.requests.push(RequestTimes {
            request,
            received: now,
            prompt_tokens,
            admitted: None,
            cached_tokens: None,
            preemptions: 0,
            tokens: Vec::new(),
            finished: None,
        });
    }

    pub(super) fn note(&mut self, emission: &Emission) {
        let Some(place) = self.under_way.get(&emission.job).copied() else {
            return;
        };
        let times = &mut self.requests[place];
        match emission.kind {
            EmissionKind::Admitted { cached_tokens } => {
                times.admitted = Some(emission.at);
                times.cached_tokens = Some(cached_tokens);
            }
            EmissionKind::Preempted => times.preemptions += 1,
            EmissionKind::Resumed { .. } => {}
            EmissionKind::Token { finish, .. } => {
                times.tokens.push(emission.at);
                if finish.is_some() {
                    times.finished = Some(emission.at);
                    self.under_way.remove(&emission.job);
                }
            }
        }
    }

    /// The job will get no more emissions.
    pub(super) fn forget(&mut self, job: JobId) {
        self.under_way.remove(&job);
    }

    pub(super) fn requests(&self) -> Vec<RequestTimes> {
        self.requests.clone()
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
