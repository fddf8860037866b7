//! The bucket grid: bucket `i` holds the values in (2^((i−1)/32), 2^(i/32)].
//!
//! This is base 2, schema 5: the grid of Prometheus native histograms, and, with indexes one
//! lower, that of OTLP exponential histograms of scale 5. The index is found by table and
//! comparison, never by a logarithm, so that a value equal to a bound is always in the bucket
//! below it. Counts live in [`Histogram`](super::Histogram).

/// Buckets per factor of two are 2^`SCHEMA`.
pub const SCHEMA: i32 = 5;

/// Buckets per factor of two.
pub(super) const PER_OCTAVE: i16 = 1 << SCHEMA;

/// Values up to this, 2^−20, are in the zero bucket.
pub const ZERO_THRESHOLD: f64 = 1.0 / 1_048_576.0;

/// The last bucket for finite values; its upper bound is 2^(639/32).
pub(super) const LAST_FINITE: i16 = 20 * PER_OCTAVE - 1;

/// The bucket of +∞, whose upper bound is 2^20.
pub const INFINITE: i16 = 20 * PER_OCTAVE;

/// 2^(k/32) for k = 0…31, each the double nearest to the true value.
const MANTISSAS: [f64; 32] = [
    1.0,
    1.021_897_148_654_116_6,
    1.044_273_782_427_413_8,
    1.067_140_400_676_823_7,
    1.090_507_732_665_257_7,
    1.114_386_742_595_892_4,
    1.138_788_634_756_691_6,
    1.163_724_858_777_577_5,
    1.189_207_115_002_721,
    1.215_247_359_980_469,
    1.241_857_812_073_484,
    1.269_050_957_191_733_2,
    1.296_839_554_651_009_6,
    1.325_236_643_159_741_3,
    1.354_255_546_936_892_7,
    1.383_909_881_963_832,
    std::f64::consts::SQRT_2,
    1.445_180_806_977_046_7,
    1.476_826_145_939_499_3,
    1.509_164_427_593_422_8,
    1.542_210_825_407_940_7,
    1.575_980_845_107_886_5,
    1.610_490_331_949_254_3,
    1.645_755_478_153_965,
    1.681_792_830_507_429,
    1.718_619_298_122_478,
    1.756_252_160_373_299_5,
    1.794_709_075_003_107_2,
    1.834_008_086_409_342_4,
    1.874_167_634_110_3,
    1.915_206_561_397_147_4,
    1.957_144_124_175_400_2,
];

/// The bucket of a finite value above [`ZERO_THRESHOLD`]. May lie above [`LAST_FINITE`].
pub(super) fn index(value: f64) -> i16 {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = value.to_bits();
    let exponent = i16::try_from(bits >> 52).expect("a positive double has 11 bits here") - 1023;
    let mantissa = f64::from_bits((bits & FRACTION) | 1.0_f64.to_bits());
    let below = MANTISSAS.partition_point(|bound| *bound < mantissa);
    // Clamped above the grid, so that the largest doubles do not leave the range of an index.
    exponent.min(30) * PER_OCTAVE + i16::try_from(below).expect("the table has 32 entries")
}

/// The upper bound of bucket `index`, which is the lower bound of the next.
#[expect(clippy::missing_panics_doc, reason = "a remainder is never negative")]
#[must_use]
pub fn upper_bound(index: i16) -> f64 {
    let within = usize::try_from(index.rem_euclid(PER_OCTAVE)).expect("a remainder is positive");
    MANTISSAS[within] * 2.0_f64.powi(i32::from(index.div_euclid(PER_OCTAVE)))
}

/// Bounds of a classic histogram: 2^(k/2) for k from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassicRange {
    from: i16,
    to: i16,
}

impl ClassicRange {
    /// Most bounds of one histogram: more would make a page of 50 streams too large.
    pub const MAX_BOUNDS: i16 = 30;

    /// From 2^(`from`/2) to 2^(`to`/2).
    ///
    /// # Panics
    ///
    /// If there are more than [`Self::MAX_BOUNDS`] bounds, none, or one outside 2^−19…2^19.
    #[must_use]
    pub const fn new(from: i16, to: i16) -> Self {
        assert!(from <= to && to - from < Self::MAX_BOUNDS && from >= -38 && to <= 38);
        Self { from, to }
    }

    /// The grid bucket that ends at each bound, in order.
    pub(super) fn last_buckets(self) -> impl Iterator<Item = i16> {
        (self.from..=self.to).map(|half| half * (PER_OCTAVE / 2))
    }

    /// The bounds in order; +Inf is not among them.
    pub fn bounds(self) -> impl Iterator<Item = f64> {
        self.last_buckets().map(upper_bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_in_the_bucket_below_it_and_the_next_float_is_not() {
        for i in -400..400 {
            let bound = upper_bound(i);
            assert_eq!(index(bound), i, "bound {bound}");
            assert_eq!(index(bound.next_up()), i + 1, "above {bound}");
        }
    }

    #[test]
    fn bounds_are_roots_of_two() {
        let mut root = 2.0_f64;
        for step in [16, 8, 4, 2, 1] {
            root = root.sqrt();
            let bound = upper_bound(step);
            assert!(
                (bound / root - 1.0).abs() < 1e-15,
                "2^({step}/32) is {bound}"
            );
        }
        for i in -640_i16..=640 {
            let ratio = upper_bound(i) / upper_bound(i - 1);
            assert!(
                (ratio / root - 1.0).abs() < 1e-14,
                "bucket {i} has ratio {ratio}"
            );
        }
    }

    #[test]
    fn known_values_lie_in_known_buckets() {
        for (value, bucket) in [
            (1.0, 0),
            (2.0, 32),
            (0.5, -32),
            (1.5, 19),
            (0.001, -318),
            (0.182, -78),
            (1_048_576.0, 640),
        ] {
            assert_eq!(index(value), bucket, "value {value}");
        }
    }

    #[test]
    fn classic_bounds_are_half_powers_of_two() {
        let bounds: Vec<f64> = ClassicRange::new(-2, 3).bounds().collect();
        let wanted = [
            0.5,
            std::f64::consts::FRAC_1_SQRT_2,
            1.0,
            std::f64::consts::SQRT_2,
            2.0,
            2.828_427_124_746_190_3,
        ];
        assert_eq!(bounds.len(), 6);
        for (bound, wanted) in bounds.iter().zip(wanted) {
            assert!((bound - wanted).abs() < 1e-15);
        }
    }
}
