//! Where the state of a target's GPUs comes from, and which they are.

use std::time::Duration;

/// The GPUs of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuConfig {
    /// Where their state comes from.
    pub source: GpuSource,
    /// Which of the GPUs there.
    pub select: GpuSelect,
    /// Interval of reading it.
    pub every: Duration,
}

/// Where the state of GPUs comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuSource {
    /// The page of an exporter, NVIDIA's or AMD's, at this URL.
    Exporter(String),
    /// The driver of this machine.
    Nvml,
}

/// Which GPUs serve a target: those that are all of this. All, if nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuSelect {
    /// Their pod; a `*` at the end stands for anything.
    pub pod: Option<String>,
    /// The pod's namespace; likewise.
    pub namespace: Option<String>,
    /// Their host, as the exporter calls it; likewise.
    pub host: Option<String>,
    /// Their numbers on that host.
    pub index: Vec<u32>,
}
