//! Where in its interval a stream begins, so that many of them do not fall together.
//!
//! Decided by names alone: it is the same after a restart, and another one for another stream and
//! on another machine.

use std::time::Duration;

/// A part of `interval`, from 0 up to it, that `names` decide.
#[must_use]
pub fn start_within(interval: Duration, names: [&str; 3]) -> Duration {
    /// 2^32.
    const WHOLE: f64 = 4_294_967_296.0;
    let high = u32::try_from(hash(names) >> 32).unwrap_or(0);
    interval.mul_f64(f64::from(high) / WHOLE)
}

/// FNV-1a over the names, each with its end, mixed so that near names lie far apart.
fn hash(names: [&str; 3]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for name in names {
        for byte in name.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_and_spread_evenly() {
        let minute = Duration::from_mins(1);
        let mut tenths = [0; 10];
        for target in 0..1_000 {
            let target = format!("target-{target}");
            let names = ["gpu-3", target.as_str(), "short-chat"];
            let start = start_within(minute, names);
            assert_eq!(start, start_within(minute, names));
            assert!(start < minute);
            tenths[usize::try_from(start.as_secs() / 6).expect("small")] += 1;
        }
        // 100 each, standard deviation 9.5.
        assert!(
            tenths.iter().all(|count| (60..140).contains(count)),
            "{tenths:?}"
        );
        let one = start_within(minute, ["a", "b", "c"]);
        for other in [["ab", "", "c"], ["b", "a", "c"], ["a", "b", "d"]] {
            assert_ne!(one, start_within(minute, other), "{other:?}");
        }
    }
}
