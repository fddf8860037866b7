//! A canary for LLM inference servers.
//!
//! It sends small, known requests all day long, times every token, looks at the server at the
//! same moment, and hands what it saw to Prometheus and OpenTelemetry. The map of the rooms
//! and what may import what is in `docs/architecture.md`; `tests/it/tidy.rs` holds the borders.

pub mod aggregate;
pub mod analysis;
pub mod app;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod control;
pub mod export;
pub mod load;
pub mod measurement;
pub mod report;
pub mod scrape;
pub mod simulator;
pub mod telemetry;
pub mod transport;
pub mod web;
