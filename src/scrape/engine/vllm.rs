//! vLLM, V0 and V1; also behind Dynamo, Triton and Ray, with other labels.
//!
//! `perc` is a share from 0 to 1. V1 of 0.9.2 to 0.11 publishes the old names beside the new
//! ones. `generation_tokens_total` moves with every step, unlike the sum of
//! `request_generation_tokens`, which moves when requests end.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram, info};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::Vllm,
    // Collectors that know no colons write an underscore.
    prefixes: &["vllm:", "vllm_"],
    marks: &["vllm:", "vllm_"],
    tables: &[FAMILIES],
    models: &["model_name", "model"],
    ranks: &["engine", "dp_rank", "worker_id"],
    copies: &[],
};

pub(super) const FAMILIES: &[Family] = &[
    gauge("num_requests_running", GaugeRole::Running),
    gauge("num_requests_waiting", GaugeRole::Waiting),
    // V0.
    gauge("num_requests_swapped", GaugeRole::Swapped),
    gauge("kv_cache_usage_perc", GaugeRole::KvUsage),
    // V0, and V1 before 0.12.
    gauge("gpu_cache_usage_perc", GaugeRole::KvUsage).order(1),
    // V0; -1 where it is not supported.
    gauge("gpu_prefix_cache_hit_rate", GaugeRole::PrefixHitRate),
    counter("prefix_cache_queries", CounterRole::PrefixQueries),
    counter("prefix_cache_hits", CounterRole::PrefixHits),
    // Early V1.
    counter("gpu_prefix_cache_queries", CounterRole::PrefixQueries).order(1),
    counter("gpu_prefix_cache_hits", CounterRole::PrefixHits).order(1),
    counter("num_preemptions", CounterRole::Preemptions),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("generation_tokens", CounterRole::GenerationTokens),
    counter("spec_decode_num_draft_tokens", CounterRole::DraftTokens),
    counter(
        "spec_decode_num_accepted_tokens",
        CounterRole::AcceptedTokens,
    ),
    finished("request_success", Reason::Label("finished_reason")),
    histogram("time_to_first_token_seconds", HistogramRole::Ttft),
    histogram("inter_token_latency_seconds", HistogramRole::Itl),
    // The old name of the same values; both are there in 0.11.
    histogram("time_per_output_token_seconds", HistogramRole::Itl).order(1),
    histogram("request_time_per_output_token_seconds", HistogramRole::Tpot),
    histogram("e2e_request_latency_seconds", HistogramRole::E2e),
    histogram("request_queue_time_seconds", HistogramRole::Queue),
    // V0, the same once more.
    histogram("time_in_queue_requests", HistogramRole::Queue).order(1),
    histogram("request_prefill_time_seconds", HistogramRole::Prefill),
    histogram("request_decode_time_seconds", HistogramRole::Decode),
    info(
        "cache_config_info",
        &[
            ("num_gpu_blocks", GaugeRole::KvBlocks),
            ("block_size", GaugeRole::BlockTokens),
        ],
    ),
];
