//! NVIDIA NIM, at `/v1/metrics`: vLLM's names without a prefix. Newer ones publish vLLM's own.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::Nim,
    prefixes: &[""],
    // Names that nothing else is likely to have without a prefix.
    marks: &[
        "num_requests_running",
        "num_requests_waiting",
        "num_request_max",
        "gpu_cache_usage_perc",
    ],
    tables: &[FAMILIES],
    models: &["model_name"],
    ranks: &["engine"],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    gauge("num_requests_running", GaugeRole::Running),
    gauge("num_requests_waiting", GaugeRole::Waiting),
    gauge("num_request_max", GaugeRole::RunningLimit),
    gauge("gpu_cache_usage_perc", GaugeRole::KvUsage),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("generation_tokens", CounterRole::GenerationTokens),
    finished("request_finish", Reason::Label("finished_reason")),
    // The same requests once more, told apart by success.
    finished("request_success", Reason::Is("success")).order(1),
    finished("request_failure", Reason::Is("failure")).order(1),
    histogram("time_to_first_token_seconds", HistogramRole::Ttft),
    histogram("time_per_output_token_seconds", HistogramRole::Itl),
    histogram("e2e_request_latency_seconds", HistogramRole::E2e),
];
