//! Drawing lengths, one after the other, from one seeded source.
//!
//! What a length of each kind is, `config` says; here is how it is drawn. The same seed gives
//! the same lengths, whoever asks and when. Numbers outside of the range are drawn again, at
//! most a thousand times: even of the widest distribution one number in twenty lies within the
//! range, and the bound is there for the proof.

use rand::RngExt;
use rand::rngs::StdRng;
use rand_distr::{Distribution, LogNormal, Normal};

use crate::config::{Lengths, MOST_LENGTH, SizePairs};

/// Numbers drawn for one length.
const MOST_DRAWS: u32 = 1_000;

/// Draws lengths of one distribution.
#[derive(Debug)]
pub struct LengthSource(Kind);

#[derive(Debug)]
enum Kind {
    Fixed(u32),
    Normal(Normal<f64>),
    LogNormal(LogNormal<f64>),
    Uniform(u32, u32),
    OneOf(Weighted<u32>),
    Mix(Weighted<LengthSource>),
}

impl LengthSource {
    /// Lengths as `lengths` describes them.
    ///
    /// # Panics
    ///
    /// If a mean or a standard deviation is not finite, which the configuration excludes.
    #[must_use]
    pub fn new(lengths: &Lengths) -> Self {
        let finite = "means and standard deviations are checked to be in range";
        Self(match lengths {
            Lengths::Fixed(length) => Kind::Fixed(*length),
            Lengths::Normal { mean, sd } => Kind::Normal(Normal::new(*mean, *sd).expect(finite)),
            Lengths::LogNormal { mean, sd } => {
                let (mu, sigma) = Lengths::of_logarithm(*mean, *sd);
                Kind::LogNormal(LogNormal::new(mu, sigma).expect(finite))
            }
            Lengths::Uniform { least, most } => Kind::Uniform(*least, *most),
            Lengths::OneOf(values) => Kind::OneOf(Weighted::new(values, |value| *value)),
            Lengths::Mix(parts) => Kind::Mix(Weighted::new(parts, Self::new)),
        })
    }

    /// The next length, in tokens, within 1..=[`MOST_LENGTH`].
    pub fn next(&self, random: &mut StdRng) -> u32 {
        match &self.0 {
            Kind::Fixed(length) => *length,
            Kind::Normal(normal) => rounded(normal, random).unwrap_or(length(normal.mean())),
            Kind::LogNormal(log_normal) => rounded(log_normal, random).unwrap_or(1),
            Kind::Uniform(least, most) => random.random_range(*least..=*most),
            Kind::OneOf(values) => *values.choose(random),
            Kind::Mix(parts) => parts.choose(random).next(random),
        }
    }
}

/// Draws pairs of prompt and output lengths.
#[derive(Debug)]
pub struct PairSource(Weighted<(LengthSource, LengthSource)>);

impl PairSource {
    /// Pairs as `pairs` describes them.
    #[must_use]
    pub fn new(pairs: &SizePairs) -> Self {
        let parts = pairs.pairs().iter().map(|pair| (pair.percent, pair));
        let parts: Vec<_> = parts.collect();
        Self(Weighted::new(&parts, |pair| {
            let (input, output) = (&pair.input, &pair.output);
            (LengthSource::new(input), LengthSource::new(output))
        }))
    }

    /// Prompt and output tokens of the next request.
    pub fn next(&self, random: &mut StdRng) -> (u32, u32) {
        let (input, output) = self.0.choose(random);
        (input.next(random), output.next(random))
    }
}

/// Things by weight.
#[derive(Debug)]
struct Weighted<T> {
    /// Weights up to and with each thing.
    sums: Vec<f64>,
    /// At least one.
    things: Vec<T>,
}

impl<T> Weighted<T> {
    fn new<P>(parts: &[(f64, P)], thing: impl Fn(&P) -> T) -> Self {
        let sums = parts.iter().scan(0.0, |sum, (weight, _)| {
            *sum += weight;
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
            things: parts.iter().map(|(_, part)| thing(part)).collect(),
        }
    }

    /// One of them; none whose weight is zero.
    fn choose(&self, random: &mut StdRng) -> &T {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let drawn = random.random::<f64>() * all;
        let index = self.sums.partition_point(|sum| *sum <= drawn);
        // Rounding may give all of the weight: then it is the last that has some.
        let last = self.sums.partition_point(|sum| *sum < all);
        &self.things[index.min(last)]
    }
}

/// A number of `distribution` that is a length once it is rounded.
fn rounded(distribution: &impl Distribution<f64>, random: &mut StdRng) -> Option<u32> {
    (0..MOST_DRAWS)
        .map(|_| distribution.sample(random).round())
        .find(|drawn| (1.0..=f64::from(MOST_LENGTH)).contains(drawn))
        .map(length)
}

fn length(number: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "moved into a range that holds positive numbers below 2^32"
    )]
    let length = number.round().clamp(1.0, f64::from(MOST_LENGTH)) as u32;
    length
}

#[cfg(test)]
mod tests;
