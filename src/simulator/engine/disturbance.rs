//! What disturbs the engine's steps: freezes that postpone them, slowdowns that stretch them.
//!
//! Freezes that overlap count as one: a step is late by the time the engine stood, no more.

use std::time::Duration;

use crate::clock::MonoTime;

/// Part of a sequence's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Up to the first token.
    Prefill,
    /// From token to token.
    Decode,
}

/// A span in which the steps of one phase last longer, or shorter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// Which steps.
    pub phase: Phase,
    /// How many times as long, finite and positive.
    pub factor: f64,
    /// First instant.
    pub from: MonoTime,
    /// First instant that is normal again.
    pub until: MonoTime,
}

/// All slowdowns on and to come. Those on at once multiply.
#[derive(Debug, Default)]
pub(super) struct Slowdowns(Vec<Slowdown>);

impl Slowdowns {
    pub(super) fn plan(&mut self, slowdown: Slowdown, now: MonoTime) {
        self.0.retain(|known| known.until > now);
        self.0.push(slowdown);
    }

    pub(super) fn factor(&self, phase: Phase, at: MonoTime) -> f64 {
        self.0
            .iter()
            .filter(|s| s.phase == phase && s.from <= at && at < s.until)
            .map(|s| s.factor)
            .product()
    }
}

/// The freeze that is on and those to come.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    /// Sorted by begin, soonest last.
    planned: Vec<(MonoTime, MonoTime)>,
    frozen_until: Option<MonoTime>,
}

impl Freezes {
    pub(super) fn plan(&mut self, from: MonoTime, until: MonoTime) {
        if until > from {
            self.planned.push((from, until));
            self.planned.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    pub(super) const fn is_frozen(&self) -> bool {
        self.frozen_until.is_some()
    }

    pub(super) fn thaw(&mut self) {
        self.frozen_until = None;
    }

    /// When a freeze next begins or ends.
    pub(super) fn next_change(&self) -> Option<MonoTime> {
        let begin = self.planned.last().map(|(from, _)| *from);
        [begin, self.frozen_until].into_iter().flatten().min()
    }

    /// Begins and ends what is due at `now`; returns how far steps still to come move back.
    pub(super) fn change(&mut self, now: MonoTime) -> Duration {
        let mut delay = Duration::ZERO;
        while let Some((from, until)) = self.planned.last().copied() {
            if from > now {
                break;
            }
            self.planned.pop();
            let stood_until = self.frozen_until.unwrap_or(from);
            delay += until.since(stood_until);
            self.frozen_until = Some(stood_until.max(until));
        }
        if self.frozen_until.is_some_and(|until| until <= now) {
            self.frozen_until = None;
        }
        delay
    }
}
