//! Times between arrivals of a process of rate 1: constant, Poisson, gamma.
//!
//! The k-th value is the operational time of the k-th arrival: how much of the integrated rate
//! has to pass before it is due. What the rate is, and whether it changes, is `profile`'s.

use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp1, Gamma};

use crate::config::Gaps;

/// An endless sequence of steps of mean 1.
#[derive(Debug)]
pub(super) struct Steps {
    spread: Spread,
    random: Box<StdRng>,
}

#[derive(Debug)]
enum Spread {
    /// Whether the first arrival, which is due at once, has been given.
    Constant {
        begun: bool,
    },
    Poisson,
    Gamma(Gamma<f64>),
}

impl Steps {
    /// # Panics
    ///
    /// If a smoothness is not finite and positive, which the configuration excludes.
    pub(super) fn new(gaps: Gaps, random: StdRng) -> Self {
        let spread = match gaps {
            Gaps::Constant => Spread::Constant { begun: false },
            Gaps::Poisson => Spread::Poisson,
            Gaps::Gamma { smoothness } => Spread::Gamma(
                Gamma::new(smoothness, smoothness.recip())
                    .expect("smoothness is checked to be finite and positive"),
            ),
        };
        Self {
            spread,
            random: Box::new(random),
        }
    }

    /// Operational time from the last arrival to the next; from the start to the first.
    pub(super) fn next(&mut self) -> f64 {
        match &mut self.spread {
            Spread::Constant { begun } => {
                if std::mem::replace(begun, true) {
                    1.0
                } else {
                    0.0
                }
            }
            Spread::Poisson => Exp1.sample(&mut self.random),
            Spread::Gamma(gamma) => gamma.sample(&mut self.random),
        }
    }
}
