//! What a server's own processes were at one moment, where they are on our machine. What the
//! kernel does not say is `None`.

/// The processes of one server. Seconds are sums since they or their control group started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessState {
    /// Number of the one that listens.
    pub pid: u32,
    /// How many there are.
    pub processes: u32,
    /// When the one that listens was started, seconds since the Unix epoch.
    pub started: Option<f64>,
    /// Seconds of processors that they used.
    pub cpu: Option<f64>,
    /// Bytes of memory that they hold; what several share counts for each.
    pub memory: Option<f64>,
    /// Their threads.
    pub threads: Option<f64>,
    /// Memory nodes with processors on which the one that is least bound may run.
    pub cpu_nodes: Option<f64>,
    /// Such nodes from which the one that is least bound may have memory.
    pub memory_nodes: Option<f64>,
    /// Their control group.
    pub group: ProcessGroup,
}

/// The control group of a server's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessGroup {
    /// Processors that it may use; `None`: all.
    pub cpu_limit: Option<f64>,
    /// Periods in which its limit was enforced.
    pub periods: Option<f64>,
    /// Those in which it was held back.
    pub throttled_periods: Option<f64>,
    /// Seconds for which it was held back.
    pub throttled: Option<f64>,
    /// Bytes of memory in use.
    pub memory: Option<f64>,
    /// Bytes that it may use; `None`: all.
    pub memory_limit: Option<f64>,
    /// Processes of it that were killed for want of memory.
    pub oom_kills: Option<f64>,
    /// Seconds in which some task of it waited for a processor.
    pub cpu_waiting: Option<f64>,
    /// Seconds in which some task of it waited for memory.
    pub memory_waiting: Option<f64>,
}
