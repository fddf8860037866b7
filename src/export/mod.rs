//! Hands results to other programs: Prometheus, OTLP, files.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `export` | `Exporter` | Prometheus, OTLP, files, Alertmanager, webhooks | compute a statistic |

pub mod catalog;
pub mod prometheus;
