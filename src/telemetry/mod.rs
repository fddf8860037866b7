//! Our own health and logs.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `telemetry` | `SelfMetrics` | our own health and logs | describe the server under test |

mod host;
mod log;
mod metrics;

pub use host::{
    ControlGroups, CpuTimes, GroupState, HostFiles, HostState, Pressure, Pressures, Traffic, keyed,
    small_text,
};
pub use log::init_log;
pub use metrics::{ExportAccount, ExportCounters, SelfMetrics};
