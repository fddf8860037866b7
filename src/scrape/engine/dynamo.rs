//! Dynamo: the frontend's page, and the page of a worker.
//!
//! A worker also publishes the metrics of its engine, under the engine's names. Those count, and
//! its own are read only where they are all there is, so that no request is counted twice.

use super::{Dialect, Family, Reason, counter, finished, gauge, histogram};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static FRONTEND: Dialect = Dialect {
    engine: Engine::DynamoFrontend,
    // The second of versions before 0.5.
    prefixes: &["dynamo_frontend_", "nv_llm_http_service_"],
    marks: &["dynamo_frontend_", "nv_llm_http_service_"],
    tables: &[&[
        // In flight includes what is queued.
        gauge("active_requests", GaugeRole::Running),
        gauge("inflight_requests", GaugeRole::Running).order(1),
        gauge("queued_requests", GaugeRole::Waiting),
        gauge("model_max_num_seqs", GaugeRole::RunningLimit),
        gauge("model_total_kv_blocks", GaugeRole::KvBlocks),
        gauge("model_kv_cache_block_size", GaugeRole::BlockTokens),
        gauge("kv_hit_rate", GaugeRole::PrefixHitRate),
        // Sums of histograms of lengths.
        counter("input_sequence_tokens_sum", CounterRole::PromptTokens),
        counter("output_tokens", CounterRole::GenerationTokens),
        counter("output_sequence_tokens_sum", CounterRole::GenerationTokens).order(1),
        counter("input_sequence_tokens_sum", CounterRole::PrefixQueries),
        counter("cached_tokens_sum", CounterRole::PrefixHits),
        finished("requests", Reason::Label("status")),
        histogram("time_to_first_token_seconds", HistogramRole::Ttft),
        histogram("inter_token_latency_seconds", HistogramRole::Itl),
        histogram("request_duration_seconds", HistogramRole::E2e),
    ]],
    models: &["model"],
    ranks: &[],
    copies: &[],
};

pub(super) static WORKER: Dialect = Dialect {
    engine: Engine::DynamoWorker,
    prefixes: &["dynamo_component_"],
    marks: &["dynamo_component_"],
    tables: &[WORKER_FAMILIES],
    models: &["model"],
    ranks: &["worker_id", "dp_rank"],
    copies: &[],
};

/// The endpoint that answers requests; a worker has others.
const GENERATE: (&str, &str) = ("dynamo_endpoint", "generate");

const WORKER_FAMILIES: &[Family] = &[
    gauge("inflight_requests", GaugeRole::Running).only(GENERATE.0, GENERATE.1),
    // A share, whatever its name says.
    gauge("kvstats_gpu_cache_usage_percent", GaugeRole::KvUsage),
    gauge(
        "kvstats_gpu_prefix_cache_hit_rate",
        GaugeRole::PrefixHitRate,
    ),
    gauge("kvstats_total_blocks", GaugeRole::KvBlocks),
    gauge("kvstats_active_blocks", GaugeRole::KvBlocksUsed),
    finished("requests", Reason::Is("finished")).only(GENERATE.0, GENERATE.1),
    histogram("request_duration_seconds", HistogramRole::E2e).only(GENERATE.0, GENERATE.1),
];
