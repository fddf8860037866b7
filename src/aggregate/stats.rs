//! Statistics of one metric of a finished run: exact while the values fit, and saying so.
//!
//! The mean and the deviation are kept as values come (Welford's recurrence), so they do not
//! depend on what fits. The deviation is that of the whole population.

use serde::Serialize;

use super::{Histogram, Quantile, rank};

/// Statistics of one metric. A quantile is `None` with fewer than 1/(1−q) values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// Unit of all but `count`.
    pub unit: &'static str,
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation of the population.
    pub std: f64,
    /// Whether quantiles are values that occurred; else they are within one bucket (2.2 %).
    pub exact: bool,
    /// 1 % are at or below this.
    pub p1: Option<f64>,
    /// 5 % are at or below this.
    pub p5: Option<f64>,
    /// 10 % are at or below this.
    pub p10: Option<f64>,
    /// 25 % are at or below this.
    pub p25: Option<f64>,
    /// 50 % are at or below this.
    pub p50: Option<f64>,
    /// 75 % are at or below this.
    pub p75: Option<f64>,
    /// 90 % are at or below this.
    pub p90: Option<f64>,
    /// 95 % are at or below this.
    pub p95: Option<f64>,
    /// 99 % are at or below this.
    pub p99: Option<f64>,
    /// 99.9 % are at or below this.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
}

/// Collects the values of one metric.
#[derive(Debug, Clone)]
pub(super) struct Values {
    kept: Vec<f64>,
    sorted: bool,
    cap: usize,
    all: Histogram,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Values {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            kept: Vec::new(),
            sorted: true,
            cap,
            all: Histogram::new(),
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: 0.0,
        }
    }

    /// Adds a value that is not negative; +∞ is a failure.
    pub(super) fn add(&mut self, value: f64) {
        self.all.record(value);
        if self.kept.len() < self.cap {
            self.kept.push(value);
            self.sorted = false;
        }
        if value.is_finite() {
            let finite = rank::count(self.all.count() - self.all.infinite());
            let from_old_mean = value - self.mean;
            self.mean += from_old_mean / finite;
            self.squares += from_old_mean * (value - self.mean);
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.all.count()
    }

    pub(super) const fn infinite(&self) -> u64 {
        self.all.infinite()
    }

    fn is_exact(&self) -> bool {
        u64::try_from(self.kept.len()).is_ok_and(|kept| kept == self.count())
    }

    /// The quantile `q`, or `None` with fewer than 1/(1−q) values.
    pub(super) fn stated(&mut self, q: f64) -> Option<Quantile> {
        if !self.is_exact() {
            return self.all.stated(q);
        }
        if !rank::enough(q, self.count()) {
            return None;
        }
        if !self.sorted {
            self.kept.sort_unstable_by(f64::total_cmp);
            self.sorted = true;
        }
        let position = usize::try_from(rank::rank(q, self.count())? - 1).ok()?;
        let value = *self.kept.get(position)?;
        Some(if value.is_finite() {
            Quantile::Value(value)
        } else {
            Quantile::Never
        })
    }

    /// All statistics; `None` without a finite value.
    pub(super) fn stats(&mut self, unit: &'static str) -> Option<Stats> {
        let finite = self.count() - self.infinite();
        if finite == 0 {
            return None;
        }
        let mut p = |q| self.stated(q).and_then(Quantile::value);
        let (p1, p5, p10, p25, p50) = (p(0.01), p(0.05), p(0.1), p(0.25), p(0.5));
        let (p75, p90, p95, p99, p99_9) = (p(0.75), p(0.9), p(0.95), p(0.99), p(0.999));
        Some(Stats {
            unit,
            count: self.count(),
            mean: self.mean,
            min: self.min,
            max: self.max,
            std: (self.squares / rank::count(finite)).sqrt(),
            exact: self.is_exact(),
            p1,
            p5,
            p10,
            p25,
            p50,
            p75,
            p90,
            p95,
            p99,
            p99_9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_cap_quantiles_come_from_the_histogram_and_it_says_so() {
        let mut values = Values::new(10);
        for value in 1..=100 {
            values.add(f64::from(value));
        }
        let stats = values.stats("ms").expect("a hundred values");
        assert!(!stats.exact);
        assert_eq!(stats.count, 100);
        assert!((stats.mean - 50.5).abs() < 1e-12);
        assert!((stats.std - 28.866_070_047_722_12).abs() < 1e-9);
        let p95 = stats.p95.expect("enough values");
        assert!((p95 / 95.0 - 1.0).abs() < 0.022, "p95 is {p95}");
    }

    #[test]
    fn exact_quantiles_are_values_that_occurred() {
        let mut values = Values::new(1_000);
        for value in (1..=1_000).rev() {
            values.add(f64::from(value));
        }
        let stats = values.stats("ms").expect("a thousand values");
        assert!(stats.exact);
        let shown = [stats.p1, stats.p5, stats.p10, stats.p25, stats.p50];
        assert_eq!(
            shown.map(|p| p.map(f64::to_bits)),
            [10.0, 50.0, 100.0, 250.0, 500.0].map(|p: f64| Some(p.to_bits()))
        );
        let shown = [stats.p75, stats.p90, stats.p95, stats.p99, stats.p99_9];
        assert_eq!(
            shown.map(|p| p.map(f64::to_bits)),
            [750.0, 900.0, 950.0, 990.0, 999.0].map(|p: f64| Some(p.to_bits()))
        );
    }
}
