//! Everything that changes while the simulator runs, and the one function that moves it on.
//!
//! `pump` brings engine and restarts up to an instant and hands each emission to the answer that
//! waits for it. Whoever changes something pumps at once; the driver pumps when an instant
//! comes. There is no waiting here: the lock around this is held for a moment only.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::mpsc;

use super::ask::Ask;
use super::frontend::Frontend;
use super::journal::Journal;
use crate::clock::MonoTime;
use crate::simulator::engine::{
    Condition, Emission, EmissionKind, Engine, Job, JobId, Phase, Refused, Slowdown, Sums,
};
use crate::simulator::faults::{Ending, Fault, FaultKind, Faults, TooManyFaults};
use crate::simulator::others::Others;
use crate::simulator::questions::wrong;
use crate::simulator::tokens::token;

/// How long all stands still when a GPU fails.
const GPU_RECOVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) faults: Faults,
    pub(super) journal: Journal,
    version: String,
    /// When the modelled process started, and what machine and host had done by then.
    pub(super) started: MonoTime,
    pub(super) sums_at_start: Sums,
    pub(super) frontend: Frontend,
    others: Others,
    /// What the driver sleeps until; `None`: until it is woken.
    pub(super) armed: Option<MonoTime>,
    /// How many restarts there were.
    pub(super) restarts: u64,
    answers: HashMap<JobId, mpsc::Sender<Emission>>,
    submitted: u64,
}

/// A request that the engine has taken.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) job: JobId,
    pub(super) emissions: mpsc::Receiver<Emission>,
}

impl State {
    pub(super) fn new(engine: Engine, journal: Journal, version: String, now: MonoTime) -> Self {
        Self {
            others: Others::new(engine.seed()),
            sums_at_start: Sums::default(),
            frontend: Frontend::default(),
            engine,
            faults: Faults::default(),
            journal,
            version,
            started: now,
            armed: None,
            restarts: 0,
            answers: HashMap::new(),
            submitted: 0,
        }
    }

    /// Makes everything due up to `now` and says when something is due next.
    pub(super) fn pump(&mut self, now: MonoTime) -> Option<MonoTime> {
        loop {
            let restart = self.faults.next_restart().filter(|at| *at <= now);
            let arrival = self.others.next().filter(|at| *at <= now);
            if let Some(at) = restart
                && arrival.is_none_or(|other| at <= other)
            {
                self.advance(at);
                self.restart();
            } else if let Some(at) = arrival {
                self.advance(at);
                self.submit_other(at);
            } else {
                break;
            }
        }
        self.advance(now);
        let limit = self.faults.frontend_limit(now);
        self.frontend.let_in(limit.map(|(most, _)| most));
        let limit_ends = limit.filter(|_| self.frontend.is_crowded());
        let next = [
            self.engine.next_event(),
            self.faults.next_restart(),
            self.others.next(),
            limit_ends.map(|(_, until)| until),
        ];
        next.into_iter().flatten().min()
    }

    /// Hands a request that was read at `now` to the engine, which takes its prompt.
    pub(super) fn submit(
        &mut self,
        ask: &mut Ask,
        request: Option<String>,
        now: MonoTime,
    ) -> Result<Accepted, Refused> {
        self.pump(now);
        if self.faults.answers_wrongly(now) {
            ask.answer.iter_mut().for_each(|said| *said = wrong(said));
        }
        let job = JobId(self.submitted);
        self.engine.submit(
            now,
            &Job {
                id: job,
                prompt: std::mem::take(&mut ask.prompt),
                cache_salt: ask.cache_salt,
                answer: ask.answer.iter().map(|said| token(said)).collect(),
                min_tokens: ask.min_tokens,
                max_tokens: ask.max_tokens,
            },
        )?;
        self.submitted += 1;
        // Room for all that is handed on: the first admission and the tokens. Sending never fails
        // for want of room.
        let room = usize::try_from(ask.max_tokens).unwrap_or(usize::MAX / 8) + 1;
        let (sender, emissions) = mpsc::channel(room);
        self.answers.insert(job, sender);
        self.journal.receive(job, (request, ask.prompt_tokens), now);
        self.pump(now);
        Ok(Accepted { job, emissions })
    }

    /// The answer to `job` is no longer wanted; does nothing if it was complete.
    pub(super) fn cancel(&mut self, job: JobId, now: MonoTime) {
        self.pump(now);
        if self.answers.remove(&job).is_some() {
            self.engine.cancel(job);
            self.journal.forget(job);
        }
        self.pump(now);
    }

    /// Schedules `fault`; one that would have begun before `now` begins now.
    pub(super) fn inject(&mut self, mut fault: Fault, now: MonoTime) -> Result<(), TooManyFaults> {
        self.pump(now);
        fault.from = fault.from.max(now);
        let (from, until) = (fault.from, fault.until());
        let slow = |phase, factor| Slowdown {
            phase,
            factor,
            from,
            until,
        };
        self.faults.schedule(fault.clone(), now)?;
        match fault.kind {
            FaultKind::SlowPrefill { factor } => self.engine.slow(slow(Phase::Prefill, factor)),
            FaultKind::SlowDecode { factor } => self.engine.slow(slow(Phase::Decode, factor)),
            FaultKind::Freeze | FaultKind::Hang => self.engine.freeze(from, until),
            FaultKind::Xid { .. } => {
                self.engine.freeze(from, until.min(from + GPU_RECOVERY));
            }
            FaultKind::Load {
                rate,
                input_tokens,
                output_tokens,
            } => {
                let tokens = (input_tokens, output_tokens);
                self.others.plan((from, until), rate, tokens);
            }
            _ => {}
        }
        if let Some(kind) = fault.kind.condition() {
            self.engine.impose(Condition { kind, from, until });
        }
        self.pump(now);
        Ok(())
    }

    /// The version that is served now.
    pub(super) fn version(&self, now: MonoTime) -> &str {
        self.faults.changed(now).1.unwrap_or(&self.version)
    }

    /// What happens to a request that was read at `now`.
    pub(super) fn ending(&mut self, now: MonoTime) -> Ending {
        self.pump(now);
        self.faults.ending(now)
    }

    /// A request of somebody else arrives. One that finds the server full or loading is refused,
    /// and its user is none of ours.
    fn submit_other(&mut self, at: MonoTime) {
        let job = self.others.take();
        let loading = self.faults.loading(at).is_some();
        if let Some(job) = job.filter(|_| !loading)
            && let Err(refused) = self.engine.submit(at, &job)
        {
            tracing::debug!(%refused, "a request of others was refused");
        }
    }

    fn advance(&mut self, to: MonoTime) {
        for emission in self.engine.advance(to) {
            self.journal.note(&emission);
            self.deliver(emission);
        }
    }

    fn deliver(&mut self, emission: Emission) {
        let Some(answer) = self.answers.get(&emission.job) else {
            return;
        };
        // A client is not told that its answer waits again.
        if let EmissionKind::Preempted | EmissionKind::Resumed { .. } = emission.kind {
            return;
        }
        let over = matches!(
            emission.kind,
            EmissionKind::Token {
                finish: Some(_),
                ..
            }
        );
        // There is room (see `submit`), so this fails only if nobody waits for the answer.
        let unwanted = answer.try_send(emission).is_err();
        if unwanted {
            self.engine.cancel(emission.job);
            self.journal.forget(emission.job);
        }
        if over || unwanted {
            self.answers.remove(&emission.job);
        }
    }

    /// Begins the modelled process anew at the instant of the next restart.
    fn restart(&mut self) {
        let Some((at, version)) = self.faults.take_restart() else {
            return;
        };
        self.engine.restart();
        for job in self.answers.drain().map(|(job, _)| job) {
            self.journal.forget(job);
        }
        self.version = version.unwrap_or_else(|| next_version(&self.version));
        self.started = at;
        self.sums_at_start = *self.engine.sums();
        self.restarts += 1;
    }
}

/// `version` with its last number raised by one.
fn next_version(version: &str) -> String {
    let (head, last) = version.rsplit_once('.').unwrap_or(("0", version));
    let last = last.parse::<u64>().unwrap_or(0);
    format!("{head}.{}", last + 1)
}
