//! The window itself: what was known of one server between two instants.

use std::time::Duration;

use super::{CounterWindow, GaugeWindow, HistogramWindow, Outside, ServerMark, ServerMarks};
use crate::clock::MonoTime;
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole, ServerInfo};

/// What one server said of itself between two instants. What it does not publish is `None`;
/// what cannot be believed is `None` too, and a mark says why.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerWindow {
    /// Its beginning.
    pub from: MonoTime,
    /// Its end.
    pub to: MonoTime,
    /// Pages read within it.
    pub pages: u32,
    /// Time from the newest page at or before the end to the end; `None` without a page.
    pub age: Option<Duration>,
    /// Whose pages they were.
    pub engine: Option<Engine>,
    /// What the newest page said of models and settings.
    pub info: ServerInfo,
    /// Times that the process began anew, as far as the pages show it.
    pub restarts: u32,
    /// Requests that ended within it, by the server's own word for why.
    pub finished: Vec<(Box<str>, CounterWindow)>,
    /// Our own requests to this server between the pages of the window.
    pub own: OwnTraffic,
    /// How much of our time to first token arose outside the server.
    pub outside: Option<Outside>,
    /// What is not plausible about the pages.
    pub marks: ServerMarks,
    gauges: [Option<GaugeWindow>; GaugeRole::COUNT],
    counters: [Option<CounterWindow>; CounterRole::COUNT],
    histograms: [Option<HistogramWindow>; HistogramRole::COUNT],
}

/// Our own requests whose whole life lay between the first and the last page of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTraffic {
    /// Requests that were answered.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
}

impl ServerWindow {
    /// A window of which nothing is known.
    #[must_use]
    pub fn unknown(from: MonoTime, to: MonoTime) -> Self {
        Self {
            from,
            to,
            pages: 0,
            age: None,
            engine: None,
            info: ServerInfo::default(),
            restarts: 0,
            finished: Vec::new(),
            own: OwnTraffic::default(),
            outside: None,
            marks: ServerMarks::default(),
            gauges: [None; GaugeRole::COUNT],
            counters: [None; CounterRole::COUNT],
            histograms: [const { None }; HistogramRole::COUNT],
        }
    }

    /// One gauge, weighted by time.
    #[must_use]
    pub const fn gauge(&self, role: GaugeRole) -> Option<GaugeWindow> {
        self.gauges[role as usize]
    }

    /// Sets one gauge.
    pub const fn set_gauge(&mut self, role: GaugeRole, value: Option<GaugeWindow>) {
        self.gauges[role as usize] = value;
    }

    /// The growth of one counter.
    #[must_use]
    pub const fn counter(&self, role: CounterRole) -> Option<CounterWindow> {
        self.counters[role as usize]
    }

    /// Sets the growth of one counter.
    pub const fn set_counter(&mut self, role: CounterRole, value: Option<CounterWindow>) {
        self.counters[role as usize] = value;
    }

    /// What one histogram took in.
    #[must_use]
    pub const fn histogram(&self, role: HistogramRole) -> Option<&HistogramWindow> {
        self.histograms[role as usize].as_ref()
    }

    /// Sets what one histogram took in.
    pub fn set_histogram(&mut self, role: HistogramRole, value: Option<HistogramWindow>) {
        self.histograms[role as usize] = value;
    }

    /// Whether `mark` holds.
    #[must_use]
    pub const fn has(&self, mark: ServerMark) -> bool {
        self.marks.has(mark)
    }

    /// Share of looked-up prompt tokens that were in the prefix cache: from counters where there
    /// are any, since gauges of it are overwritten by whatever batch came last.
    #[must_use]
    pub fn prefix_hit_ratio(&self) -> Option<f64> {
        let counted = self
            .counter(CounterRole::PrefixQueries)
            .zip(self.counter(CounterRole::PrefixHits));
        match counted {
            Some((queries, hits)) => {
                (queries.delta > 0.0).then(|| (hits.delta / queries.delta).min(1.0))
            }
            None => Some(self.gauge(GaugeRole::PrefixHitRate)?.mean),
        }
    }
}
