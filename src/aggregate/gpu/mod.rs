//! The GPUs of one target over time: at an instant, and over a window.
//!
//! One bounded ring of good readings; at an instant the last one at or before it counts, never
//! interpolated, and none if that one is too old. Over a window each reading holds until the next,
//! as long as it is not too old.

mod energy;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use energy::{Drawn, PowerSource};
pub use window::GpuWindow;

use crate::clock::MonoTime;
use crate::measurement::{GpuAt, GpuSample, GpuState, GpuStates, RequestRecord};

/// Errors of one target that are remembered.
const MOST_ERRORS: usize = 64;

/// What is read of the GPUs of one target, and how much of it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuRules {
    /// Readings that are kept.
    pub capacity: usize,
    /// A reading older than this says nothing.
    pub max_age: Duration,
}

/// The latest readings of the GPUs of one target, ascending in time.
#[derive(Debug, Clone)]
pub struct GpuHistory {
    rules: GpuRules,
    states: VecDeque<(MonoTime, GpuState)>,
    newest: Option<GpuSample>,
    /// Joules since the first reading that says them.
    energy_j: Option<f64>,
    /// Errors that a GPU had and had not before, ascending in time.
    errors: VecDeque<(MonoTime, u32)>,
    disordered: u64,
}

impl GpuHistory {
    /// Nothing read yet.
    #[must_use]
    pub fn new(rules: GpuRules) -> Self {
        Self {
            rules,
            states: VecDeque::new(),
            newest: None,
            energy_j: None,
            errors: VecDeque::new(),
            disordered: 0,
        }
    }

    /// Adds the newest reading. One that is older than the newest is dropped and counted.
    pub fn push(&mut self, sample: GpuSample) {
        if self.states.back().is_some_and(|(at, _)| *at > sample.at) {
            self.disordered += 1;
            return;
        }
        if self.states.len() >= self.rules.capacity.max(1) {
            self.states.pop_front();
        }
        let state = sample.state();
        self.count_energy(&state);
        self.note_errors(&sample);
        self.states.push_back((sample.at, state));
        self.newest = Some(sample);
    }

    /// Of each GPU on its own: the number on its page stays, and another GPU may be next.
    fn note_errors(&mut self, sample: &GpuSample) {
        let before = self.newest.as_ref().map(|newest| Arc::clone(&newest.gpus));
        for gpu in sample.gpus.iter() {
            let known = before.iter().flat_map(|gpus| gpus.iter());
            let known = known.into_iter().find(|known| known.name == gpu.name);
            let (Some(known), Some(xid)) =
                (known.and_then(|gpu| gpu.fields.xid()), gpu.fields.xid())
            else {
                continue;
            };
            if xid != known && xid != 0 {
                if self.errors.len() == MOST_ERRORS {
                    self.errors.pop_front();
                }
                self.errors.push_back((sample.at, xid));
            }
        }
    }

    fn count_energy(&mut self, state: &GpuState) {
        let Some(now) = state.energy_j else {
            return;
        };
        let before = self.states.back().map(|(_, before)| before);
        let step = before
            .filter(|before| before.gpus == state.gpus)
            .and_then(|before| Some(now - before.energy_j?));
        // A fall is a driver that was loaded anew.
        let step = step.filter(|step| *step >= 0.0).unwrap_or(0.0);
        self.energy_j = Some(self.energy_j.unwrap_or(0.0) + step);
    }

    /// Joules since the first reading that says them, as far as readings cover it.
    #[must_use]
    pub const fn energy_j(&self) -> Option<f64> {
        self.energy_j
    }

    /// The newest reading, with each GPU, however old it is.
    #[must_use]
    pub const fn newest(&self) -> Option<&GpuSample> {
        self.newest.as_ref()
    }

    /// When a reading says nothing more.
    #[must_use]
    pub const fn max_age(&self) -> Duration {
        self.rules.max_age
    }

    /// Readings dropped because a newer one was there.
    #[must_use]
    pub const fn disordered(&self) -> u64 {
        self.disordered
    }

    /// The last reading at or before `instant`; `None` if there is none, or it is too old.
    #[must_use]
    pub fn at(&self, instant: MonoTime) -> Option<GpuAt> {
        let after = self.states.partition_point(|(at, _)| *at <= instant);
        let (at, state) = self.states.get(after.checked_sub(1)?)?;
        (instant.since(*at) <= self.rules.max_age).then(|| GpuAt::new(*at, state, instant))
    }

    /// What is known at the three instants of `record`.
    #[must_use]
    pub fn of(&self, record: &RequestRecord) -> GpuStates {
        let time = &record.timeline;
        GpuStates {
            intended: self.at(time.intended),
            first_token: time.first_token.and_then(|at| self.at(at)),
            end: time.end.and_then(|at| self.at(at)),
        }
    }

    /// What they were from `from` until `until`.
    #[must_use]
    pub fn window(&self, from: MonoTime, until: MonoTime) -> GpuWindow {
        let first = self.states.partition_point(|(at, _)| *at <= from);
        let states = self.states.range(first.saturating_sub(1)..);
        let window = GpuWindow::of(
            states.map(|(at, state)| (*at, state)),
            (from, until),
            self.rules.max_age,
        );
        let errors = self.errors.iter().rev();
        let new = errors
            .into_iter()
            .find(|(at, _)| *at >= from && *at < until);
        GpuWindow {
            new_xid: new.map(|(_, xid)| *xid),
            ..window
        }
    }
}

#[cfg(test)]
mod tests;
