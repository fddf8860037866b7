//! Our own health and logs.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `telemetry` | `SelfMetrics` | our own health and logs | describe the server under test |

mod metrics;

pub use metrics::{ExportCounters, SelfMetrics};
