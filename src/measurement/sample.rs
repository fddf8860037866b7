//! What a server said of itself at one moment, in canonical roles.

use std::time::Duration;

use serde::Serialize;

use crate::clock::MonoTime;

/// The canonical roles read from one metrics page. A family that is not on the page is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerState {
    /// Requests in the executing batch.
    pub running: Option<f64>,
    /// Requests queued before execution.
    pub waiting: Option<f64>,
    /// Occupancy of the KV cache, 0 to 1.
    pub kv_usage: Option<f64>,
}

/// One good scrape of one target's metrics page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When the last byte of the page was read.
    pub at: MonoTime,
    /// What it said.
    pub state: ServerState,
}

/// A sample as seen from one instant of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateAt {
    /// Requests in the executing batch.
    pub running: Option<f64>,
    /// Requests queued before execution.
    pub waiting: Option<f64>,
    /// Occupancy of the KV cache, 0 to 1.
    pub kv_usage: Option<f64>,
    /// The instant minus the end of the page's read, milliseconds.
    pub age_ms: f64,
}

impl StateAt {
    /// `sample` as seen from `instant`, which is not before it.
    #[must_use]
    pub fn new(sample: &Sample, instant: MonoTime) -> Self {
        let age: Duration = instant.since(sample.at);
        Self {
            running: sample.state.running,
            waiting: sample.state.waiting,
            kv_usage: sample.state.kv_usage,
            age_ms: age.as_secs_f64() * 1e3,
        }
    }
}

/// A record together with what was known of its server when it was due.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The record.
    pub record: super::RequestRecord,
    /// The last good sample at or before the intended instant; `None` if there was none, or
    /// it was older than three scrape intervals.
    pub at_intended: Option<StateAt>,
    /// The GPUs of its target at three instants; `None` if none are read.
    pub gpu: Option<Box<super::GpuStates>>,
}
