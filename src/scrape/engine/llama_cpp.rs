//! llama.cpp's server. No labels, no histograms; counters move when requests end. Its gauges
//! `…_tokens_seconds` are tokens per second. Since 2025 it says nothing of its KV cache.

use super::{Dialect, Family, counter, gauge};
use crate::measurement::server::{CounterRole, Engine, GaugeRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::LlamaCpp,
    // The latter two of forks.
    prefixes: &["llamacpp:", "llamacpp_", "llama_"],
    marks: &[
        "llamacpp:",
        "llamacpp_",
        "llama_requests_processing",
        "llama_tokens_predicted",
    ],
    tables: &[FAMILIES],
    models: &["model"],
    ranks: &[],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    gauge("requests_processing", GaugeRole::Running),
    gauge("requests_deferred", GaugeRole::Waiting),
    // Before 2025.
    gauge("kv_cache_usage_ratio", GaugeRole::KvUsage),
    gauge("kv_cache_tokens", GaugeRole::KvTokensUsed),
    counter("prompt_tokens", CounterRole::PromptTokens),
    counter("tokens_predicted", CounterRole::GenerationTokens),
    counter("prompt_seconds", CounterRole::PrefillTime),
    counter("tokens_predicted_seconds", CounterRole::DecodeTime),
    // Tokens that came from the cache are not among the prompt tokens.
    counter("prompt_tokens_cached", CounterRole::PrefixHits),
    counter("prompt_tokens_cached", CounterRole::PrefixQueries),
    counter("prompt_tokens", CounterRole::PrefixQueries),
    counter("spec_decode_num_draft_tokens", CounterRole::DraftTokens),
    counter(
        "spec_decode_num_accepted_tokens",
        CounterRole::AcceptedTokens,
    ),
];
