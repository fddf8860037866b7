//! `LMDeploy`. `perc` is a share from 0 to 1; `iter_token_latency` is seconds and does not say so.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::LmDeploy,
    prefixes: &["lmdeploy:", "lmdeploy_"],
    marks: &["lmdeploy:", "lmdeploy_"],
    tables: &[FAMILIES],
    models: &["model_name"],
    ranks: &["engine"],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    gauge("num_requests_running", GaugeRole::Running),
    gauge("num_requests_waiting", GaugeRole::Waiting),
    gauge("gpu_cache_usage_perc", GaugeRole::KvUsage),
    gauge("prefix_cache_hit_rate", GaugeRole::PrefixHitRate),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("generation_tokens", CounterRole::GenerationTokens),
    // Each prompt token is looked up.
    counter("prompt_tokens", CounterRole::PrefixQueries),
    counter("cached_tokens", CounterRole::PrefixHits),
    counter("spec_decode_num_draft_tokens", CounterRole::DraftTokens),
    counter(
        "spec_decode_num_accepted_tokens",
        CounterRole::AcceptedTokens,
    ),
    finished("request_success", Reason::Label("finished_reason")),
    histogram("time_to_first_token_seconds", HistogramRole::Ttft),
    histogram("iter_token_latency", HistogramRole::Itl),
    histogram("time_per_output_token_seconds", HistogramRole::Tpot),
    histogram("e2e_request_latency_seconds", HistogramRole::E2e),
    histogram("request_queue_time_seconds", HistogramRole::Queue),
    histogram("request_prefill_time_seconds", HistogramRole::Prefill),
    histogram("request_decode_time_seconds", HistogramRole::Decode),
];
