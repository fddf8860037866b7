//! `trtllm-serve`, at `/prometheus/metrics`; its `/metrics` is JSON that is drained by reading.
//! Prefix-cache counters count blocks.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram, info};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::TensorRtLlm,
    prefixes: &["trtllm_", "trtllm:"],
    marks: &["trtllm_", "trtllm:"],
    tables: &[FAMILIES],
    models: &["model_name", "model"],
    ranks: &["engine_type", "dp_rank", "worker_id"],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    gauge("num_requests_running", GaugeRole::Running),
    gauge("num_requests_waiting", GaugeRole::Waiting),
    gauge("num_paused_requests", GaugeRole::Swapped),
    gauge("max_num_active_requests", GaugeRole::RunningLimit),
    gauge("kv_cache_utilization", GaugeRole::KvUsage),
    gauge("kv_cache_hit_rate", GaugeRole::PrefixHitRate),
    gauge("kv_cache_max_blocks", GaugeRole::KvBlocks),
    gauge("kv_cache_used_blocks", GaugeRole::KvBlocksUsed),
    gauge("kv_cache_tokens_per_block", GaugeRole::BlockTokens),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("generation_tokens", CounterRole::GenerationTokens),
    // Tokens where it counts them: each prompt token is looked up.
    counter("prompt_tokens", CounterRole::PrefixQueries),
    counter("prompt_cached_tokens", CounterRole::PrefixHits),
    counter("prompt_cache_hit_tokens", CounterRole::PrefixHits).order(1),
    counter("spec_decode_num_draft_tokens", CounterRole::DraftTokens),
    counter(
        "spec_decode_num_accepted_tokens",
        CounterRole::AcceptedTokens,
    ),
    finished("request_success", Reason::Label("finished_reason")),
    finished("request_error", Reason::Is("error")),
    histogram("time_to_first_token_seconds", HistogramRole::Ttft),
    // One value per request, whatever the name says elsewhere.
    histogram("time_per_output_token_seconds", HistogramRole::Tpot),
    histogram("e2e_request_latency_seconds", HistogramRole::E2e),
    histogram("request_queue_time_seconds", HistogramRole::Queue),
    histogram("request_prefill_time_seconds", HistogramRole::Prefill),
    histogram("request_decode_time_seconds", HistogramRole::Decode),
    info("model_config_info", &[]),
    info("parallel_config_info", &[]),
    info("speculative_config_info", &[]),
    info("kv_cache_config_info", &[]),
];
