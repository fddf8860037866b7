//! The modelled engine: an admission queue, prefill by tokens, continuous batching, a KV cache.
//!
//! The one idea: the engine is a list of steps, each with its instant. `advance` makes all steps
//! up to an instant and says what each produced; nothing else moves time. Each sequence has a
//! step of its own, whose length depends on how many run beside it when it begins, so a batch
//! slows everyone down without forcing a common beat.
//!
//! A job is admitted when there are blocks for its whole prompt. When a running one needs a block
//! and none is free, the one that was admitted last gives way, as in vLLM: it loses its blocks,
//! waits in front of the queue, prefills prompt and output again, and goes on where it was.
//!
//! Invariants: a job holds at most one step; at most `max_running` jobs hold one; the same calls
//! with the same seed give the same emissions. At one instant: a freeze begins, a freeze ends,
//! steps in the order they were planned, admissions in order of arrival.
//!
//! Not here: clocks, connections, request faults such as a cut (those are `faults` and `wire`).

mod condition;
mod disturbance;
mod job;
mod kv;
mod meter;
mod sequence;
mod stats;
#[cfg(test)]
mod tests;
mod view;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use self::condition::Conditions;
pub use self::condition::{Condition, ConditionKind, Machine};
use self::disturbance::{Freezes, Slowdowns};
pub use self::disturbance::{Phase, Slowdown};
pub use self::job::{Emission, EmissionKind, EngineState, Finish, Job, JobId, Refused};
use self::kv::KvCache;
pub use self::meter::Sums;
use self::meter::{Level, Meter};
use self::sequence::{Place, Sequence, Step};
pub use self::stats::{BucketCounts, Stats};
use super::profile::{Profile, whole_millis};
use super::tokens::{self, mix};
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
    /// Those that run, by the number of their admission.
    running: BTreeMap<u64, JobId>,
    admissions: u64,
    steps: BinaryHeap<Reverse<Step>>,
    planned: u64,
    kv: KvCache,
    /// There were not enough blocks for the first in the queue, and none came free since.
    stuck: bool,
    /// What was done and not yet told.
    done: Vec<Emission>,
    freezes: Freezes,
    slowdowns: Slowdowns,
    conditions: Conditions,
    machine: Machine,
    /// Of the GPUs; it stays when the server begins anew.
    last_xid: Option<u32>,
    /// Sequences that prefill.
    prefilling: usize,
    meter: Meter,
    stats: Stats,
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
            running: BTreeMap::new(),
            admissions: 0,
            steps: BinaryHeap::new(),
            planned: 0,
            kv: empty_cache(&profile),
            stuck: false,
            done: Vec::new(),
            freezes: Freezes::default(),
            slowdowns: Slowdowns::default(),
            conditions: Conditions::default(),
            machine: Machine::HEALTHY,
            last_xid: None,
            prefilling: 0,
            meter: Meter::new(),
            stats: Stats::new(),
        }
    }

    /// Puts a job into the queue at `now`. Call `advance(now)` first; the job is admitted by
    /// the next `advance`, at `now` if there is room.
    ///
    /// # Errors
    ///
    /// If the engine holds as many jobs as it can, or could not hold this one if it were alone.
    pub fn submit(&mut self, now: MonoTime, job: &Job) -> Result<(), Refused> {
        if self.jobs.len() >= MAX_JOBS {
            return Err(Refused::Full(MAX_JOBS));
        }
        let (tokens, most) = (
            job.prompt.len() as u64 + u64::from(job.max_tokens),
            self.profile.kv_tokens(),
        );
        if tokens > most {
            return Err(Refused::TooLong { tokens, most });
        }
        self.pass(now);
        let (chain, output) = (self.kv.chain(job.cache_salt), self.output_tokens(job));
        let sequence = Sequence::new(job, chain, (output, self.now));
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
        match sequence.place {
            Some(place) => {
                self.steps.retain(|Reverse(step)| step.job != id);
                self.vacate(place);
            }
            None => self.waiting.retain(|waiting| *waiting != id),
        }
        // Another may be the first in the queue now.
        self.stuck = false;
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

    /// Lets something be so for a while; one that would have begun begins now.
    pub fn impose(&mut self, mut condition: Condition) {
        condition.from = condition.from.max(self.now);
        self.conditions.plan(condition);
    }

    /// Forgets all jobs, totals and the freeze that is on; what is planned for later stays.
    pub fn restart(&mut self) {
        self.waiting.clear();
        self.jobs.clear();
        self.steps.clear();
        self.running.clear();
        self.prefilling = 0;
        self.kv = empty_cache(&self.profile);
        self.fit_cache();
        self.stuck = false;
        self.freezes.thaw();
        self.stats = Stats::new();
    }

    /// Empties the prefix cache, and says whether it did: as in vLLM not while anything runs.
    pub fn reset_prefix_cache(&mut self) -> bool {
        self.kv.reset_prefixes()
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
        [
            work,
            self.freezes.next_change(),
            self.conditions.next_change(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Makes everything that is due up to and including `to`, in order.
    pub fn advance(&mut self, to: MonoTime) -> Vec<Emission> {
        while let Some(at) = self.next_event().filter(|at| *at <= to) {
            self.pass(at);
            self.change_machine();
            self.change_freeze();
            if self.freezes.is_frozen() {
                continue;
            }
            match self.steps.peek().copied() {
                Some(Reverse(step)) if step.at <= self.now => {
                    self.steps.pop();
                    self.produce(step.job);
                }
                _ => self.admit(),
            }
        }
        self.pass(to);
        std::mem::take(&mut self.done)
    }

    fn can_admit(&self) -> bool {
        !self.stuck
            && !self.waiting.is_empty()
            && self.running.len() < self.profile.max_running.max(1)
    }

    /// Time goes on; nothing happens in between.
    fn pass(&mut self, to: MonoTime) {
        let level = Level {
            running: self.running.len(),
            prefilling: self.prefilling,
            frozen: self.freezes.is_frozen(),
            kv_usage: self.kv.usage(),
            machine: self.machine,
        };
        self.meter.pass(to, &level);
        self.now = self.now.max(to);
    }

    /// Begins or ends conditions that are due.
    fn change_machine(&mut self) {
        let Some(machine) = self.conditions.change(self.now) else {
            return;
        };
        self.machine = machine;
        self.last_xid = machine.xid.or(self.last_xid);
        self.fit_cache();
        while self.kv.is_overfull()
            && let Some((_, last)) = self.running.last_key_value()
        {
            self.preempt(*last);
        }
        self.stuck = false;
    }

    /// Sees to it that the cache is as the machine has it.
    fn fit_cache(&mut self) {
        self.kv
            .set_reuse(self.profile.prefix_caching && !self.machine.no_prefix_cache);
        self.kv.shrink(self.machine.kv_share);
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

    /// Admits the first in the queue if there are blocks for it.
    fn admit(&mut self) {
        if !self.can_admit() {
            return;
        }
        let Some(id) = self.waiting.front().copied() else {
            return;
        };
        let Some(sequence) = self.jobs.get_mut(&id) else {
            return;
        };
        let Some((held, cached_tokens)) = self.kv.admit(&sequence.chain) else {
            self.stuck = true;
            return;
        };
        self.waiting.pop_front();
        let order = self.admissions;
        self.admissions += 1;
        self.running.insert(order, id);
        sequence.place = Some(Place {
            order,
            held,
            phase: Phase::Prefill,
        });
        if sequence.produced == 0 {
            sequence.scheduled = self.now;
        }
        self.prefilling += 1;
        let kind = if sequence.preempted {
            EmissionKind::Resumed { cached_tokens }
        } else {
            if self.profile.prefix_caching {
                self.stats.looked_up(sequence.prompt_tokens, cached_tokens);
            }
            EmissionKind::Admitted { cached_tokens }
        };
        let (tokens, index) = (sequence.chain.tokens(), sequence.produced);
        let prefill = self.profile.prefill(tokens - cached_tokens);
        self.plan(id, (Phase::Prefill, index), prefill);
        self.tell(id, kind);
    }

    /// Makes the next token of `id` and plans the one after it.
    fn produce(&mut self, id: JobId) {
        let Some(sequence) = self.jobs.get_mut(&id) else {
            return;
        };
        if let Some(place) = &mut sequence.place
            && place.phase == Phase::Prefill
        {
            place.phase = Phase::Decode;
            self.prefilling -= 1;
        }
        let index = sequence.produced;
        if index == 0 {
            sequence.first_token = self.now;
            let ttft = self.now.since(sequence.arrived);
            self.stats.first_token(ttft, sequence.prompt_tokens);
        } else {
            self.stats.next_token(self.now.since(sequence.last_token));
        }
        sequence.produced += 1;
        sequence.last_token = self.now;
        let finish = sequence.finish();
        self.tell(id, EmissionKind::Token { index, finish });
        match finish {
            Some(finish) => self.end(id, finish),
            None => self.go_on(id),
        }
    }

    /// Puts the token that was just made behind the others of `id`, and plans the next.
    fn go_on(&mut self, id: JobId) {
        let Some(sequence) = self.jobs.get_mut(&id) else {
            return;
        };
        let index = sequence.produced;
        let said = sequence.answer.get((index - 1) as usize).copied();
        let said = said.unwrap_or_else(|| tokens::token(tokens::word(id.0, index - 1)));
        sequence.chain.push(said);
        if self.make_room(id) {
            // This sequence's own step was taken off the heap just now.
            let batch = self.steps.len() + 1;
            let decode = self.profile.decode_strained(batch, self.machine.bandwidth);
            self.plan(id, (Phase::Decode, index), decode);
        }
    }

    /// Sees to it that `id` has blocks for all its tokens; others give way, or it does: `false`.
    fn make_room(&mut self, id: JobId) -> bool {
        loop {
            let Some(sequence) = self.jobs.get_mut(&id) else {
                return false;
            };
            let Some(place) = &mut sequence.place else {
                return false;
            };
            if self.kv.grow(&mut place.held, &sequence.chain) {
                return true;
            }
            let Some((_, last)) = self.running.last_key_value() else {
                return false;
            };
            self.preempt(*last);
        }
    }

    /// Puts `id` back in front of the queue. Its full blocks can be found until they are wanted.
    fn preempt(&mut self, id: JobId) {
        let Some(sequence) = self.jobs.get_mut(&id) else {
            return;
        };
        sequence.preempted = true;
        if let Some(place) = sequence.place.take() {
            self.vacate(place);
        }
        self.steps.retain(|Reverse(step)| step.job != id);
        self.waiting.push_front(id);
        self.stats.preemptions += 1;
        self.tell(id, EmissionKind::Preempted);
    }

    fn end(&mut self, id: JobId, finish: Finish) {
        if let Some(sequence) = self.jobs.remove(&id) {
            self.stats.finished(&sequence.times(self.now), finish);
            if let Some(place) = sequence.place {
                self.vacate(place);
            }
        }
    }

    /// Takes back a slot and its blocks.
    fn vacate(&mut self, place: Place) {
        self.running.remove(&place.order);
        if place.phase == Phase::Prefill {
            self.prefilling -= 1;
        }
        self.kv.release(place.held);
        self.stuck = false;
    }

    /// Plans the step that gives token number `index`.
    fn plan(&mut self, job: JobId, (phase, index): (Phase, u32), span: Duration) {
        let slowed = self.slowdowns.factor(phase, self.now) * self.machine.step_factor();
        let factor = slowed * self.jitter(job, index);
        let step = Step {
            at: self.now + whole_millis(span, factor),
            order: self.planned,
            job,
        };
        self.planned += 1;
        self.steps.push(Reverse(step));
    }

    fn tell(&mut self, job: JobId, kind: EmissionKind) {
        let at = self.now;
        self.done.push(Emission { job, at, kind });
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
        if !job.answer.is_empty() {
            let answer = u32::try_from(job.answer.len()).unwrap_or(u32::MAX);
            return answer.clamp(least, most);
        }
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

fn empty_cache(profile: &Profile) -> KvCache {
    KvCache::new(
        profile.kv_blocks,
        profile.block_tokens,
        profile.prefix_caching,
    )
}
