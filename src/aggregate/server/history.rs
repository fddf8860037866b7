//! The last pages of one server and the last of our requests to it; windows are cut from them.

use std::collections::VecDeque;
use std::time::Duration;

use super::marks::{self, ServerMark};
use super::outside::{FirstToken, outside};
use super::window::{OwnTraffic, ServerWindow};
use super::{CounterWindow, HistogramWindow, buckets, counts, gauges};
use crate::clock::MonoTime;
use crate::measurement::server::{CounterRole, GaugeRole, HistogramRole};
use crate::measurement::{Outcome, RequestRecord, Sample};

/// Pages are kept for this time …
const KEPT: Duration = Duration::from_mins(5);
/// … at least so many, and at most so many: a page is a few kilobytes.
const LEAST_PAGES: u128 = 16;
const MOST_PAGES: u128 = 1_024;
/// Own requests kept.
const MOST_OWN: usize = 4_096;
/// A page says something about this many intervals after it.
const INTERVALS: u32 = 3;

/// What is kept of one server.
#[derive(Debug, Clone)]
pub struct ServerHistory {
    pages: VecDeque<Sample>,
    capacity: usize,
    max_age: Duration,
    own: VecDeque<Own>,
}

/// One of our requests.
#[derive(Debug, Clone, Copy)]
struct Own {
    start: MonoTime,
    end: MonoTime,
    is_ok: bool,
    first_token: Option<FirstToken>,
}

impl ServerHistory {
    /// Nothing yet of a server whose page is read once in `every`.
    #[must_use]
    pub fn new(every: Duration) -> Self {
        let pages = KEPT.as_nanos() / every.as_nanos().max(1);
        let capacity = pages.clamp(LEAST_PAGES, MOST_PAGES);
        Self {
            pages: VecDeque::new(),
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            max_age: every * INTERVALS,
            own: VecDeque::new(),
        }
    }

    /// Adds the newest page. One that is older than the newest is left out.
    pub fn push(&mut self, sample: Sample) {
        if self.pages.back().is_some_and(|last| last.at >= sample.at) {
            return;
        }
        if self.pages.len() == self.capacity {
            self.pages.pop_front();
        }
        self.pages.push_back(sample);
    }

    /// Adds one of our requests that has ended.
    pub fn own(&mut self, record: &RequestRecord) {
        let time = &record.timeline;
        let is_ok = record.outcome == Outcome::Ok;
        let (Some(start), Some(end)) = (time.start, time.end) else {
            return;
        };
        if matches!(record.outcome, Outcome::Refused | Outcome::Cancelled) {
            return;
        }
        if self.own.len() == MOST_OWN {
            self.own.pop_front();
        }
        // Of an answer that was held back, when its first token came is what is asked.
        let streams = is_ok && record.stream.streaming;
        let first_token = time
            .first_token
            .zip(record.ttft())
            .filter(|_| streams)
            .map(|(at, ttft)| FirstToken { at, ttft });
        self.own.push_back(Own {
            start,
            end,
            is_ok,
            first_token,
        });
    }

    /// The newest page.
    #[must_use]
    pub fn latest(&self) -> Option<&Sample> {
        self.pages.back()
    }

    /// What the server was between `from` and `to`.
    #[must_use]
    pub fn window(&self, from: MonoTime, to: MonoTime) -> ServerWindow {
        let mut window = ServerWindow::unknown(from, to);
        let until = self.pages.partition_point(|sample| sample.at <= to);
        let known: Vec<&Sample> = self.pages.range(..until).collect();
        let Some(newest) = known.last() else {
            return window;
        };
        let within = known.partition_point(|sample| sample.at <= from);
        window.pages = u32::try_from(known.len() - within).unwrap_or(u32::MAX);
        window.age = Some(to.since(newest.at));
        window.engine = newest.page.engine;
        window.info = newest.page.info.clone();
        // What held when the window began was said by the page before it.
        let before = within
            .checked_sub(1)
            .filter(|at| from.since(known[*at].at) <= self.max_age);
        let pages = &known[before.unwrap_or(within)..];
        self.fill_gauges(&mut window, pages);
        if marks::frozen(&known) {
            window.marks.add(ServerMark::FrozenGauges);
        }
        if marks::overwritten(pages) {
            window.marks.add(ServerMark::HitRateOverwritten);
        }
        let pairs = pages.windows(2);
        let restarts = pairs
            .filter(|two| counts::restarted(two[0], two[1]))
            .count();
        window.restarts = u32::try_from(restarts).unwrap_or(u32::MAX);
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else {
            return window;
        };
        let (own, at_most) = self.between(first, last);
        window.own = own;
        if marks::saw_tooth(&known) {
            window.marks.add(ServerMark::SawTooth);
            window.restarts = 0;
            return window;
        }
        fill_counts(&mut window, pages, at_most);
        window.outside = window
            .histogram(HistogramRole::Ttft)
            .and_then(|took| outside(self.first_tokens(), took, (first, last)));
        window
    }

    fn fill_gauges(&self, window: &mut ServerWindow, pages: &[&Sample]) {
        let span = (window.from, window.to);
        for role in GaugeRole::ALL {
            let readings = pages
                .iter()
                .map(|sample| (sample.at, sample.state.get(role)));
            window.set_gauge(role, gauges::weighted(readings, span, self.max_age));
        }
    }

    fn first_tokens(&self) -> impl Iterator<Item = FirstToken> + '_ {
        self.own.iter().filter_map(|own| own.first_token)
    }

    /// Our requests that lay wholly between two pages, and how many answered ones may have ended
    /// between them.
    fn between(&self, first: &Sample, last: &Sample) -> (OwnTraffic, u64) {
        let mut own = OwnTraffic::default();
        let mut at_most = 0;
        for request in &self.own {
            let inside = request.start >= first.at && request.end <= last.asked;
            match (inside, request.is_ok) {
                (true, true) => own.ok += 1,
                (true, false) => own.failed += 1,
                (false, _) => {}
            }
            let may = request.end >= first.asked && request.start <= last.at;
            at_most += u64::from(may && request.is_ok);
        }
        (own, at_most)
    }
}

/// Counters and histograms of `window`, and what is not plausible about them.
fn fill_counts(window: &mut ServerWindow, pages: &[&Sample], at_most: u64) {
    let counters: [Option<CounterWindow>; CounterRole::COUNT] =
        CounterRole::ALL.map(|role| counts::growth(pages, |page| page.page.totals.counter(role)));
    let histograms: [Option<HistogramWindow>; HistogramRole::COUNT] =
        HistogramRole::ALL.map(|role| buckets::taken_in(pages, role));
    if marks::stands_still(&counters, &histograms, window.own) {
        window.marks.add(ServerMark::CountersStill);
    }
    if marks::zero_times(&histograms) {
        window.marks.add(ServerMark::ZeroTimes);
    }
    let requests = counters[CounterRole::Requests as usize];
    if requests.is_some_and(|served| marks::doubled(served.delta, (window.own.ok, at_most))) {
        window.marks.add(ServerMark::DoubledCounts);
    }
    // A process that does not say when it began shows it by counters that fall.
    let resets = counters.iter().flatten().map(|counter| counter.resets);
    window.restarts = window.restarts.max(resets.max().unwrap_or(0));
    for (role, counter) in CounterRole::ALL.into_iter().zip(counters) {
        window.set_counter(role, counter);
    }
    for (role, taken) in HistogramRole::ALL.into_iter().zip(histograms) {
        window.set_histogram(role, taken);
    }
    let Some(last) = pages.last() else { return };
    for (reason, _) in &last.page.totals.finished {
        let of = |sample: &Sample| {
            let finished = &sample.page.totals.finished;
            let at = finished.binary_search_by(|(one, _)| one.cmp(reason)).ok()?;
            Some(finished[at].1)
        };
        if let Some(growth) = counts::growth(pages, of) {
            window.finished.push((reason.clone(), growth));
        }
    }
}
