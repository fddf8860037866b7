//! Spans over OTLP.
