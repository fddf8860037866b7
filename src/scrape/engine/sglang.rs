//! `SGLang`. Counters of tokens move when requests end.
//!
//! A data-parallel rank has a label of its own; with metrics of all schedulers, every tensor-
//! parallel worker tells the same of its rank once more.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram, info};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::Sglang,
    prefixes: &["sglang:", "sglang_"],
    marks: &["sglang:", "sglang_"],
    tables: &[FAMILIES],
    // The earliest versions call it `name`.
    models: &["model_name", "model", "name"],
    ranks: &["engine_type", "dp_rank", "worker_id"],
    copies: &["tp_rank", "pp_rank", "moe_ep_rank"],
};

const FAMILIES: &[Family] = &[
    gauge("num_running_reqs", GaugeRole::Running),
    gauge("num_queue_reqs", GaugeRole::Waiting),
    // What waits elsewhere: for a grammar, or between prefill and decode servers.
    gauge("num_grammar_queue_reqs", GaugeRole::Waiting),
    gauge("num_prefill_prealloc_queue_reqs", GaugeRole::Waiting),
    gauge("num_prefill_bootstrap_queue_reqs", GaugeRole::Waiting),
    gauge("num_decode_prealloc_queue_reqs", GaugeRole::Waiting),
    gauge("token_usage", GaugeRole::KvUsage),
    gauge("num_used_tokens", GaugeRole::KvTokensUsed),
    gauge("max_total_num_tokens", GaugeRole::KvTokens),
    gauge("cache_hit_rate", GaugeRole::PrefixHitRate),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("generation_tokens", CounterRole::GenerationTokens),
    // Each prompt token is looked up.
    counter("prompt_tokens", CounterRole::PrefixQueries),
    counter("cached_tokens", CounterRole::PrefixHits),
    counter("num_retracted_requests", CounterRole::Preemptions),
    finished("num_requests", Reason::Is("finished")),
    histogram("time_to_first_token_seconds", HistogramRole::Ttft),
    histogram("inter_token_latency_seconds", HistogramRole::Itl),
    // The name before 0.5.
    histogram("time_per_output_token_seconds", HistogramRole::Itl).order(1),
    histogram("e2e_request_latency_seconds", HistogramRole::E2e),
    histogram("queue_time_seconds", HistogramRole::Queue),
    info(
        "cache_config_info",
        &[
            ("page_size", GaugeRole::BlockTokens),
            ("num_pages", GaugeRole::KvBlocks),
        ],
    ),
];
