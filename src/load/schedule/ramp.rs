//! When a ramp of a whole number reaches which value: for caps on requests in flight.
//!
//! The cap is `v` from the instant on at which the curve is at `v`, upwards and downwards.

use std::time::Duration;

use super::profile::level;
use crate::config::{Ramp, RampShape};

/// One change of a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapStep {
    /// From the start of the ramp.
    pub after: Duration,
    /// The cap from then on.
    pub cap: u32,
}

/// The changes of a cap on its way to a value, in order.
#[derive(Debug, Clone)]
pub struct CapRamp {
    ramp: Ramp,
    first: u32,
    to: u32,
    given: u32,
}

impl CapRamp {
    /// `ramp` to `to`. The cap is at least 1 at any time.
    #[must_use]
    pub const fn new(ramp: Ramp, to: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a configured count; the cast saturates"
        )]
        let from = ramp.from.round() as u32;
        Self {
            ramp,
            first: if from == 0 { 1 } else { from },
            to,
            given: 0,
        }
    }

    /// The cap before the first change.
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.first
    }

    /// Changes in all.
    const fn changes(&self) -> u32 {
        match self.ramp.shape {
            RampShape::Stepped { steps } => steps,
            RampShape::Linear | RampShape::Exponential => self.first.abs_diff(self.to),
        }
    }
}

impl Iterator for CapRamp {
    type Item = CapStep;

    fn next(&mut self) -> Option<CapStep> {
        if self.given >= self.changes() {
            return None;
        }
        self.given += 1;
        let (from, to) = (f64::from(self.first), f64::from(self.to));
        let one_by_one = if self.to >= self.first {
            self.first.saturating_add(self.given)
        } else {
            self.first.saturating_sub(self.given)
        };
        let value = f64::from(one_by_one);
        let (share, cap) = match self.ramp.shape {
            RampShape::Linear => ((value - from) / (to - from), one_by_one),
            RampShape::Exponential => ((value / from).ln() / (to / from).ln(), one_by_one),
            RampShape::Stepped { steps } => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between two caps"
                )]
                let cap = level(from, to, (self.given, steps)).round() as u32;
                (f64::from(self.given) / f64::from(steps), cap)
            }
        };
        Some(CapStep {
            after: self.ramp.over.mul_f64(share.clamp(0.0, 1.0)),
            cap,
        })
    }
}
