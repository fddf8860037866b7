//! Distributions of token lengths: a small closed set, with one compact way to write each.
//!
//! A value is complete and in range; whoever makes one in code keeps to what the fields say.
//! Every length lies within 1..=[`MOST_LENGTH`]. Normal and log-normal lengths are real numbers
//! rounded to the nearest whole one and *truncated*: one outside of that range is drawn again,
//! so that nothing piles up at its ends. How they are drawn is `load/workload`'s.

mod grammar;
mod moments;
mod pairs;

use std::sync::Arc;

pub use self::pairs::{SizePair, SizePairs};

/// Longest length; beyond any context window.
pub const MOST_LENGTH: u32 = 1_000_000;

/// How many tokens something has.
#[derive(Debug, Clone, PartialEq)]
pub enum Lengths {
    /// Always as many.
    Fixed(u32),
    /// Normal, rounded to the nearest, within 1..=[`MOST_LENGTH`].
    Normal {
        /// Of the normal distribution before it is truncated: within 1..=[`MOST_LENGTH`].
        mean: f64,
        /// Its standard deviation: within 0..=[`MOST_LENGTH`].
        sd: f64,
    },
    /// Log-normal, rounded to the nearest, within 1..=[`MOST_LENGTH`].
    LogNormal {
        /// Of the length itself, not of its logarithm, before it is truncated.
        mean: f64,
        /// Standard deviation of the length itself, at most 100 times the mean.
        sd: f64,
    },
    /// Each from `least` to `most`, both included, equally often.
    Uniform {
        /// At least 1.
        least: u32,
        /// At least `least`, at most [`MOST_LENGTH`].
        most: u32,
    },
    /// One of these values, as often as their weights say; at least one.
    OneOf(Arc<[(f64, u32)]>),
    /// One of these distributions, as often as their weights say; at least one.
    Mix(Arc<[(f64, Lengths)]>),
}

impl Lengths {
    /// Uniform around `mean`: from ⌊mean·(1 − ratio)⌋ to ⌈mean·(1 + ratio)⌉, at least 1. vLLM's
    /// range ratio, which lies within 0..1.
    #[must_use]
    pub fn around(mean: u32, ratio: f64) -> Self {
        let mean = f64::from(mean);
        Self::Uniform {
            least: whole((mean * (1.0 - ratio)).floor()),
            most: whole((mean * (1.0 + ratio)).ceil()),
        }
    }

    /// Uniform up to `most`: from ⌊most·ratio⌋, at least 1. `SGLang`'s range ratio, which lies
    /// within 0..=1.
    #[must_use]
    pub fn up_to(most: u32, ratio: f64) -> Self {
        let least = whole((f64::from(most) * ratio).floor());
        Self::Uniform {
            least,
            most: whole(f64::from(most)).max(least),
        }
    }

    /// Normal with a standard deviation, or fixed without one.
    #[must_use]
    pub fn normal(mean: f64, sd: f64) -> Self {
        if sd > 0.0 {
            Self::Normal { mean, sd }
        } else {
            Self::Fixed(whole(mean.round()))
        }
    }

    /// No length is less. Of normal and log-normal ones: 1, however unlikely.
    #[must_use]
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Normal { .. } | Self::LogNormal { .. } => 1,
            Self::Uniform { least, .. } => *least,
            Self::OneOf(values) => each(values, |value| *value).min().unwrap_or(1),
            Self::Mix(parts) => each(parts, Self::least).min().unwrap_or(1),
        }
    }

    /// No length is more. Of normal and log-normal ones: [`MOST_LENGTH`], however unlikely.
    #[must_use]
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(length) => *length,
            Self::Normal { .. } | Self::LogNormal { .. } => MOST_LENGTH,
            Self::Uniform { most, .. } => *most,
            Self::OneOf(values) => each(values, |value| *value).max().unwrap_or(1),
            Self::Mix(parts) => each(parts, Self::most).max().unwrap_or(1),
        }
    }
}

/// What `of` says of each part that has a weight.
fn each<T>(parts: &[(f64, T)], of: impl Fn(&T) -> u32) -> impl Iterator<Item = u32> {
    let heavy = parts.iter().filter(|(weight, _)| *weight > 0.0);
    heavy.map(move |(_, part)| of(part))
}

/// A whole number as a length, moved into the range of lengths.
fn whole(number: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "moved into a range that holds positive numbers below 2^32"
    )]
    let length = number.clamp(1.0, f64::from(MOST_LENGTH)) as u32;
    length
}

#[cfg(test)]
mod tests;
