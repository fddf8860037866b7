//! Spans over OTLP/HTTP with protobuf.
//!
//! The OTLP crate encodes and posts; the queue, the batches, the retries and the account are
//! ours, since its own would lose spans without telling.

mod answer;
mod exporter;
mod hook;
mod retry;
mod span;

pub use exporter::{OtlpError, OtlpSetup, OtlpSpans};
pub use span::to_span;
