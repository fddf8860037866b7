//! Requests that stand for the values of a histogram: a few, recent, spread over its buckets.
//!
//! At most [`MOST_EXEMPLARS`] are kept of one series. A newcomer takes the place of the one in
//! its own fine bucket; else, where all places are taken, that of the oldest one in the band
//! (half a factor of two, as wide as a classic bucket) that holds the most. So a rare slow
//! request stays while the many usual ones replace each other. Nothing is allocated after the
//! first. Only requests whose span is exported are offered: an exemplar leads to a span.

use super::grid;
use crate::measurement::TraceIds;

/// Exemplars kept of one series.
pub const MOST_EXEMPLARS: usize = 10;

/// Fine buckets of a band.
const BAND: i16 = grid::PER_OCTAVE / 2;

/// The span of a request, if it leaves the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportedSpan {
    /// Its ids.
    pub ids: TraceIds,
    /// When the request ended, nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// One value and the request that it was measured on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    /// As it was counted; +∞ for a failure.
    pub value: f64,
    /// The request.
    pub span: ExportedSpan,
}

/// The exemplars of one series, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Exemplars {
    /// Each with its fine bucket.
    kept: Vec<(i16, Exemplar)>,
}

impl Exemplars {
    /// None, without storage.
    pub const NONE: Self = Self { kept: Vec::new() };

    /// Takes in `exemplar`. What no histogram takes, NaN or less than 0, is not kept.
    pub fn offer(&mut self, exemplar: Exemplar) {
        if exemplar.value.is_nan() || exemplar.value < 0.0 {
            return;
        }
        if self.kept.capacity() == 0 {
            self.kept.reserve_exact(MOST_EXEMPLARS);
        }
        let bucket = bucket(exemplar.value);
        let same = self.kept.iter().position(|(other, _)| *other == bucket);
        let leaving = same
            .or_else(|| (self.kept.len() == MOST_EXEMPLARS).then(|| self.most_dispensable(bucket)));
        if let Some(place) = leaving {
            self.kept.remove(place);
        }
        self.kept.push((bucket, exemplar));
    }

    /// The oldest in the band that would hold the most if one in `newcomer` came.
    fn most_dispensable(&self, newcomer: i16) -> usize {
        let crowd = |of: i16| {
            let all = self.kept.iter().map(|(bucket, _)| *bucket);
            let others = all.chain([newcomer]);
            others.filter(|other| band(*other) == band(of)).count()
        };
        // The first of those with the most, and not the last, as `max_by_key` has it.
        let mut found = (0, 0);
        for (place, (bucket, _)) in self.kept.iter().enumerate() {
            let crowd = crowd(*bucket);
            if crowd > found.1 {
                found = (place, crowd);
            }
        }
        found.0
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Exemplar> {
        self.kept.iter().map(|(_, exemplar)| exemplar)
    }

    /// The newest in the bucket above `above`, up to and with `up_to`.
    #[must_use]
    pub fn newest_in(&self, above: f64, up_to: f64) -> Option<&Exemplar> {
        let newest_first = self.kept.iter().rev().map(|(_, exemplar)| exemplar);
        let mut inside =
            newest_first.filter(|exemplar| exemplar.value > above && exemplar.value <= up_to);
        inside.next()
    }
}

/// The fine bucket of a value; the zero bucket and that of +∞ stand at the ends.
fn bucket(value: f64) -> i16 {
    if value <= grid::ZERO_THRESHOLD {
        -grid::INFINITE
    } else if value.is_infinite() {
        grid::INFINITE
    } else {
        grid::index(value).min(grid::LAST_FINITE)
    }
}

/// The band of a fine bucket: both end at the same bounds.
const fn band(bucket: i16) -> i16 {
    (bucket - 1).div_euclid(BAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exemplar of `value` that came as number `n`.
    fn exemplar(n: u64, value: f64) -> Exemplar {
        let ids = TraceIds {
            trace: u128::from(n),
            span: n,
        };
        let span = ExportedSpan { ids, unix_ns: n };
        Exemplar { value, span }
    }

    fn kept_of(values: &[f64]) -> Exemplars {
        let mut kept = Exemplars::NONE;
        for (n, value) in (1..).zip(values) {
            kept.offer(exemplar(n, *value));
        }
        kept
    }

    fn numbers(kept: &Exemplars) -> Vec<u64> {
        kept.iter().map(|one| one.span.unix_ns).collect()
    }

    #[test]
    fn the_newest_of_a_fine_bucket_stands_for_it() {
        // 0.5 ends a bucket whose lower bound is 0.4893; 0.501 is in the next one.
        let kept = kept_of(&[0.49, 0.5, 0.501, 0.495]);
        assert_eq!(numbers(&kept), [3, 4]);
    }

    #[test]
    fn a_rare_slow_one_stays_among_many_usual_ones() {
        // Number 1 and 2 are rare; then a thousand spread over 1.0 to 1.4, one band.
        let mut values = vec![30.0, 0.01];
        values.extend((1..=1_000).map(|n| 1.0 + f64::from((n * 7) % 400 + 1) / 1_000.0));
        let kept = kept_of(&values);
        let found = numbers(&kept);
        assert_eq!(found.len(), 10);
        assert_eq!(found[..2], [1, 2]);
        assert!(found[2..].iter().all(|n| *n > 900), "recent: {found:?}");
    }

    #[test]
    fn a_newcomer_replaces_the_one_of_its_band_where_every_band_has_one() {
        // Ten bands: 1.1 to 563.2, each twice the one before, so every second band.
        let mut values: Vec<f64> = (0..10).map(|n| 1.1 * f64::from(1 << n)).collect();
        values.push(1.1 * 8.0 * 1.1);
        assert_eq!(numbers(&kept_of(&values)), [1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
        // An eleventh band: the oldest of all goes.
        values.push(0.3);
        assert_eq!(
            numbers(&kept_of(&values)),
            [2, 3, 5, 6, 7, 8, 9, 10, 11, 12]
        );
    }

    #[test]
    fn an_exemplar_is_found_in_its_own_bucket_only() {
        let kept = kept_of(&[0.25, 0.3, 0.26, f64::INFINITY, 0.0]);
        let newest = |above, up_to| {
            let found = kept.newest_in(above, up_to);
            found.map(|one| one.span.unix_ns)
        };
        assert_eq!(newest(0.25, 0.35), Some(3), "0.26 came after 0.3");
        assert_eq!(newest(0.27, 0.35), Some(2));
        assert_eq!(newest(0.2, 0.25), Some(1), "a bound belongs to its bucket");
        assert_eq!(newest(f64::NEG_INFINITY, 0.1), Some(5));
        assert_eq!(newest(90.0, f64::INFINITY), Some(4));
        assert_eq!(newest(0.35, 90.0), None);
    }

    #[test]
    fn what_no_histogram_takes_is_not_kept() {
        assert!(numbers(&kept_of(&[f64::NAN, -1.0])).is_empty());
    }

    #[test]
    fn no_storage_beyond_the_first() {
        let mut kept = kept_of(&[1.0]);
        let room = kept.kept.capacity();
        assert_eq!(room, MOST_EXEMPLARS);
        for n in 2..500_u32 {
            kept.offer(exemplar(u64::from(n), f64::from(n)));
        }
        assert_eq!((kept.kept.len(), kept.kept.capacity()), (room, room));
    }
}
