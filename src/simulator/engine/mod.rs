//! The modelled engine: an admission queue, prefill by tokens, continuous batching.
//!
//! The one idea: the engine is a list of steps, each with its instant. `advance` makes all steps
//! up to an instant and says what each produced; nothing else moves time. Each sequence has a
//! step of its own, whose length depends on how many run beside it when it begins, so a batch
//! slows everyone down without forcing a common beat.
//!
//! Invariants: a job holds at most one step; at most `max_running` jobs hold one; the same calls
//! with the same seed give the same emissions. At one instant: a freeze begins, a freeze ends,
//! steps in the order they were planned, admissions in order of arrival.
//!
//! Not here: clocks, connections, request faults such as a cut (those are `faults` and `wire`).

mod disturbance;
mod job;
mod stats;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use self::disturbance::{Freezes, Slowdowns};
pub use self::disturbance::{Phase, Slowdown};
pub use self::job::{Emission, EmissionKind, EngineFull, EngineState, Finish, Job, JobId};
pub use self::stats::{BucketCounts, Stats};
use super::profile::{Profile, whole_millis};
use super::tokens::mix;
use crate::clock::MonoTime;

/// Jobs the engine holds at most, running and waiting: far more than connections.
const MAX_JOBS: usize = 65_536;

/// The modelled engine.
#[derive(Debug)]
pub struct Engine {
    profile: Profile,
    seed: u64,
    now: MonoTime,
    waiting: VecDeque<JobId>,
    jobs: HashMap<JobId, Sequence>,
    steps: BinaryHeap<Reverse<Step>>,
    planned: u64,
    kv_tokens: u32,
    freezes: Freezes,
    slowdowns: Slowdowns,
    stats: Stats,
}

/// A job on its way.
#[derive(Debug)]
struct Sequence {
    job: Job,
    output_tokens: u32,
    arrived: MonoTime,
    last_token: MonoTime,
    produced: u32,
    running: bool,
}

/// The next token of a running job. Ordered by instant, then as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at: MonoTime,
    order: u64,
    job: JobId,
}

impl Engine {
    /// An idle engine at the origin of time.
    #[must_use]
    pub fn new(profile: Profile, seed: u64) -> Self {
        Self {
            profile,
            seed,
            now: MonoTime::ZERO,
            waiting: VecDeque::new(),
            jobs: HashMap::new(),
            steps: BinaryHeap::new(),
            planned: 0,
            kv_tokens: 0,
            freezes: Freezes::default(),
            slowdowns: Slowdowns::default(),
            stats: Stats::new(),
        }
    }

    /// Puts a job into the queue at `now`. Call `advance(now)` first; the job is admitted by
    /// the next `advance`, at `now` if there is room.
    ///
    /// # Errors
    ///
    /// If the engine holds as many jobs as it can.
    pub fn submit(&mut self, now: MonoTime, job: Job) -> Result<(), EngineFull> {
        if self.jobs.len() >= MAX_JOBS {
            return Err(EngineFull(MAX_JOBS));
        }
        self.now = self.now.max(now);
        let sequence = Sequence {
            job,
            output_tokens: self.output_tokens(&job),
            arrived: self.now,
            last_token: self.now,
            produced: 0,
            running: false,
        };
        self.jobs.insert(job.id, sequence);
        self.waiting.push_back(job.id);
        Ok(())
    }

    /// Takes a job out because its client went away; its slot is free at once. Does nothing if
    /// the job has ended.
    pub fn cancel(&mut self, id: JobId) {
        let Some(sequence) = self.jobs.remove(&id) else {
            return;
        };
        self.stats.aborted += 1;
        if sequence.running {
            self.steps.retain(|Reverse(step)| step.job != id);
            self.release(&sequence);
        } else {
            self.waiting.retain(|waiting| *waiting != id);
        }
    }

    /// Makes no step from `from` until `until`: what was due in between and later is late by
    /// that much, and nobody is admitted.
    pub fn freeze(&mut self, from: MonoTime, until: MonoTime) {
        self.freezes.plan(from.max(self.now), until);
    }

    /// Stretches the steps of one phase that begin within a span.
    pub fn slow(&mut self, slowdown: Slowdown) {
        self.slowdowns.plan(slowdown, self.now);
    }

    /// Forgets all jobs, totals and the freeze that is on; what is planned for later stays.
    pub fn restart(&mut self) {
        self.waiting.clear();
        self.jobs.clear();
        self.steps.clear();
        self.kv_tokens = 0;
        self.freezes.thaw();
        self.stats = Stats::new();
    }

    /// The instant of the next step, admission or change; `None` if nothing is left to do.
    #[must_use]
    pub fn next_event(&self) -> Option<MonoTime> {
        let work = if self.freezes.is_frozen() {
            None
        } else if self.can_admit() {
            Some(self.now)
        } else {
            self.steps.peek().map(|Reverse(step)| step.at)
        };
        [work, self.freezes.next_change()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Makes everything that is due up to and including `to`, in order.
    pub fn advance(&mut self, to: MonoTime) -> Vec<Emission> {
        let mut emissions = Vec::new();
        while let Some(at) = self.next_event().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.change_freeze();
            if self.freezes.is_frozen() {
                continue;
            }
            match self.steps.peek().copied() {
                Some(Reverse(step)) if step.at <= self.now => {
                    self.steps.pop();
                    emissions.extend(self.produce(step.job));
                }
                _ => emissions.extend(self.admit()),
            }
        }
        self.now = self.now.max(to);
        emissions
    }

    /// What the gauges show now.
    #[must_use]
    pub fn state(&self) -> EngineState {
        let capacity = self.profile.kv_capacity_tokens.max(1);
        EngineState {
            running: self.steps.len(),
            waiting: self.waiting.len(),
            kv_usage: (f64::from(self.kv_tokens) / f64::from(capacity)).min(1.0),
        }
    }

    /// Totals since the start or the last restart.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    fn can_admit(&self) -> bool {
        !self.waiting.is_empty() && self.steps.len() < self.profile.max_running.max(1)
    }

    /// Begins or ends a freeze that is due; steps that a new freeze catches move back.
    fn change_freeze(&mut self) {
        let delay = self.freezes.change(self.now);
        if !delay.is_zero() {
            let late = self.steps.drain().map(|Reverse(step)| {
                Reverse(Step {
                    at: step.at + delay,
                    ..step
                })
            });
            self.steps = late.collect();
        }
    }

    fn admit(&mut self) -> Option<Emission> {
        if !self.can_admit() {
            return None;
        }
        let id = self.waiting.pop_front()?;
        let sequence = self.jobs.get_mut(&id)?;
        sequence.running = true;
        let prompt_tokens = sequence.job.prompt_tokens;
        self.kv_tokens = self.kv_tokens.saturating_add(prompt_tokens);
        let prefill = self.profile.prefill(prompt_tokens);
        self.plan(id, 0, prefill);
        Some(self.emission(id, EmissionKind::Admitted))
    }

    /// Makes the next token of `id` and plans the one after it.
    fn produce(&mut self, id: JobId) -> Option<Emission> {
        let sequence = self.jobs.get_mut(&id)?;
        let index = sequence.produced;
        if index == 0 {
            let ttft = self.now.since(sequence.arrived);
            self.stats.first_token(ttft, sequence.job.prompt_tokens);
        } else {
            self.stats.next_token(self.now.since(sequence.last_token));
        }
        sequence.produced += 1;
        sequence.last_token = self.now;
        self.kv_tokens = self.kv_tokens.saturating_add(1);
        let finish = finish_of(sequence);
        if finish.is_some() {
            self.end(id, finish);
        } else {
            // This sequence's own step was taken off the heap just now.
            let decode = self.profile.decode(self.steps.len() + 1);
            self.plan(id, index + 1, decode);
        }
        Some(self.emission(id, EmissionKind::Token { index, finish }))
    }

    fn end(&mut self, id: JobId, finish: Option<Finish>) {
        if let (Some(sequence), Some(finish)) = (self.jobs.remove(&id), finish) {
            let e2e = self.now.since(sequence.arrived);
            self.stats.finished(e2e, finish);
            self.release(&sequence);
        }
    }

    fn release(&mut self, sequence: &Sequence) {
        let held = sequence.job.prompt_tokens.saturating_add(sequence.produced);
        self.kv_tokens = self.kv_tokens.saturating_sub(held);
    }

    /// Plans the step that gives token number `index`.
    fn plan(&mut self, job: JobId, index: u32, span: Duration) {
        let phase = if index == 0 {
            Phase::Prefill
        } else {
            Phase::Decode
        };
        let factor = self.slowdowns.factor(phase, self.now) * self.jitter(job, index);
        let step = Step {
            at: self.now + whole_millis(span, factor),
            order: self.planned,
            job,
        };
        self.planned += 1;
        self.steps.push(Reverse(step));
    }

    fn emission(&self, job: JobId, kind: EmissionKind) -> Emission {
        Emission {
            job,
            at: self.now,
            kind,
        }
    }

    fn jitter(&self, job: JobId, index: u32) -> f64 {
        let bits = u32::try_from(self.bits(job, index) >> 32).unwrap_or(u32::MAX);
        let swing = f64::from(bits) / f64::from(u32::MAX) * 2.0 - 1.0;
        1.0 + self.profile.jitter.clamp(0.0, 0.99) * swing
    }

    /// How many tokens a job will get: the most it asks for, or fewer if the profile says so.
    fn output_tokens(&self, job: &Job) -> u32 {
        let most = job.max_tokens.max(1);
        let least = job.min_tokens.clamp(1, most);
        if !self.profile.stops_early || least == most {
            return most;
        }
        let choices = u64::from(most - least) + 1;
        let more = self.bits(job.id, u32::MAX) % choices;
        least + u32::try_from(more).unwrap_or(0)
    }

    /// A draw that depends on nothing but the seed, the job and the index, so that the order of
    /// events cannot change it.
    const fn bits(&self, job: JobId, index: u32) -> u64 {
        mix(self.seed ^ mix(job.0 ^ mix(index as u64)))
    }
}

fn finish_of(sequence: &Sequence) -> Option<Finish> {
    if sequence.produced < sequence.output_tokens {
        None
    } else if sequence.produced < sequence.job.max_tokens {
        Some(Finish::Stop)
    } else {
        Some(Finish::Length)
    }
}
