//! One distribution as it leaves the program: a histogram, and what is known of it beside its
//! buckets.
//!
//! Limits of an SLO lie anywhere, so the grid cannot say how many values are at most as large:
//! they were counted when they came. Classic bounds are those of a range and these limits.

use std::iter;

use super::exemplars::Exemplars;
use super::grid::ClassicRange;
use super::histogram::{Histogram, Native};

/// A histogram with the counts at limits that were counted exactly.
#[derive(Debug, Clone, Copy)]
pub struct Distribution<'a> {
    pub(super) histogram: &'a Histogram,
    /// Ascending; `held` runs in parallel.
    pub(super) limits: &'a [f64],
    /// Values up to each limit.
    pub(super) held: &'a [u64],
    pub(super) exemplars: &'a Exemplars,
}

impl<'a> Distribution<'a> {
    /// `histogram` alone, without limits and exemplars.
    #[must_use]
    pub const fn plain(histogram: &'a Histogram) -> Self {
        const NONE: &Exemplars = &Exemplars::NONE;
        Self {
            histogram,
            limits: &[],
            held: &[],
            exemplars: NONE,
        }
    }

    /// How many values were counted, +∞ included.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.histogram.count()
    }

    /// Sum of the finite values.
    #[must_use]
    pub const fn sum(&self) -> f64 {
        self.histogram.sum()
    }

    /// The buckets as spans and deltas.
    #[must_use]
    pub fn native(&self) -> Native {
        self.histogram.native()
    }

    /// The histogram itself.
    #[must_use]
    pub const fn histogram(&self) -> &'a Histogram {
        self.histogram
    }

    /// Requests that stand for its values.
    #[must_use]
    pub const fn exemplars(&self) -> &'a Exemplars {
        self.exemplars
    }

    /// The bounds of `range` and the limits, ascending, each with how many values are at most as
    /// large. +Inf is not among them.
    pub fn classic(&self, range: ClassicRange) -> impl Iterator<Item = (f64, u64)> + 'a {
        let grid = range.bounds().zip(self.histogram.classic(range));
        let limits = self.limits.iter().copied().zip(self.held.iter().copied());
        merged(grid, limits)
    }
}

/// The bounds of [`Distribution::classic`] of every series with these `limits`.
pub fn classic_bounds(range: ClassicRange, limits: &[f64]) -> impl Iterator<Item = f64> + '_ {
    let grid = range.bounds().map(|bound| (bound, ()));
    merged(grid, limits.iter().map(|limit| (*limit, ()))).map(|(bound, ())| bound)
}

/// Both in one ascending row; a limit that is a bound of the grid is there once.
fn merged<T>(
    grid: impl Iterator<Item = (f64, T)>,
    limits: impl Iterator<Item = (f64, T)>,
) -> impl Iterator<Item = (f64, T)> {
    let mut grid = grid.peekable();
    let mut limits = limits.peekable();
    iter::from_fn(move || {
        let Some((limit, _)) = limits.peek() else {
            return grid.next();
        };
        match grid.peek().map(|(bound, _)| bound.total_cmp(limit)) {
            Some(std::cmp::Ordering::Less) => grid.next(),
            Some(std::cmp::Ordering::Equal) => {
                limits.next();
                grid.next()
            }
            Some(std::cmp::Ordering::Greater) | None => limits.next(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(*value);
        }
        histogram
    }

    #[test]
    fn limits_stand_among_the_bounds_with_their_exact_counts() {
        let histogram = of(&[0.2, 0.299, 0.3, 0.301, 0.9, 1.5]);
        // 0.3 and 1.2 are no bounds of the grid, 0.5 is one.
        let shown = Distribution {
            histogram: &histogram,
            limits: &[0.1, 0.3, 0.5, 1.2],
            held: &[0, 3, 4, 5],
            exemplars: &Exemplars::NONE,
        };
        // 1/4, 1/2 and 1 are 2^-2 to 2^0; those between them are the roots of 1/8 and 1/2.
        let range = ClassicRange::new(-4, 0);
        let found: Vec<(f64, u64)> = shown.classic(range).collect();
        let bounds = [
            0.1,
            0.25,
            0.3,
            0.353_553_390_593_273_8,
            0.5,
            std::f64::consts::FRAC_1_SQRT_2,
            1.0,
            1.2,
        ];
        assert_eq!(
            found.iter().map(|(bound, _)| *bound).collect::<Vec<_>>(),
            bounds
        );
        assert_eq!(
            found.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
            [0, 1, 3, 4, 4, 4, 5, 5]
        );
        let named: Vec<f64> = classic_bounds(range, shown.limits).collect();
        assert_eq!(named, bounds);
    }

    #[test]
    fn without_limits_the_bounds_are_those_of_the_grid() {
        let histogram = of(&[0.6]);
        let shown = Distribution {
            histogram: &histogram,
            limits: &[],
            held: &[],
            exemplars: &Exemplars::NONE,
        };
        let found: Vec<(f64, u64)> = shown.classic(ClassicRange::new(-2, 0)).collect();
        assert_eq!(
            found,
            [(0.5, 0), (std::f64::consts::FRAC_1_SQRT_2, 1), (1.0, 1)]
        );
    }
}
