//! Monotonic time as plain offsets, and the one bridge to wall time.
//!
//! Everything inside the program is a [`MonoTime`]: nanoseconds since the origin of one
//! [`TimeAnchor`]. Differences between two of them are true durations. Wall time is looked
//! up once, when a value leaves the program, through [`TimeAnchor::wall`].
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `clock` | `MonoTime`, `TimeAnchor` | monotonic offsets; the one bridge to wall time | anything else |

use std::ops::Add;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Readings of both clocks this close together are a pair.
const TIGHT: Duration = Duration::from_micros(2);
/// How often a tighter pair is tried for.
const TRIES: u32 = 4;

/// An instant as nanoseconds since the origin of the program's [`TimeAnchor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The origin itself.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self` moved back by `span`, not before the origin.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for MonoTime {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

/// A duration in whole nanoseconds; spans over 584 years stop at the largest value.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The origin of all [`MonoTime`]s of a run.
///
/// Reads tokio's clock, so a paused runtime gives virtual time.
#[derive(Debug, Clone, Copy)]
pub struct TimeAnchor {
    origin: Instant,
}

impl TimeAnchor {
    /// An anchor whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Whether the clock of the runtime of the caller is the system's, and not a paused one.
    #[must_use]
    pub fn is_real() -> bool {
        #[expect(
            clippy::disallowed_methods,
            reason = "what tokio's clock is compared with, to know whether it stands"
        )]
        let [before, read, after] = [
            std::time::Instant::now(),
            Instant::now().into_std(),
            std::time::Instant::now(),
        ];
        (before..=after).contains(&read)
    }

    /// The instant of this call.
    #[must_use]
    pub fn now(&self) -> MonoTime {
        MonoTime(nanos(self.origin.elapsed()))
    }

    /// The tokio instant of `at`, to sleep until.
    #[must_use]
    pub fn instant(&self, at: MonoTime) -> Instant {
        self.origin + Duration::from_nanos(at.0)
    }

    /// `instant` of tokio's clock as an offset; the origin if it is earlier than that.
    #[must_use]
    pub fn at(&self, instant: Instant) -> MonoTime {
        MonoTime(nanos(instant.saturating_duration_since(self.origin)))
    }

    /// Pairs this moment of both clocks. Take one per value that leaves the program, so that
    /// all its instants are converted alike even if the wall clock steps meanwhile.
    #[must_use]
    pub fn wall(&self) -> WallAnchor {
        // Being set aside between the two readings would shift the pair: the tightest of a few.
        let (mut pair, mut width) = self.read_both();
        for _ in 1..TRIES {
            if width <= TIGHT {
                break;
            }
            let (again, narrower) = self.read_both();
            if narrower < width {
                (pair, width) = (again, narrower);
            }
        }
        pair
    }

    /// Both clocks, and how far apart the readings may be.
    fn read_both(&self) -> (WallAnchor, Duration) {
        let before = self.now();
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place where wall time is read"
        )]
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        let width = self.now().since(before);
        let pair = WallAnchor {
            mono: before + width / 2,
            unix_ns: nanos(unix),
        };
        (pair, width)
    }
}

/// One moment read on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct WallAnchor {
    mono: MonoTime,
    unix_ns: u64,
}

impl WallAnchor {
    /// A pair of readings taken elsewhere (tests, replays).
    #[must_use]
    pub const fn new(mono: MonoTime, unix_ns: u64) -> Self {
        Self { mono, unix_ns }
    }

    /// The moment of the pair on the monotonic clock.
    #[must_use]
    pub const fn mono(&self) -> MonoTime {
        self.mono
    }

    /// When the wall clock showed `unix_ns`, if that was not after this pair and not before the
    /// origin. The way back from the stamp of something that just happened; it is wrong by a
    /// step of the wall clock in between.
    #[must_use]
    pub const fn earlier(&self, unix_ns: u64) -> Option<MonoTime> {
        let Some(ago) = self.unix_ns.checked_sub(unix_ns) else {
            return None;
        };
        match self.mono.0.checked_sub(ago) {
            Some(nanos) => Some(MonoTime(nanos)),
            None => None,
        }
    }

    /// `at` as nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn unix_ns(&self, at: MonoTime) -> u64 {
        if at.0 >= self.mono.0 {
            self.unix_ns.saturating_add(at.0 - self.mono.0)
        } else {
            self.unix_ns.saturating_sub(self.mono.0 - at.0)
        }
    }

    /// `at` as a [`SystemTime`].
    #[must_use]
    pub fn system_time(&self, at: MonoTime) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.unix_ns(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_moves_with_monotonic_time_in_both_directions() {
        let wall = WallAnchor::new(MonoTime::from_nanos(1_000), 5_000_000);
        assert_eq!(wall.unix_ns(MonoTime::from_nanos(1_250)), 5_000_250);
        assert_eq!(wall.unix_ns(MonoTime::from_nanos(400)), 4_999_400);
    }

    #[test]
    fn a_stamp_of_the_wall_clock_is_placed_by_how_long_ago_it_was() {
        let wall = WallAnchor::new(MonoTime::from_nanos(1_000), 5_000_000);
        for (stamp, expected) in [
            (5_000_000, Some(1_000)),
            (4_999_400, Some(400)),
            (5_000_001, None),
            (4_998_999, None),
        ] {
            assert_eq!(wall.earlier(stamp).map(MonoTime::as_nanos), expected);
        }
    }

    #[test]
    fn a_difference_never_goes_below_zero() {
        let (early, late) = (MonoTime::from_nanos(5), MonoTime::from_nanos(9));
        assert_eq!(late.since(early), Duration::from_nanos(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
