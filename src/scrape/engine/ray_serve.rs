//! Ray Serve: vLLM's metrics through Ray's exporter, and Ray's own of what stands before them.
//!
//! One series per worker, and workers that are gone linger. A counter is absent until it first
//! moves.

use super::{Dialect, Family, MILLIS, gauge, histogram, vllm};
use crate::measurement::server::{Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::RayServe,
    prefixes: &["ray_vllm_", "ray_vllm:", "ray_serve_"],
    marks: &["ray_vllm_", "ray_vllm:", "ray_serve_"],
    tables: &[vllm::FAMILIES, SERVE],
    models: &["model_name"],
    ranks: &["ReplicaId", "WorkerId", "engine"],
    copies: &[],
};

/// What stands before the engines: counts only where they say nothing.
const SERVE: &[Family] = &[
    gauge("replica_processing_queries", GaugeRole::Running).order(2),
    gauge("deployment_queued_queries", GaugeRole::Waiting).order(2),
    histogram("deployment_processing_latency_ms", HistogramRole::E2e)
        .unit(MILLIS)
        .order(2),
    histogram("http_request_latency_ms", HistogramRole::E2e)
        .unit(MILLIS)
        .order(3),
];
