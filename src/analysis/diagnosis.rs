//! From the evidence of one span of time, and of the span it is held against, to causes.
//!
//! Each rule is a function from both to one cause with its numbers, or nothing. A rule whose
//! evidence is not known says nothing. Several causes may hold; where requests are slow and no
//! rule holds, the finding says so by its symptoms alone.
//!
//! A rule asks for a symptom: a healthy server with a full queue for a moment is healthy. Slow
//! means slower than before, or beyond a limit of the operator's. Without either, what the server
//! says of itself is shown as possible at most.

mod engine;
mod hardware;
mod view;
mod way;

#[cfg(test)]
mod tests;

use self::view::View;
use super::cause::{Cause, Confidence};
use super::evidence::Evidence;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// A share, 0 to 1.
    Share,
    /// Per second.
    Rate,
    /// Hertz.
    Hertz,
    /// Things.
    Count,
}

impl Unit {
    /// Its name in the API; nothing for things that are counted.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Share => "share",
            Self::Rate => "1/s",
            Self::Hertz => "Hz",
            Self::Count => "",
        }
    }
}

/// A number that speaks for a cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What was measured, in words.
    pub what: String,
    /// Its value now.
    pub now: f64,
    /// Its value before, if that was known.
    pub before: Option<f64>,
    /// What it counts.
    pub unit: Unit,
}

/// What was noticed before any cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symptom {
    /// The first token comes later.
    SlowFirstToken,
    /// The others come more slowly.
    SlowTokens,
    /// More requests fail.
    Failures,
    /// Answers come in one burst.
    Bursts,
}

impl Symptom {
    /// Its name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowFirstToken => "slow_first_token",
            Self::SlowTokens => "slow_tokens",
            Self::Failures => "failures",
            Self::Bursts => "bursts",
        }
    }
}

/// A cause with what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The cause.
    pub cause: Cause,
    /// How sure it is.
    pub confidence: Confidence,
    /// The numbers, the strongest first.
    pub facts: Vec<Fact>,
}

/// What is wrong and why, as far as one span of time says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finding {
    /// What was noticed.
    pub symptoms: Vec<Symptom>,
    /// Its causes, the surest first. Empty with symptoms: unknown.
    pub causes: Vec<Diagnosis>,
}

impl Finding {
    /// Whether requests are slow or fail and nothing says why.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        !self.symptoms.is_empty() && self.causes.is_empty()
    }
}

type Rule = fn(&View) -> Option<Diagnosis>;

/// One rule for each cause.
const RULES: [Rule; Cause::ALL.len()] = [
    way::own_client,
    way::hung_engine,
    way::buffering_proxy,
    way::network,
    way::frontend_bound,
    way::model_change,
    hardware::gpu_error,
    hardware::gpu_throttled,
    hardware::gpu_imbalance,
    hardware::server_host,
    hardware::host_bound,
    engine::no_room_for_cache,
    engine::kv_cache_pressure,
    engine::preemption,
    engine::queueing,
    engine::prefix_cache_loss,
    engine::prefill_bound,
    engine::decode_bound,
    engine::slow_alone,
];

/// What `now` says, held against `before`: the same stream at an earlier, healthy time.
#[must_use]
pub fn diagnose(now: &Evidence, before: Option<&Evidence>) -> Finding {
    let view = View::new(now, before);
    let mut causes: Vec<Diagnosis> = RULES.iter().filter_map(|rule| rule(&view)).collect();
    // Late requests of ours look like every other cause, and a dead engine like many.
    if let Some(own) = causes.iter().position(|one| one.cause == Cause::OwnClient) {
        causes = vec![causes.swap_remove(own)];
    }
    if causes.iter().any(|one| one.cause == Cause::HungEngine) {
        causes.retain(|one| !one.cause.follows_from_a_hang());
    }
    // What is explained by its own evidence needs no word for what is left.
    if causes.iter().any(|one| one.cause.explains_slow_steps()) {
        causes.retain(|one| !one.cause.is_what_is_left());
    }
    causes.sort_by_key(|one| std::cmp::Reverse(one.confidence));
    Finding {
        symptoms: view.symptoms(),
        causes,
    }
}

impl Cause {
    /// Whether steps that last longer follow from it, whatever else may hold.
    const fn explains_slow_steps(self) -> bool {
        matches!(
            self,
            Self::GpuThrottled
                | Self::GpuError
                | Self::GpuImbalance
                | Self::HostBound
                | Self::ServerHost
                | Self::ModelChange
                | Self::HungEngine
                | Self::Preemption
        )
    }

    /// Whether a dead engine shows its signs.
    const fn follows_from_a_hang(self) -> bool {
        matches!(
            self,
            Self::HostBound | Self::FrontendBound | Self::Queueing | Self::Network
        )
    }

    /// Whether it says only which half of the work got slower.
    const fn is_what_is_left(self) -> bool {
        matches!(self, Self::PrefillBound | Self::DecodeBound)
    }
}
