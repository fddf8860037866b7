//! What a server's host was at one moment, from its node exporter or its kernel. What it does not say is `None`.

use super::ProcessState;
use crate::clock::MonoTime;

/// One host. Seconds are sums since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NodeState {
    /// Processors.
    pub cpus: Option<f64>,
    /// Seconds of all processors in which they worked.
    pub cpu_busy: Option<f64>,
    /// Seconds in which some task waited for a processor.
    pub cpu_waiting: Option<f64>,
    /// Seconds in which some task waited for memory.
    pub memory_waiting: Option<f64>,
    /// Tasks that ran or wanted to, mean of a minute.
    pub load: Option<f64>,
    /// Bytes of memory.
    pub memory_total: Option<f64>,
    /// Bytes that could be had without swapping.
    pub memory_available: Option<f64>,
    /// When it started, seconds since the Unix epoch.
    pub booted: Option<f64>,
    /// Where memory came from, where there is more than one memory node.
    pub memory_places: Option<MemoryPlaces>,
}

/// Pages of memory that were given out since the machine started, by where they came from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MemoryPlaces {
    /// From the node that they were wanted from.
    pub hit: f64,
    /// From another.
    pub miss: f64,
    /// From the node on which whoever asked ran.
    pub local: f64,
    /// From another.
    pub other: f64,
}

/// One good reading of the host of one target.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSample {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When the last byte of the page was read.
    pub at: MonoTime,
    /// What it said.
    pub state: NodeState,
    /// The server's own processes, where they are on our machine and were found.
    pub process: Option<Box<ProcessState>>,
}
