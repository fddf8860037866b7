//! The `LiteLLM` proxy: no engine, but what engines took as seen from before them. Names have no
//! units, which are seconds; labels are many, and are added up.

use super::{Dialect, Family, Reason, counter, finished, histogram};
use crate::measurement::server::{CounterRole, Engine, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::LiteLlm,
    prefixes: &["litellm_"],
    marks: &["litellm_"],
    tables: &[FAMILIES],
    models: &["requested_model", "model_group", "model"],
    ranks: &[],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    counter("input_tokens_metric", CounterRole::PromptTokens),
    counter("output_tokens_metric", CounterRole::GenerationTokens),
    // As the providers behind it count them.
    counter("input_tokens_metric", CounterRole::PrefixQueries),
    counter("input_cached_tokens_metric", CounterRole::PrefixHits),
    finished("proxy_total_requests_metric", Reason::Label("status_code")),
    histogram("llm_api_time_to_first_token_metric", HistogramRole::Ttft),
    histogram("request_total_latency_metric", HistogramRole::E2e),
    // From the arrival at the proxy until it begins to work on it.
    histogram("request_queue_time_seconds", HistogramRole::Queue),
    histogram("deployment_latency_per_output_token", HistogramRole::Tpot),
];
