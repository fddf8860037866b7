//! Text Generation Inference. No model label, no KV cache, no time to first token; counters end
//! without `_total`, and durations are seconds that do not say so.

use super::{Dialect, Family, Reason, Role, counter, finished, gauge, histogram};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::Tgi,
    prefixes: &["tgi_"],
    marks: &["tgi_"],
    tables: &[FAMILIES],
    models: &[],
    ranks: &[],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    gauge("batch_current_size", GaugeRole::Running),
    gauge("queue_size", GaugeRole::Waiting),
    // The budget of tokens of the batch: the nearest to a KV cache that it publishes.
    gauge("batch_current_max_tokens", GaugeRole::KvTokensUsed),
    gauge("batch_max_total_tokens", GaugeRole::KvTokens),
    // Sums of histograms of lengths.
    counter("request_input_length_sum", CounterRole::PromptTokens),
    counter(
        "request_generated_tokens_sum",
        CounterRole::GenerationTokens,
    ),
    finished("request_success", Reason::Is("success")),
    finished("request_failure", Reason::Label("err")),
    histogram("request_duration", HistogramRole::E2e),
    histogram("request_queue_duration", HistogramRole::Queue),
    histogram("request_mean_time_per_token_duration", HistogramRole::Tpot),
    Family::new(
        "batch_inference_duration",
        Role::Histogram(HistogramRole::Prefill),
    )
    .only("method", "prefill"),
];
