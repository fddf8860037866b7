//! The warm-up flags of `bench`. What is not given is as in the benchmark; without an end there
//! is no warm-up.

use std::time::Duration;

use super::bench_load::{
    ArrivalPattern, Patience, Values, count, in_flight, patience, rate, seconds,
};
use crate::config::Bounds;

/// What comes before the benchmark and is not measured.
#[derive(Debug, clap::Args)]
pub(super) struct WarmUp {
    /// Requests of the warm-up, which is not measured.
    #[arg(long, visible_alias = "num-warmup-requests", value_parser = count())]
    warmup_request_count: Option<u64>,
    /// Seconds during which requests of the warm-up become due.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    warmup_duration: Option<Duration>,
    /// Sessions of the warm-up.
    #[arg(long, value_parser = count())]
    num_warmup_sessions: Option<u64>,
    /// `--concurrency` of the warm-up.
    #[arg(long, value_parser = in_flight())]
    warmup_concurrency: Option<u32>,
    /// `--prefill-concurrency` of the warm-up.
    #[arg(long, value_parser = in_flight())]
    warmup_prefill_concurrency: Option<u32>,
    /// `--request-rate` of the warm-up.
    #[arg(long, value_parser = rate)]
    warmup_request_rate: Option<f64>,
    /// `--arrival-pattern` of the warm-up.
    #[arg(long, value_enum)]
    warmup_arrival_pattern: Option<ArrivalPattern>,
    /// Seconds for requests in flight after `--warmup-duration`, or `inf`, the default.
    #[arg(long, value_parser = patience, value_name = "SECONDS", requires = "warmup_duration")]
    warmup_grace_period: Option<Patience>,
    /// `--request-rate-ramp-duration` of the warm-up.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    warmup_request_rate_ramp_duration: Option<Duration>,
    /// `--concurrency-ramp-duration` of the warm-up.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    warmup_concurrency_ramp_duration: Option<Duration>,
    /// `--prefill-concurrency-ramp-duration` of the warm-up.
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    warmup_prefill_concurrency_ramp_duration: Option<Duration>,
}

impl WarmUp {
    /// When it ends; `None` if there is no warm-up.
    pub(super) fn bounds(&self) -> Option<Bounds> {
        let bounds = Bounds {
            requests: self.warmup_request_count,
            duration: self.warmup_duration,
            sessions: self.num_warmup_sessions,
        };
        (!bounds.is_endless()).then_some(bounds)
    }

    pub(super) fn grace(&self) -> Option<Duration> {
        self.warmup_grace_period.and_then(|patience| patience.0)
    }

    /// `measured`, with what is given for the warm-up laid over it.
    pub(super) fn values(&self, measured: Values) -> Values {
        Values {
            concurrency: self.warmup_concurrency.or(measured.concurrency),
            prefill_concurrency: self
                .warmup_prefill_concurrency
                .or(measured.prefill_concurrency),
            request_rate: self.warmup_request_rate.or(measured.request_rate),
            arrival_pattern: self.warmup_arrival_pattern.or(measured.arrival_pattern),
            rate_ramp: self
                .warmup_request_rate_ramp_duration
                .or(measured.rate_ramp),
            concurrency_ramp: self
                .warmup_concurrency_ramp_duration
                .or(measured.concurrency_ramp),
            prefill_ramp: self
                .warmup_prefill_concurrency_ramp_duration
                .or(measured.prefill_ramp),
        }
    }

    /// A flag that says something about a warm-up though there is none.
    pub(super) fn stray(&self) -> Option<&'static str> {
        if self.bounds().is_some() {
            return None;
        }
        let given = [
            (self.warmup_concurrency.is_some(), "--warmup-concurrency"),
            (
                self.warmup_prefill_concurrency.is_some(),
                "--warmup-prefill-concurrency",
            ),
            (self.warmup_request_rate.is_some(), "--warmup-request-rate"),
            (
                self.warmup_arrival_pattern.is_some(),
                "--warmup-arrival-pattern",
            ),
            (
                self.warmup_request_rate_ramp_duration.is_some(),
                "--warmup-request-rate-ramp-duration",
            ),
            (
                self.warmup_concurrency_ramp_duration.is_some(),
                "--warmup-concurrency-ramp-duration",
            ),
            (
                self.warmup_prefill_concurrency_ramp_duration.is_some(),
                "--warmup-prefill-concurrency-ramp-duration",
            ),
        ];
        given
            .into_iter()
            .find_map(|(given, flag)| given.then_some(flag))
    }
}
