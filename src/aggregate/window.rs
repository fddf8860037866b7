//! Spans of time, and the records whose *intended* time lies in each.
//!
//! A window is open until all its arrivals have ended, or for two request limits and five
//! seconds after its end, whichever is first. A record that comes later is not added: it marks
//! its window incomplete, and is counted. Windows without a record do not exist. Open and
//! closed windows are bounded, their storage is allocated at the start and used again.

use std::collections::VecDeque;
use std::time::Duration;

use super::histogram::Histogram;
use super::measure::{Measure, Reading};
use super::slo::{SloCounts, SloTotals};
use crate::clock::MonoTime;
use crate::measurement::{Observed, Outcome, Slo};

/// Closed windows kept of each length.
pub const KEPT: usize = 90;

/// Most windows open at once; the oldest is closed when one more is needed. Covers a total
/// limit of 10 minutes in windows of 10 s twice over.
const MAX_OPEN: usize = 256;

/// Patience after the end of a window, beyond twice the total limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Buckets each histogram of a window has room for at once; a busier one grows to what it
/// needs and keeps that.
const ROOM: usize = 16;

/// What happened to the arrivals of one span of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    start: MonoTime,
    incomplete: bool,
    outcomes: [u64; Outcome::ALL.len()],
    failures: u64,
    lagged: u64,
    slo: SloCounts,
    ttft: Histogram,
    itl: Histogram,
    response_time_or_failure: Histogram,
}

impl Window {
    /// An empty window from `start` on.
    #[must_use]
    pub fn empty(start: MonoTime) -> Self {
        Self {
            start,
            incomplete: false,
            outcomes: [0; Outcome::ALL.len()],
            failures: 0,
            lagged: 0,
            slo: SloCounts::default(),
            ttft: Histogram::with_capacity(ROOM),
            itl: Histogram::with_capacity(ROOM),
            response_time_or_failure: Histogram::with_capacity(ROOM),
        }
    }

    fn reuse(&mut self, start: MonoTime) {
        self.start = start;
        self.incomplete = false;
        self.outcomes = [0; Outcome::ALL.len()];
        self.failures = 0;
        self.lagged = 0;
        self.slo = SloCounts::default();
        self.ttft.clear();
        self.itl.clear();
        self.response_time_or_failure.clear();
    }

    fn observe(&mut self, observed: &Observed, slo: &Slo) {
        let record = &observed.record;
        self.slo.observe(slo, record);
        self.outcomes[position(record.outcome)] += 1;
        self.failures += u64::from(record.is_failure());
        self.lagged += u64::from(record.is_lagged());
        for (measure, histogram) in [
            (Measure::Ttft, &mut self.ttft),
            (Measure::Itl, &mut self.itl),
            (
                Measure::ResponseTimeOrFailure,
                &mut self.response_time_or_failure,
            ),
        ] {
            match measure.read(record) {
                Reading::Absent => {}
                Reading::Value(value) => histogram.record(value),
                Reading::Never => histogram.record_infinite(),
            }
        }
    }

    /// Adds all that `other` holds; it is incomplete if one of the two is.
    pub fn merge(&mut self, other: &Self) {
        self.incomplete |= other.incomplete;
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        self.failures += other.failures;
        self.lagged += other.lagged;
        self.slo.merge(&other.slo);
        self.ttft.merge(&other.ttft);
        self.itl.merge(&other.itl);
        self.response_time_or_failure
            .merge(&other.response_time_or_failure);
    }

    /// Where it begins; records intended at this instant are in it.
    #[must_use]
    pub const fn start(&self) -> MonoTime {
        self.start
    }

    /// Whether a record came after it was closed.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Records with `outcome`.
    #[must_use]
    pub const fn by_outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[position(outcome)]
    }

    /// All records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Records that count for or against the server: `ok` and failures.
    #[must_use]
    pub const fn counted(&self) -> u64 {
        self.by_outcome(Outcome::Ok) + self.failures
    }

    /// Records that count as +∞ in the failure-aware histograms.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }

    /// Failures as a share of the records that count; `None` if none does.
    #[must_use]
    pub fn failure_share(&self) -> Option<f64> {
        let counted = self.counted();
        (counted > 0).then(|| super::rank::count(self.failures) / super::rank::count(counted))
    }

    /// Records whose own lag was too large for a verdict.
    #[must_use]
    pub const fn lagged(&self) -> u64 {
        self.lagged
    }

    /// Time to first token of `ok` records, seconds.
    #[must_use]
    pub const fn ttft(&self) -> &Histogram {
        &self.ttft
    }

    /// Mean time between tokens of `ok` records, seconds.
    #[must_use]
    pub const fn itl(&self) -> &Histogram {
        &self.itl
    }

    /// Response time, a failure being +∞, seconds.
    #[must_use]
    pub const fn response_time_or_failure(&self) -> &Histogram {
        &self.response_time_or_failure
    }
}

/// The windows of one length of one stream.
#[derive(Debug, Clone)]
pub struct Windows {
    span: Duration,
    slo: Slo,
    deadline: Duration,
    /// Ascending by start, like `closed`.
    open: VecDeque<Window>,
    closed: VecDeque<Window>,
    /// Storage that is not in use.
    spare: Vec<Window>,
    /// Every window that ends at or before this is closed.
    closed_until: MonoTime,
    late: u64,
    incomplete: u64,
}

impl Windows {
    /// No windows yet, each `span` long, for requests that last at most `total` and are held to
    /// `slo`.
    #[must_use]
    pub fn new(span: Duration, total: Duration, slo: Slo) -> Self {
        Self {
            span,
            slo,
            deadline: total.saturating_mul(2).saturating_add(PATIENCE),
            open: VecDeque::with_capacity(4),
            closed: VecDeque::with_capacity(KEPT + 1),
            spare: (0..=KEPT).map(|_| Window::empty(MonoTime::ZERO)).collect(),
            closed_until: MonoTime::ZERO,
            late: 0,
            incomplete: 0,
        }
    }

    /// How long each window is.
    #[must_use]
    pub const fn span(&self) -> Duration {
        self.span
    }

    /// Adds one record to the window of its intended time.
    pub fn observe(&mut self, observed: &Observed) {
        let start = self.start_of(observed.record.timeline.intended);
        if start + self.span <= self.closed_until {
            self.mark_incomplete(start);
            return;
        }
        let at = match self.open.binary_search_by_key(&start, Window::start) {
            Ok(at) => at,
            Err(_) if self.open.len() == MAX_OPEN => {
                self.close_oldest();
                return self.observe(observed);
            }
            Err(at) => {
                let window = self.take(start);
                self.open.insert(at, window);
                at
            }
        };
        self.open[at].observe(observed, &self.slo);
    }

    /// The same for a record of which it was not known before that it counts: a window that was
    /// closed meanwhile takes it too, and says that it was not complete.
    pub fn observe_late(&mut self, observed: &Observed) {
        let start = self.start_of(observed.record.timeline.intended);
        if start + self.span > self.closed_until {
            self.observe(observed);
            return;
        }
        self.mark_incomplete(start);
        if let Ok(at) = self.closed.binary_search_by_key(&start, Window::start) {
            self.closed[at].observe(observed, &self.slo);
        }
    }

    /// Closes what can be closed: every arrival intended before `settled` has been observed,
    /// and it is `now`.
    pub fn settle(&mut self, settled: MonoTime, now: MonoTime) {
        let until = settled.max(now.minus(self.deadline));
        while let Some(oldest) = self.open.front()
            && oldest.start + self.span <= until
        {
            self.close_oldest();
        }
        let whole = self.start_of(until);
        self.closed_until = self.closed_until.max(whole);
    }

    fn close_oldest(&mut self) {
        if let Some(window) = self.open.pop_front() {
            self.closed_until = self.closed_until.max(window.start + self.span);
            self.keep(window);
        }
    }

    /// Puts `window` among the closed ones; the oldest of them makes room.
    fn keep(&mut self, window: Window) {
        let at = self
            .closed
            .partition_point(|kept| kept.start < window.start);
        self.closed.insert(at, window);
        if self.closed.len() > KEPT
            && let Some(oldest) = self.closed.pop_front()
            && self.spare.len() <= KEPT
        {
            self.spare.push(oldest);
        }
    }

    /// An empty window from `start` on, in storage that was used before if there is any.
    fn take(&mut self, start: MonoTime) -> Window {
        match self.spare.pop() {
            Some(mut window) => {
                window.reuse(start);
                window
            }
            None => Window::empty(start),
        }
    }

    fn mark_incomplete(&mut self, start: MonoTime) {
        self.late += 1;
        match self.closed.binary_search_by_key(&start, Window::start) {
            Ok(at) => {
                if !self.closed[at].incomplete {
                    self.closed[at].incomplete = true;
                    self.incomplete += 1;
                }
            }
            // Older than all that is kept: it may have been counted before.
            Err(0) if self.closed.len() == KEPT => {}
            // Closed without a record: the record that came late is all it ever had.
            Err(_) => {
                let mut window = self.take(start);
                window.incomplete = true;
                self.incomplete += 1;
                self.keep(window);
            }
        }
    }

    fn start_of(&self, at: MonoTime) -> MonoTime {
        let span = u64::try_from(self.span.as_nanos())
            .unwrap_or(u64::MAX)
            .max(1);
        MonoTime::from_nanos(at.as_nanos() / span * span)
    }

    /// The closed windows that are kept, oldest first.
    #[must_use]
    pub fn closed(&self) -> impl DoubleEndedIterator<Item = &Window> {
        self.closed.iter()
    }

    /// How many windows are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Every window that ends at or before this is closed.
    #[must_use]
    pub const fn closed_until(&self) -> MonoTime {
        self.closed_until
    }

    /// Records that came after their window was closed.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Windows that a late record marked incomplete, also such as are no longer kept.
    #[must_use]
    pub const fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// The closed windows of the last `span` before the last settled instant, as one.
    #[must_use]
    pub fn recent(&self, span: Duration) -> Window {
        let from = self.closed_until.minus(span);
        let mut sum = Window::empty(from);
        for window in self.closed.iter().filter(|window| window.start >= from) {
            sum.merge(window);
        }
        sum
    }

    /// How many were good in the closed windows of the last `span`.
    #[must_use]
    pub fn recent_slo(&self, span: Duration) -> SloTotals {
        let from = self.closed_until.minus(span);
        let mut counts = SloCounts::default();
        for window in self.closed.iter().filter(|window| window.start >= from) {
            counts.merge(&window.slo);
        }
        SloTotals::of(self.slo, counts)
    }
}

/// Where `outcome` stands in [`Outcome::ALL`], which is in the order of declaration.
const fn position(outcome: Outcome) -> usize {
    outcome as usize
}
