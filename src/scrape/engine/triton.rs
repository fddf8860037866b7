//! Triton, and its TensorRT-LLM backend. Times are counters of microseconds; the backend has one
//! family per group, whose label says the role. Its vLLM backend publishes vLLM's names.

use super::{Dialect, Family, MICROS, MILLIS, Reason, Role, finished, gauge, histogram};
use crate::measurement::server::{Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::Triton,
    prefixes: &["nv_"],
    marks: &["nv_inference_", "nv_trt_llm_"],
    tables: &[FAMILIES],
    models: &["model"],
    ranks: &["namespace", "version"],
    copies: &[],
};

const REQUESTS: &str = "trt_llm_request_metrics";
const BLOCKS: &str = "trt_llm_kv_cache_block_metrics";
const REQUEST: &str = "request_type";
const BLOCK: &str = "kv_cache_block_type";

const FAMILIES: &[Family] = &[
    gauge(REQUESTS, GaugeRole::Running).only(REQUEST, "scheduled"),
    gauge(REQUESTS, GaugeRole::Waiting).only(REQUEST, "waiting"),
    gauge(REQUESTS, GaugeRole::RunningLimit).only(REQUEST, "max"),
    gauge(BLOCKS, GaugeRole::KvUsage).only(BLOCK, "fraction"),
    gauge(BLOCKS, GaugeRole::KvBlocks).only(BLOCK, "max"),
    gauge(BLOCKS, GaugeRole::KvBlocksUsed).only(BLOCK, "used"),
    gauge(BLOCKS, GaugeRole::BlockTokens).only(BLOCK, "tokens_per"),
    // Of every backend.
    gauge("inference_pending_request_count", GaugeRole::Waiting).order(1),
    finished("inference_request_success", Reason::Is("success")),
    finished("inference_request_failure", Reason::Label("reason")),
    // Of answers in several parts; off unless asked for.
    histogram("inference_first_response_histogram_ms", HistogramRole::Ttft).unit(MILLIS),
    Family::new(
        "inference_request_duration_us",
        Role::Sum(HistogramRole::E2e),
    )
    .unit(MICROS),
    Family::new("inference_request_success", Role::Count(HistogramRole::E2e)),
    Family::new(
        "inference_queue_duration_us",
        Role::Sum(HistogramRole::Queue),
    )
    .unit(MICROS),
    Family::new(
        "inference_request_success",
        Role::Count(HistogramRole::Queue),
    ),
];
