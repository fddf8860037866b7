//! Names of what the rules record. Boards and alerts take them from here.
//!
//! They follow the habit of Prometheus, `level:metric:operation`, without the length of the
//! window, which differs by probe.

use crate::export::catalog::{self, Metric};

/// Where rates and shares of streams are.
pub(in crate::export) mod series {
    /// Requests of a window that count for or against the server.
    pub(in crate::export) const COUNTED: &str = "tokencanary:requests:counted";
    /// Good ones among them.
    pub(in crate::export) const OK: &str = "tokencanary:requests:ok";
    /// Their share.
    pub(in crate::export) const SUCCESS: &str = "tokencanary:requests:success_ratio";
    /// Requests that were due, per second.
    pub(in crate::export) const ARRIVALS: &str = "tokencanary:arrivals:rate";
    /// Tokens per second.
    pub(in crate::export) const TOKENS: &str = "tokencanary:tokens:rate";
    /// One less the objective.
    pub(in crate::export) const ERROR_BUDGET: &str = "tokencanary:slo:error_budget";
}

/// A quantile that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// The median.
    P50,
    /// The 95th percentile.
    P95,
    /// The 99th.
    P99,
}

impl Quantile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::P50, Self::P95, Self::P99];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
        }
    }

    /// As a number.
    #[must_use]
    pub const fn value(self) -> &'static str {
        match self {
            Self::P50 => "0.5",
            Self::P95 => "0.95",
            Self::P99 => "0.99",
        }
    }

    /// Fewest values that carry it, 1 / (1 - q).
    #[must_use]
    pub const fn least(self) -> u32 {
        match self {
            Self::P50 => 2,
            Self::P95 => 20,
            Self::P99 => 100,
        }
    }
}

/// Histograms whose quantiles are recorded.
pub static RECORDED_HISTOGRAMS: [&Metric; 5] = [
    &catalog::TTFT,
    &catalog::TTFT_OR_FAILURE,
    &catalog::ITL,
    &catalog::RESPONSE_TIME,
    &catalog::RESPONSE_TIME_OR_FAILURE,
];

/// Histograms whose p95 has a baseline, each with the one whose mean has to agree with it: the
/// mean of a histogram with infinite values says nothing.
pub static BASELINES: [(&Metric, &Metric); 2] = [
    (&catalog::TTFT_OR_FAILURE, &catalog::TTFT),
    (&catalog::ITL, &catalog::ITL),
];

/// Name of what is recorded of `metric` as `operation`: `p95`, `mean`, `samples`, ...
#[must_use]
pub fn recorded(metric: &Metric, operation: &str) -> String {
    let name = metric.prometheus.trim_start_matches("tokencanary_");
    format!("tokencanary:{name}:{operation}")
}
