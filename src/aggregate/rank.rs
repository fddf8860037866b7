//! Which value a quantile is, stated once: `p_q` of n values is the ⌈q·n⌉-th smallest.
//!
//! With fewer than 1/(1−q) values there is no such tail to speak of, and the quantile is not
//! shown. Both rules forgive the rounding of `q` as a binary fraction.

use serde::{Serialize, Serializer};

/// Relative slack for products like 0.07 × 100, which is a little more than 7 in doubles.
const ROUNDING: f64 = 1e-12;

/// A quantile's value, where failures may count as +∞.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantile {
    /// A number, in the unit of what was recorded.
    Value(f64),
    /// The quantile falls among those that never finished.
    Never,
}

impl Quantile {
    /// The number, unless it is `Never`.
    #[must_use]
    pub const fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Never => None,
        }
    }
}

impl Serialize for Quantile {
    /// A number, or the text `never`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => serializer.serialize_f64(*value),
            Self::Never => serializer.serialize_str("never"),
        }
    }
}

/// Whether `n` values are enough to state the quantile `q`: at least 1/(1−q).
#[must_use]
pub fn enough(q: f64, n: u64) -> bool {
    n > 0 && count(n) * (1.0 - q) >= 1.0 - 1e-9
}

/// The rank, from 1, of the quantile `q` among `n` values; `None` without values, or if `q`
/// is not in (0, 1].
#[must_use]
pub fn rank(q: f64, n: u64) -> Option<u64> {
    if n == 0 || !(q > 0.0 && q <= 1.0) {
        return None;
    }
    Some(ceil(q * count(n) * (1.0 - ROUNDING)).clamp(1, n))
}

/// A count as a double: exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts stay far below 2^53, and above it only the last digits of a share suffer"
)]
#[must_use]
pub const fn count(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the argument is positive and at most a count"
)]
fn ceil(value: f64) -> u64 {
    value.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_nearest_above() {
        for (q, n, wanted) in [
            (0.5, 1, 1),
            (0.5, 10, 5),
            (0.5, 11, 6),
            (0.95, 100, 95),
            (0.95, 101, 96),
            (0.07, 100, 7),
            (0.01, 10, 1),
            (0.999, 1_000, 999),
            (1.0, 8, 8),
            (0.95, 10_000_000, 9_500_000),
        ] {
            assert_eq!(rank(q, n), Some(wanted), "q {q} of {n}");
        }
        assert_eq!(rank(0.5, 0), None);
        for q in [0.0, -0.1, 1.1, f64::NAN] {
            assert_eq!(rank(q, 5), None);
        }
    }

    #[test]
    fn a_quantile_needs_one_over_its_tail_values() {
        for (q, needed) in [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1_000)] {
            assert!(enough(q, needed), "{q} of {needed}");
            assert!(!enough(q, needed - 1), "{q} of {}", needed - 1);
        }
        assert!(!enough(0.01, 0));
    }
}
