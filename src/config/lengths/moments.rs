//! Mean lengths, as they are drawn: rounded and truncated.
//!
//! Fixed, uniform and listed lengths have exact means. That of a rounded, truncated distribution
//! is the sum of the chances of being at least k, over the first 20,000 k that can occur; of what
//! lies beyond, the mean before rounding is taken, which differs by less than a thousandth of a
//! token. The normal distribution function is good to 1.2e-7 of its value.

use std::f64::consts::{PI, SQRT_2};

use super::{Lengths, MOST_LENGTH};

/// Lengths that are added one by one.
const SUMMED: u32 = 20_000;
/// Standard deviations from the mean beyond which nothing is drawn.
const FAR: f64 = 10.0;

impl Lengths {
    /// The expectation of a length as it is drawn, in tokens: after rounding and truncation.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(length) => f64::from(*length),
            Self::Normal { mean, sd } | Self::LogNormal { mean, sd } if *sd <= 0.0 => mean.round(),
            Self::Normal { mean, sd } => truncated(&Real::Normal {
                mean: *mean,
                sd: *sd,
            }),
            Self::LogNormal { mean, sd } => truncated(&Real::log_normal(*mean, *sd)),
            Self::Uniform { least, most } => f64::midpoint(f64::from(*least), f64::from(*most)),
            Self::OneOf(values) => weighted(values, |value| f64::from(*value)),
            Self::Mix(parts) => weighted(parts, Self::mean),
        }
    }

    /// Mean and standard deviation of the logarithm of a log-normal length whose own are `mean`
    /// and `sd`.
    #[must_use]
    pub fn of_logarithm(mean: f64, sd: f64) -> (f64, f64) {
        let variance = (sd / mean).powi(2).ln_1p();
        (mean.ln() - variance / 2.0, variance.sqrt())
    }
}

fn weighted<T>(parts: &[(f64, T)], of: impl Fn(&T) -> f64) -> f64 {
    let sum: f64 = parts.iter().map(|(weight, part)| weight * of(part)).sum();
    let weights: f64 = parts.iter().map(|(weight, _)| weight).sum();
    sum / weights
}

/// A distribution of real numbers.
enum Real {
    Normal { mean: f64, sd: f64 },
    LogNormal { mean: f64, mu: f64, sigma: f64 },
}

impl Real {
    fn log_normal(mean: f64, sd: f64) -> Self {
        let (mu, sigma) = Lengths::of_logarithm(mean, sd);
        Self::LogNormal { mean, mu, sigma }
    }

    /// The number that many standard deviations from the middle; of the logarithm, where that
    /// is normal.
    fn at(&self, z: f64) -> f64 {
        match self {
            Self::Normal { mean, sd } => mean + z * sd,
            Self::LogNormal { mu, sigma, .. } => (mu + z * sigma).exp(),
        }
    }

    /// The chance of being above `x`.
    fn above(&self, x: f64) -> f64 {
        match self {
            Self::Normal { mean, sd } => upper((x - mean) / sd),
            Self::LogNormal { mu, sigma, .. } => upper((x.ln() - mu) / sigma),
        }
    }

    /// The integral above `x` of a number times its density.
    fn share_above(&self, x: f64) -> f64 {
        match self {
            Self::Normal { mean, sd } => {
                let z = (x - mean) / sd;
                mean * upper(z) + sd * (-z * z / 2.0).exp() / (2.0 * PI).sqrt()
            }
            Self::LogNormal { mean, mu, sigma } => mean * upper((x.ln() - mu) / sigma - sigma),
        }
    }
}

/// The mean of `real`, rounded to the nearest, given that it is within the range of lengths.
fn truncated(real: &Real) -> f64 {
    let bound = |x: f64| super::whole(x.round());
    let (first, last) = (bound(real.at(-FAR)), bound(real.at(FAR)));
    let end = last.min(first.saturating_add(SUMMED));
    let after = |length: u32| f64::from(length) + 0.5;
    let (start, over) = (real.above(after(first - 1)), real.above(after(MOST_LENGTH)));
    // Σ k·p(k) for k from the first to the end, by the chances of being at least k.
    let at_least: f64 = (first..end).map(|length| real.above(after(length))).sum();
    let summed = f64::from(first) * start + at_least - f64::from(end) * real.above(after(end));
    let rest = if end < last {
        real.share_above(after(end)) - real.share_above(after(MOST_LENGTH))
    } else {
        f64::from(end) * (real.above(after(end)) - over).max(0.0)
    };
    (summed + rest) / (start - over)
}

/// The chance that a standard normal number is above `z`: half of erfc(z/√2), by the Chebyshev
/// fit of W. H. Press et al., Numerical Recipes, §6.2.
fn upper(z: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + x / 2.0);
    let fit = FIT.iter().rev().fold(0.0, |sum, factor| sum * t + factor);
    let half = t * (fit - x * x).exp() / 2.0;
    if z >= 0.0 { half } else { 1.0 - half }
}
