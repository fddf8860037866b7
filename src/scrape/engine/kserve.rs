//! `KServe`'s Python server. Its vLLM runtime publishes vLLM's names on the same page, and those
//! count.

use super::{Dialect, Family, Role, histogram};
use crate::measurement::server::{CounterRole, Engine, HistogramRole};

pub(super) static DIALECT: Dialect = Dialect {
    engine: Engine::KServe,
    prefixes: &["request_"],
    marks: &[
        "request_predict_seconds",
        "request_preprocess_seconds",
        "request_explain_seconds",
        "request_postprocess_seconds",
    ],
    tables: &[FAMILIES],
    models: &["model_name"],
    ranks: &[],
    copies: &[],
};

const FAMILIES: &[Family] = &[
    histogram("predict_seconds", HistogramRole::E2e),
    Family::new(
        "predict_seconds_count",
        Role::Counter(CounterRole::Requests),
    ),
];
