//! The one live histogram: exponential buckets, exact counts, bounded memory.
//!
//! Only buckets in use are stored, sorted by index, so that a window with twelve values costs
//! twelve entries; the grid bounds them at 1,279 (13 KiB). Values at or below 2^−20 are in
//! the zero bucket (`underflow`), larger finite ones than the grid holds in its last finite
//! bucket (and counted: `overflow`), and +∞ in a slot of its own that is counted and never
//! summed. A quantile is off by at most one bucket (2.2 %), by at most 1.1 % where a bucket
//! holds one value. What is recorded, and when, is decided elsewhere.

use std::time::Duration;

use super::grid::{self, ClassicRange};
use super::rank::{self, Quantile};

/// Empty buckets that are filled with zero deltas instead of opening a new span.
const FILLED_GAP: i32 = 2;

/// Counts of non-negative values on the grid of this room, with their sum.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Buckets in use, ascending; `counts` runs in parallel.
    indexes: Vec<i16>,
    counts: Vec<u64>,
    zero: u64,
    underflow: u64,
    overflow: u64,
    infinite: u64,
    refused: u64,
    finite: u64,
    sum: f64,
    /// The smallest and the largest finite value; absent before the first, and where they are
    /// not known.
    extremes: Option<(f64, f64)>,
}

/// The buckets of a histogram as Prometheus' native form has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Native {
    /// Values in the zero bucket.
    pub zero_count: u64,
    /// Runs of buckets: empty buckets before it (for the first: its index), and its length.
    pub spans: Vec<(i32, u32)>,
    /// The count of each bucket of the runs, less that of the one before.
    pub deltas: Vec<i64>,
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty histogram with room for `buckets` different buckets.
    #[must_use]
    pub fn with_capacity(buckets: usize) -> Self {
        Self {
            indexes: Vec::with_capacity(buckets),
            counts: Vec::with_capacity(buckets),
            ..Self::default()
        }
    }

    /// Counts `value`; +∞ counts as [`Self::record_infinite`]. NaN and negative values are
    /// refused, and counted as refused.
    pub fn record(&mut self, value: f64) {
        if value.is_nan() || value < 0.0 {
            self.refused += 1;
        } else if value.is_infinite() {
            self.infinite += 1;
        } else {
            self.finite += 1;
            self.sum += value;
            let (least, most) = self.extremes.unwrap_or((value, value));
            self.extremes = Some((least.min(value), most.max(value)));
            if value <= grid::ZERO_THRESHOLD {
                self.zero += 1;
                self.underflow += u64::from(value > 0.0);
            } else {
                self.count_bucket(grid::index(value));
            }
        }
    }

    /// Counts `span` in seconds.
    pub fn record_duration(&mut self, span: Duration) {
        self.record(span.as_secs_f64());
    }

    /// Counts one that never finished.
    pub fn record_infinite(&mut self) {
        self.infinite += 1;
    }

    fn count_bucket(&mut self, index: i16) {
        if index > grid::LAST_FINITE {
            self.overflow += 1;
        }
        self.add(index.min(grid::LAST_FINITE), 1);
    }

    fn add(&mut self, index: i16, count: u64) {
        match self.indexes.binary_search(&index) {
            Ok(at) => self.counts[at] += count,
            Err(at) => {
                self.indexes.insert(at, index);
                self.counts.insert(at, count);
            }
        }
    }

    /// Adds all that `other` holds.
    pub fn merge(&mut self, other: &Self) {
        self.extremes = match (self.extremes, other.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, None) if other.finite == 0 => one,
            (None, other) if self.finite == 0 => other,
            _ => None,
        };
        for (index, count) in other.buckets() {
            self.add(index, count);
        }
        self.zero += other.zero;
        self.underflow += other.underflow;
        self.overflow += other.overflow;
        self.infinite += other.infinite;
        self.refused += other.refused;
        self.finite += other.finite;
        self.sum += other.sum;
    }

    /// What was counted after `earlier`, a former state of this one. The smallest and the largest
    /// of those values are not known.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut before = earlier.buckets().peekable();
        let mut later = Self {
            zero: self.zero - earlier.zero.min(self.zero),
            underflow: self.underflow - earlier.underflow.min(self.underflow),
            overflow: self.overflow - earlier.overflow.min(self.overflow),
            infinite: self.infinite - earlier.infinite.min(self.infinite),
            refused: self.refused - earlier.refused.min(self.refused),
            finite: self.finite - earlier.finite.min(self.finite),
            sum: self.sum - earlier.sum,
            ..Self::default()
        };
        for (index, count) in self.buckets() {
            let known = before.next_if(|(at, _)| *at == index);
            let added = count - known.map_or(0, |(_, known)| known.min(count));
            if added > 0 {
                later.indexes.push(index);
                later.counts.push(added);
            }
        }
        later
    }

    /// Empties it and keeps its storage.
    pub fn clear(&mut self) {
        let mut indexes = std::mem::take(&mut self.indexes);
        let mut counts = std::mem::take(&mut self.counts);
        indexes.clear();
        counts.clear();
        *self = Self {
            indexes,
            counts,
            ..Self::default()
        };
    }

    /// How many values were counted, +∞ included.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.finite + self.infinite
    }

    /// Values in the zero bucket.
    #[must_use]
    pub const fn zeros(&self) -> u64 {
        self.zero
    }

    /// The smallest and the largest finite value; `None` if there is none, or if they are not
    /// known.
    #[must_use]
    pub const fn extremes(&self) -> Option<(f64, f64)> {
        self.extremes
    }

    /// The buckets from the first one in use to the last, empty ones included: the index of the
    /// first, and the counts; +∞ is in the bucket [`grid::INFINITE`].
    #[must_use]
    pub fn dense(&self) -> (i16, Vec<u64>) {
        let infinite = (self.infinite > 0).then_some((grid::INFINITE, self.infinite));
        let mut used = self.buckets().chain(infinite).peekable();
        let first = used.peek().map_or(0, |(index, _)| *index);
        let mut counts = Vec::new();
        for (index, count) in used {
            let place = usize::try_from(index - first).unwrap_or_default();
            counts.resize(place, 0);
            counts.push(count);
        }
        (first, counts)
    }

    /// Sum of the finite values.
    #[must_use]
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// Values above zero that are too small for the grid and stand in the zero bucket.
    #[must_use]
    pub const fn underflow(&self) -> u64 {
        self.underflow
    }

    /// Finite values too large for the grid.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Those that never finished.
    #[must_use]
    pub const fn infinite(&self) -> u64 {
        self.infinite
    }

    /// Values that were not counted, because they were NaN or negative.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The finite buckets in use, ascending, with their counts.
    pub fn buckets(&self) -> impl Iterator<Item = (i16, u64)> + '_ {
        self.indexes
            .iter()
            .copied()
            .zip(self.counts.iter().copied())
    }

    /// Bytes this histogram holds on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.indexes.capacity() * size_of::<i16>() + self.counts.capacity() * size_of::<u64>()
    }

    /// The ⌈q·n⌉-th smallest value, interpolated on a logarithmic scale inside its bucket;
    /// 0 in the zero bucket. `None` without values, or if `q` is not in (0, 1].
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let rank = rank::rank(q, self.count())?;
        if rank <= self.zero {
            return Some(Quantile::Value(0.0));
        }
        let mut before = self.zero;
        for (index, count) in self.buckets() {
            if rank <= before + count {
                // Each value stands in the middle of its own share of the bucket.
                let within = (rank::count(rank - before) - 0.5) / rank::count(count);
                let exponent = (f64::from(index) - 1.0 + within) / f64::from(grid::PER_OCTAVE);
                return Some(Quantile::Value(exponent.exp2()));
            }
            before += count;
        }
        Some(Quantile::Never)
    }

    /// [`Self::quantile`], or `None` with fewer than 1/(1−q) values: shown as `–` with n.
    #[must_use]
    pub fn stated(&self, q: f64) -> Option<Quantile> {
        rank::enough(q, self.count())
            .then(|| self.quantile(q))
            .flatten()
    }

    /// Cumulative counts at the bounds of `range`, in order. What lies above the last bound,
    /// +∞ included, is in [`Self::count`] only.
    pub fn classic(&self, range: ClassicRange) -> impl Iterator<Item = u64> + '_ {
        let mut buckets = self.buckets().peekable();
        let mut running = self.zero;
        range.last_buckets().map(move |last| {
            while let Some((_, count)) = buckets.next_if(|(index, _)| *index <= last) {
                running += count;
            }
            running
        })
    }

    /// The buckets as spans and deltas; +∞ is in the bucket [`grid::INFINITE`].
    #[must_use]
    pub fn native(&self) -> Native {
        let mut native = Native {
            zero_count: self.zero,
            ..Native::default()
        };
        let infinite = (self.infinite > 0).then_some((grid::INFINITE, self.infinite));
        let mut next = 0_i32;
        let mut previous = 0_i64;
        for (index, count) in self.buckets().chain(infinite) {
            let gap = i32::from(index) - next;
            match native.spans.last_mut() {
                Some((_, length)) if gap <= FILLED_GAP => {
                    for _ in 0..gap {
                        native.deltas.push(-previous);
                        previous = 0;
                        *length += 1;
                    }
                    *length += 1;
                }
                _ => native.spans.push((gap, 1)),
            }
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            native.deltas.push(count - previous);
            previous = count;
            next = i32::from(index) + 1;
        }
        native
    }
}
