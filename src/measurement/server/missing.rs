//! What a server does not say of itself.

use super::{CounterRole, GaugeRole, HistogramRole, ServerTotals};
use crate::measurement::ServerState;

/// What an explanation of a slow answer looks at.
const GAUGES: [GaugeRole; 3] = [GaugeRole::Running, GaugeRole::Waiting, GaugeRole::KvUsage];
const COUNTERS: [CounterRole; 4] = [
    CounterRole::PromptTokens,
    CounterRole::GenerationTokens,
    CounterRole::PrefixHits,
    CounterRole::Preemptions,
];
const HISTOGRAMS: [HistogramRole; 4] = [
    HistogramRole::Ttft,
    HistogramRole::Itl,
    HistogramRole::E2e,
    HistogramRole::Queue,
];

/// Names of the roles that a page lacks, of those that explanations need.
#[must_use]
pub fn missing(state: &ServerState, totals: &ServerTotals) -> Vec<&'static str> {
    let gauges = GAUGES.iter().filter(|role| state.get(**role).is_none());
    let counters = COUNTERS
        .iter()
        .filter(|role| totals.counter(**role).is_none());
    let histograms = HISTOGRAMS.iter().filter(|role| {
        // Either tells how fast tokens come.
        let or_else = match role {
            HistogramRole::Itl => totals.histogram(HistogramRole::Tpot),
            _ => None,
        };
        totals.histogram(**role).or(or_else).is_none()
    });
    gauges
        .map(|role| role.name())
        .chain(counters.map(|role| role.name()))
        .chain(histograms.map(|role| role.name()))
        .collect()
}
