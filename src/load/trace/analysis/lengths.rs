//! Lengths in tokens as counts per value: exact up to 262,143 tokens, above that in steps of less
//! than 0.05 %.

use std::collections::BTreeMap;

use serde::Serialize;

/// Lengths below this have a counter each: 2 MB, more than the longest context of today's models.
const EXACT: u32 = 1 << 18;
/// Significant bits that are kept of longer ones.
const BITS: u32 = 12;

/// Counts lengths.
#[derive(Debug, Default)]
pub(super) struct LengthCounter {
    short: Vec<u64>,
    long: BTreeMap<u32, u64>,
    count: u64,
    sum: u64,
    squares: u128,
    least: u32,
    most: u32,
}

/// How long prompts or answers are, in tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengths {
    /// How many were counted.
    pub count: u64,
    /// All together.
    pub sum: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
    /// The shortest.
    pub min: u32,
    /// Quantiles by nearest rank.
    pub p10: u32,
    /// See `p10`.
    pub p50: u32,
    /// See `p10`.
    pub p90: u32,
    /// See `p10`.
    pub p95: u32,
    /// See `p10`.
    pub p99: u32,
    /// The longest.
    pub max: u32,
}

impl LengthCounter {
    pub(super) fn add(&mut self, tokens: u32) {
        self.least = if self.count == 0 {
            tokens
        } else {
            self.least.min(tokens)
        };
        self.most = self.most.max(tokens);
        self.count += 1;
        self.sum += u64::from(tokens);
        self.squares += u128::from(u64::from(tokens) * u64::from(tokens));
        if tokens < EXACT {
            let place = tokens as usize;
            if place >= self.short.len() {
                self.short.resize((place + 1).next_power_of_two(), 0);
            }
            self.short[place] += 1;
        } else {
            let cut = 32 - tokens.leading_zeros() - BITS;
            *self.long.entry(tokens >> cut << cut).or_default() += 1;
        }
    }

    /// The ⌈q·n⌉-th smallest.
    fn quantile(&self, q: f64) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count that fits"
        )]
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let short = self.short.iter().enumerate().map(|(tokens, count)| {
            (
                u32::try_from(tokens).expect("below the exact limit"),
                *count,
            )
        });
        let long = self.long.iter().map(|(tokens, count)| (*tokens, *count));
        for (tokens, count) in short.chain(long) {
            below += count;
            if below >= rank {
                return tokens.clamp(self.least, self.most);
            }
        }
        self.most
    }

    pub(super) fn finish(self) -> Option<Lengths> {
        if self.count == 0 {
            return None;
        }
        let mean = self.sum as f64 / self.count as f64;
        let variance = self.squares as f64 / self.count as f64 - mean * mean;
        Some(Lengths {
            count: self.count,
            sum: self.sum,
            mean,
            std: variance.max(0.0).sqrt(),
            min: self.least,
            p10: self.quantile(0.10),
            p50: self.quantile(0.50),
            p90: self.quantile(0.90),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            max: self.most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let mut counter = LengthCounter::default();
        for tokens in 1..=10 {
            counter.add(tokens * 10);
        }
        let told = counter.finish().expect("there are lengths");
        assert_eq!((told.count, told.sum), (10, 550));
        assert_eq!((told.min, told.p10, told.p50), (10, 10, 50));
        assert_eq!(
            (told.p90, told.p95, told.p99, told.max),
            (90, 100, 100, 100)
        );
        assert!((told.mean - 55.0).abs() < 1e-9);
        // Variance of 10, 20, … 100: 825.
        assert!((told.std - 28.722_813).abs() < 1e-5, "{}", told.std);
    }

    #[test]
    fn very_long_ones_are_right_to_half_a_permille() {
        let mut counter = LengthCounter::default();
        for tokens in [3, 300_000, 1_000_000, 4_000_000_000] {
            counter.add(tokens);
        }
        let told = counter.finish().expect("there are lengths");
        assert_eq!((told.min, told.max), (3, 4_000_000_000));
        assert!((299_850..=300_000).contains(&told.p50), "{}", told.p50);
        assert_eq!(LengthCounter::default().finish(), None);
    }
}
