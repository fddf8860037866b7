//! What a server's histogram took in over a window, and what its buckets can say of quantiles.

use super::counts::restarted;
use crate::measurement::Sample;
use crate::measurement::server::{HistogramRole, ServerHistogram};

/// What a histogram took in, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramWindow {
    /// Values.
    pub count: f64,
    /// Their sum.
    pub sum: f64,
    /// Upper bounds, ascending and finite; none where the server publishes only a sum.
    pub bounds: Box<[f64]>,
    /// Values at or below each bound.
    pub below: Box<[f64]>,
}

/// A quantile, as exactly as buckets can say it; in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BucketQuantile {
    /// In the first bucket: at most this.
    Below(f64),
    /// Between two bounds.
    Within {
        /// Above this bound.
        low: f64,
        /// At most this one.
        high: f64,
        /// Where it is if values are spread evenly between the two.
        estimate: f64,
    },
    /// Above the last bound.
    AtLeast(f64),
}

impl BucketQuantile {
    /// The bound or estimate, for arithmetic that may be off by a bucket.
    #[must_use]
    pub const fn value(self) -> f64 {
        match self {
            Self::Below(bound) | Self::AtLeast(bound) => bound,
            Self::Within { estimate, .. } => estimate,
        }
    }
}

impl HistogramWindow {
    /// The mean of its values; exact, unlike quantiles.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The value below which a share `q` of all values lies; `None` without values or buckets.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<BucketQuantile> {
        let last = *self.bounds.last()?;
        if self.count <= 0.0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = q * self.count;
        let reached = |below: &f64| *below > 0.0 && *below >= rank;
        let Some(at) = self.below.iter().position(reached) else {
            return Some(BucketQuantile::AtLeast(last));
        };
        let high = self.bounds[at];
        let Some(before) = at.checked_sub(1) else {
            return Some(BucketQuantile::Below(high));
        };
        let (low, under) = (self.bounds[before], self.below[before]);
        let inside = self.below[at] - under;
        let part = ((rank - under) / inside).clamp(0.0, 1.0);
        Some(BucketQuantile::Within {
            low,
            high,
            estimate: low + (high - low) * part,
        })
    }
}

/// What the histogram of `role` took in between the first and the last of `pages`.
pub(super) fn taken_in(pages: &[&Sample], role: HistogramRole) -> Option<HistogramWindow> {
    let mut known = pages
        .iter()
        .filter_map(|sample| Some((*sample, sample.page.totals.histogram(role)?)));
    let (mut last, mut before) = known.next()?;
    let mut taken: Option<HistogramWindow> = None;
    for (sample, now) in known {
        if now.bounds == before.bounds {
            let anew = restarted(last, sample) || fell(before, now);
            let base = (!anew).then_some(before);
            taken
                .get_or_insert_with(|| nothing(&now.bounds))
                .add(now, base);
        } else {
            // Other buckets: what lies before them cannot be added to them.
            taken = None;
        }
        (last, before) = (sample, now);
    }
    taken
}

fn nothing(bounds: &[f64]) -> HistogramWindow {
    HistogramWindow {
        count: 0.0,
        sum: 0.0,
        bounds: bounds.into(),
        below: bounds.iter().map(|_| 0.0).collect(),
    }
}

fn fell(before: &ServerHistogram, now: &ServerHistogram) -> bool {
    let mut below = before.below.iter().zip(&now.below);
    now.count < before.count || below.any(|(before, now)| now < before)
}

impl HistogramWindow {
    fn add(&mut self, now: &ServerHistogram, base: Option<&ServerHistogram>) {
        self.count += now.count - base.map_or(0.0, |base| base.count);
        self.sum += now.sum - base.map_or(0.0, |base| base.sum);
        for (at, (below, now)) in self.below.iter_mut().zip(&now.below).enumerate() {
            *below += now - base.map_or(0.0, |base| base.below[at]);
        }
    }
}
