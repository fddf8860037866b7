//! What is not plausible about the pages of a window.

use std::time::Duration;

use super::counts::JITTER;
use super::{CounterWindow, HistogramWindow, OwnTraffic};
use crate::measurement::server::{CounterRole, Engine, GaugeRole, HistogramRole, ServerTotals};
use crate::measurement::{Sample, ServerState};

/// One thing that is not plausible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerMark {
    /// Requests run or wait, and nothing on the page moved for 15 s: the gauges are
    /// left over from before, or the engine hangs. Our own requests say which.
    FrozenGauges,
    /// Counters fall and come back: the address is answered by several processes in turn, behind
    /// a load balancer or for want of a multiprocess directory. Rates are refused.
    SawTooth,
    /// Our own requests were answered, and no counter moved: the exporter is broken, or the page
    /// is that of another server or an old copy.
    CountersStill,
    /// The server counted exactly twice our own requests: it is counted by two scrapers whose
    /// series were added up, or requests ask for several sequences each.
    DoubledCounts,
    /// A latency histogram took in values and no time: its clock stands still.
    ZeroTimes,
    /// The gauge of the prefix cache fell to zero and came back: each batch overwrites it. The
    /// counters are right, where there are any.
    HitRateOverwritten,
}

impl ServerMark {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::FrozenGauges,
        Self::SawTooth,
        Self::CountersStill,
        Self::DoubledCounts,
        Self::ZeroTimes,
        Self::HitRateOverwritten,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FrozenGauges => "frozen_gauges",
            Self::SawTooth => "saw_tooth",
            Self::CountersStill => "counters_still",
            Self::DoubledCounts => "doubled_counts",
            Self::ZeroTimes => "zero_times",
            Self::HitRateOverwritten => "hit_rate_overwritten",
        }
    }

    /// What it means and what to do, in one sentence.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::FrozenGauges => {
                "nothing on the metrics page moves although requests are said to run: its gauges are stale, or the engine hangs"
            }
            Self::SawTooth => {
                "the counters fall and come back: read each replica's own page, or give the server's workers one PROMETHEUS_MULTIPROC_DIR"
            }
            Self::CountersStill => {
                "our requests are answered and the server's counters stand still: its exporter is broken, or the page is another server's"
            }
            Self::DoubledCounts => {
                "the server counts exactly twice our requests: look for a page scraped twice, or requests with n above 1"
            }
            Self::ZeroTimes => {
                "a latency histogram of the server holds values of no time: its quantiles say nothing"
            }
            Self::HitRateOverwritten => {
                "the prefix-cache gauge is overwritten by each batch: compare counters instead"
            }
        }
    }
}

/// A set of marks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerMarks(u16);

impl ServerMarks {
    /// Adds `mark`.
    pub const fn add(&mut self, mark: ServerMark) {
        self.0 |= 1 << mark as u16;
    }

    /// Whether `mark` is one of them.
    #[must_use]
    pub const fn has(self, mark: ServerMark) -> bool {
        self.0 & 1 << mark as u16 != 0
    }

    /// The marks, in their order.
    pub fn iter(self) -> impl Iterator<Item = ServerMark> {
        ServerMark::ALL
            .into_iter()
            .filter(move |mark| self.has(*mark))
    }
}

/// A page that does not move for this time, while requests are said to run, is frozen: well above
/// the longest step of an engine.
pub(super) const FROZEN_AFTER: Duration = Duration::from_secs(15);
/// Own requests that must have been answered before counters that stand still say something.
const ENOUGH_OWN: u64 = 3;
/// Own requests needed before twice their number is no coincidence.
const ENOUGH_TO_DOUBLE: u64 = 10;
/// Pages that are looked at for counters that fall and come back.
const TEETH: usize = 12;

/// Whether the newest of `pages` says what those of [`FROZEN_AFTER`] before said, while requests
/// run or wait.
pub(super) fn frozen(pages: &[&Sample]) -> bool {
    let Some((last, before)) = pages.split_last() else {
        return false;
    };
    let busy = |state: &ServerState| {
        let some = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
        some(state.running) || some(state.waiting)
    };
    // Only what moves with every step of the engine can be said to stand still.
    let moves = last.state.kv_usage.is_some() && last.page.engine != Some(Engine::Tgi);
    let same =
        |sample: &&&Sample| sample.state == last.state && sample.page.totals == last.page.totals;
    let mut alike = before.iter().rev().take_while(same);
    let second = alike.next();
    let oldest = alike.last();
    busy(&last.state)
        && moves
        && second
            .and(oldest)
            .is_some_and(|first| last.at.since(first.at) >= FROZEN_AFTER)
}

/// Whether counters of `pages` fall and come back.
pub(super) fn saw_tooth(pages: &[&Sample]) -> bool {
    let pages = &pages[pages.len().saturating_sub(TEETH)..];
    let totals = || pages.iter().map(|sample| &sample.page.totals);
    let starts: Vec<f64> = totals().filter_map(|totals| totals.process_start).collect();
    if starts.windows(2).any(|two| two[1] < two[0] - JITTER) {
        // A process never began earlier than it did before.
        return true;
    }
    let teeth = |read: &dyn Fn(&ServerTotals) -> Option<f64>| {
        let values: Vec<f64> = totals().filter_map(read).collect();
        falls(values.iter().copied()) >= 2 && comes_back(&values)
    };
    CounterRole::ALL
        .iter()
        .any(|role| teeth(&|totals| totals.counter(*role)))
        || HistogramRole::ALL
            .iter()
            .any(|role| teeth(&|totals| Some(totals.histogram(*role)?.count)))
}

fn falls(values: impl Iterator<Item = f64>) -> usize {
    let mut last = f64::NEG_INFINITY;
    values
        .filter(|value| *value < std::mem::replace(&mut last, *value))
        .count()
}

/// Whether a value that fell was reached again at a stroke.
fn comes_back(values: &[f64]) -> bool {
    let mut highest = f64::NEG_INFINITY;
    values.windows(2).any(|pair| {
        highest = highest.max(pair[0]);
        pair[0] < highest && pair[1] >= highest
    })
}

/// Whether requests of ours were answered and no counter moved.
pub(super) fn stands_still(
    counters: &[Option<CounterWindow>],
    histograms: &[Option<HistogramWindow>],
    own: OwnTraffic,
) -> bool {
    let mut deltas = counters
        .iter()
        .flatten()
        .map(|counter| counter.delta)
        .chain(histograms.iter().flatten().map(|taken| taken.count))
        .peekable();
    own.ok >= ENOUGH_OWN && deltas.peek().is_some() && deltas.all(|delta| delta <= 0.0)
}

/// Whether the server counted twice the requests of ours, of which `surely` lay between the pages
/// and `at_most` may have.
pub(super) fn doubled(requests: f64, (surely, at_most): (u64, u64)) -> bool {
    let within = |n: u64| requests - 2.0 * as_float(n);
    surely >= ENOUGH_TO_DOUBLE
        && at_most - surely <= surely / 10
        && within(surely) >= 0.0
        && within(at_most) <= 0.0
}

#[expect(
    clippy::cast_precision_loss,
    reason = "requests of one window are far below 2^53"
)]
pub(super) const fn as_float(count: u64) -> f64 {
    count as f64
}

/// Whether a latency histogram took in values of no time.
pub(super) fn zero_times(histograms: &[Option<HistogramWindow>]) -> bool {
    let of = |role: HistogramRole| histograms[role as usize].as_ref();
    [HistogramRole::Ttft, HistogramRole::Itl, HistogramRole::E2e]
        .into_iter()
        .filter_map(of)
        .any(|taken| taken.count >= 3.0 && taken.sum <= 0.0)
}

/// Whether the gauge of the prefix cache fell to zero and came back.
pub(super) fn overwritten(pages: &[&Sample]) -> bool {
    let rates: Vec<f64> = pages
        .iter()
        .filter_map(|sample| sample.state.get(GaugeRole::PrefixHitRate))
        .collect();
    rates
        .windows(3)
        .any(|three| three[0] > 0.0 && three[1] <= 0.0 && three[2] > 0.0)
}
