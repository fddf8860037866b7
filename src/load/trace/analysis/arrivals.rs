//! How requests arrive: rate, how uneven the gaps are, and how uneven the counts.
//!
//! Rows that are not in the order of their times are put in order within a bounded buffer; where
//! that is not enough, what needs the order is absent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use serde::Serialize;

/// Times that wait to be put in order: 1 MB.
const BUFFERED: usize = 1 << 17;

/// Takes instants in nanoseconds.
#[derive(Debug)]
pub(super) struct ArrivalCounter {
    waiting: BinaryHeap<Reverse<u64>>,
    /// How many may wait; 0 if rows come in order.
    buffered: usize,
    count: u64,
    first: u64,
    last: u64,
    out_of_order: u64,
    same: u64,
    squares: f64,
    windows: [Windows; 3],
}

/// Counts of arrivals in windows of one length.
#[derive(Debug)]
struct Windows {
    length: u64,
    index: u64,
    count: u64,
    closed: u64,
    sum: f64,
    squares: f64,
    most: u64,
}

/// How requests arrive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arrivals {
    /// Requests with a time.
    pub count: u64,
    /// From the first to the last, in seconds.
    pub duration_s: f64,
    /// Gaps per second: (count − 1) / duration; absent if all came at once.
    pub rate: Option<f64>,
    /// The most in one second, counted from the first.
    pub busiest_second: u64,
    /// Share of requests that came at the same instant as the one before.
    pub same_instant_share: f64,
    /// Standard deviation of the gaps over their mean: 0 if even, 1 if Poisson.
    pub gap_cv: Option<f64>,
    /// Shape of the gamma distribution with these gaps, 1 / cv²: what vLLM calls burstiness and
    /// `AIPerf` smoothness. Below 1: burstier than Poisson.
    pub gamma_shape: Option<f64>,
    /// Variance of the counts over their mean, in windows of 1 s: 1 if Poisson.
    pub dispersion_1s: Option<f64>,
    /// The same in windows of 10 s.
    pub dispersion_10s: Option<f64>,
    /// The same in windows of 60 s.
    pub dispersion_60s: Option<f64>,
    /// Times that came too late to be put in order. If there are any, what needs the order is
    /// absent.
    pub out_of_order: u64,
}

const SECOND: u64 = 1_000_000_000;

impl ArrivalCounter {
    /// `ordered`: the reader holds the rows to their order.
    pub(super) fn new(ordered: bool) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            buffered: if ordered { 0 } else { BUFFERED },
            count: 0,
            first: 0,
            last: 0,
            out_of_order: 0,
            same: 0,
            squares: 0.0,
            windows: [SECOND, 10 * SECOND, 60 * SECOND].map(Windows::new),
        }
    }

    pub(super) fn add(&mut self, at: Duration) {
        // Readers take nothing above 292 years.
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        if self.buffered == 0 {
            self.take(at);
            return;
        }
        self.waiting.push(Reverse(at));
        if self.waiting.len() > self.buffered
            && let Some(Reverse(at)) = self.waiting.pop()
        {
            self.take(at);
        }
    }

    fn take(&mut self, at: u64) {
        if self.count == 0 {
            self.first = at;
            self.last = at;
        }
        self.count += 1;
        if at < self.last {
            self.out_of_order += 1;
            self.first = self.first.min(at);
            return;
        }
        let gap = at - self.last;
        if self.count > 1 {
            self.same += u64::from(gap == 0);
            self.squares += (gap as f64 / SECOND as f64).powi(2);
        }
        self.last = at;
        for windows in &mut self.windows {
            windows.add(at - self.first);
        }
    }

    pub(super) fn finish(mut self) -> Option<Arrivals> {
        while let Some(Reverse(at)) = self.waiting.pop() {
            self.take(at);
        }
        if self.count < 2 {
            return None;
        }
        let gaps = (self.count - 1) as f64;
        let duration = (self.last - self.first) as f64 / SECOND as f64;
        let mean = duration / gaps;
        let in_order = self.out_of_order == 0;
        let gap_cv = (in_order && mean > 0.0)
            .then(|| (self.squares / gaps - mean * mean).max(0.0).sqrt() / mean);
        let dispersion = |windows: &Windows| in_order.then(|| windows.dispersion()).flatten();
        Some(Arrivals {
            count: self.count,
            duration_s: duration,
            rate: (mean > 0.0).then_some(1.0 / mean),
            busiest_second: self.windows[0].most.max(self.windows[0].count),
            same_instant_share: self.same as f64 / self.count as f64,
            gap_cv,
            gamma_shape: gap_cv.filter(|cv| *cv > 0.0).map(|cv| 1.0 / (cv * cv)),
            dispersion_1s: dispersion(&self.windows[0]),
            dispersion_10s: dispersion(&self.windows[1]),
            dispersion_60s: dispersion(&self.windows[2]),
            out_of_order: self.out_of_order,
        })
    }
}

impl Windows {
    const fn new(length: u64) -> Self {
        Self {
            length,
            index: 0,
            count: 0,
            closed: 0,
            sum: 0.0,
            squares: 0.0,
            most: 0,
        }
    }

    fn add(&mut self, since_first: u64) {
        let index = since_first / self.length;
        if index != self.index {
            self.sum += self.count as f64;
            self.squares += (self.count as f64).powi(2);
            self.most = self.most.max(self.count);
            // Windows without an arrival are counted as such.
            self.closed += index - self.index;
            self.index = index;
            self.count = 0;
        }
        self.count += 1;
    }

    /// Over whole windows only, at least ten.
    fn dispersion(&self) -> Option<f64> {
        if self.closed < 10 {
            return None;
        }
        let windows = self.closed as f64;
        let mean = self.sum / windows;
        let variance = self.squares / windows - mean * mean;
        (mean > 0.0).then(|| variance.max(0.0) / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(ordered: bool, millis: &[u64]) -> Option<Arrivals> {
        let mut counter = ArrivalCounter::new(ordered);
        for at in millis {
            counter.add(Duration::from_millis(*at));
        }
        counter.finish()
    }

    #[track_caller]
    fn near(found: Option<f64>, wanted: f64) {
        let found = found.expect("there is a number");
        assert!((found - wanted).abs() < 1e-9, "{found} and not {wanted}");
    }

    #[test]
    fn even_arrivals_have_no_spread() {
        let times: Vec<u64> = (0..=40).map(|index| index * 500).collect();
        let told = arrivals(true, &times).expect("there are arrivals");
        assert_eq!(told.count, 41);
        near(told.rate, 2.0);
        near(told.gap_cv, 0.0);
        assert_eq!(told.gamma_shape, None);
        near(told.dispersion_1s, 0.0);
        assert_eq!(told.busiest_second, 2);
        // Two whole windows of 10 s are not enough to say anything.
        assert_eq!(told.dispersion_10s, None);
    }

    #[test]
    fn bursts_show_in_gaps_and_counts() {
        // Ten bursts of three at once, 2 s apart, and an end: counts 3, 0, 3, 0, …
        let mut times: Vec<u64> = (0..10).flat_map(|burst| [burst * 2_000; 3]).collect();
        times.push(20_000);
        let told = arrivals(true, &times).expect("there are arrivals");
        assert_eq!((told.count, told.busiest_second), (31, 3));
        near(Some(told.same_instant_share), 20.0 / 31.0);
        // 30 gaps: ten of 2 s, twenty of 0; mean 2/3, mean square 4/3, variance 8/9.
        near(told.gap_cv, 2.0_f64.sqrt());
        near(told.gamma_shape, 0.5);
        // Twenty windows: mean 1.5, mean square 4.5, variance 2.25.
        near(told.dispersion_1s, 1.5);
    }

    #[test]
    fn rows_out_of_order_are_put_in_order_or_said() {
        let told = arrivals(false, &[3_000, 0, 1_000, 2_000]).expect("there are arrivals");
        assert_eq!(told.out_of_order, 0);
        near(told.rate, 1.0);
        near(told.gap_cv, 0.0);
        assert_eq!(arrivals(true, &[5]), None);
        let told = arrivals(true, &[7, 7]).expect("there are arrivals");
        assert_eq!((told.rate, told.gap_cv), (None, None));
        let mut counter = ArrivalCounter::new(false);
        counter.buffered = 1;
        for at in [5_u64, 6, 7, 1] {
            counter.add(Duration::from_secs(at));
        }
        let told = counter.finish().expect("there are arrivals");
        assert_eq!((told.out_of_order, told.gap_cv), (1, None));
        assert!((told.duration_s - 6.0).abs() < 1e-9);
    }
}
