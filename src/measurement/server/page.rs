//! All that one metrics page said, in canonical roles.

use super::{CounterRole, Engine, HistogramRole};
use crate::measurement::ServerState;

/// What one page said beside its gauges.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPage {
    /// Whose page it is.
    pub engine: Option<Engine>,
    /// What was counted since the server's start.
    pub totals: ServerTotals,
    /// The gauges of each engine, replica or data-parallel rank, where there are several.
    pub ranks: Vec<Rank>,
    /// What does not change while the server runs.
    pub info: ServerInfo,
    /// Lines that were no samples.
    pub bad_lines: u64,
}

/// One of several engines behind one page.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// Its label, as in `0` or `m/0`.
    pub name: Box<str>,
    /// Its gauges.
    pub state: ServerState,
}

/// What was counted since a server's start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerTotals {
    counters: [Option<f64>; CounterRole::COUNT],
    histograms: [Option<ServerHistogram>; HistogramRole::COUNT],
    /// Requests that ended, by the server's own word for why, ascending.
    pub finished: Vec<(Box<str>, f64)>,
    /// When the process started, in seconds since the Unix epoch.
    pub process_start: Option<f64>,
}

impl ServerTotals {
    /// One counter; `None` if the page does not have it.
    #[must_use]
    pub const fn counter(&self, role: CounterRole) -> Option<f64> {
        self.counters[role as usize]
    }

    /// Sets one counter.
    pub const fn set_counter(&mut self, role: CounterRole, value: Option<f64>) {
        self.counters[role as usize] = value;
    }

    /// One histogram; `None` if the page does not have it.
    #[must_use]
    pub const fn histogram(&self, role: HistogramRole) -> Option<&ServerHistogram> {
        self.histograms[role as usize].as_ref()
    }

    /// Sets one histogram.
    pub fn set_histogram(&mut self, role: HistogramRole, value: Option<ServerHistogram>) {
        self.histograms[role as usize] = value;
    }
}

/// A histogram since a server's start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerHistogram {
    /// Upper bounds in seconds, ascending and finite; none, where there is only a sum.
    pub bounds: Box<[f64]>,
    /// Values at or below each bound.
    pub below: Box<[f64]>,
    /// All values.
    pub count: f64,
    /// Their sum in seconds.
    pub sum: f64,
}

/// What a page says that does not change while the server runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Names of the models in the labels, ascending.
    pub models: Vec<Box<str>>,
    /// Labels of the `*_info` families, ascending by name.
    pub flags: Vec<(Box<str>, Box<str>)>,
}
