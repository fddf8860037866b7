//! Recorded times, played: a window of them, faster, without long idle gaps.
//!
//! Gaps are capped as they were recorded, before the speed applies. A recorded time that lies
//! before its predecessor is due with it: the order of a recording is kept.

use std::fmt;
use std::time::Duration;

use crate::config::Replay;

/// Recorded times in order of their rows, from the start of the recording.
pub type Times = Box<dyn Iterator<Item = Duration> + Send>;

/// The due times of a recording.
pub(super) struct Played {
    times: Times,
    rules: Replay,
    /// The last recorded time, and when it was played before the speed applied.
    last: Option<(Duration, Duration)>,
}

impl Played {
    pub(super) fn new(times: Times, rules: Replay) -> Self {
        Self {
            times,
            rules,
            last: None,
        }
    }

    /// The next due time, from the start.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let Replay {
            from,
            to,
            shift,
            speed,
            gap_cap,
        } = self.rules;
        let inside =
            |at: &Duration| from.is_none_or(|from| *at >= from) && to.is_none_or(|to| *at <= to);
        let recorded = self.times.by_ref().find(inside)?;
        let (before, played) = match self.last {
            Some(last) => last,
            None if shift => (recorded, Duration::ZERO),
            None => (from.unwrap_or_default(), Duration::ZERO),
        };
        let gap = recorded.saturating_sub(before);
        let played = played + gap_cap.map_or(gap, |cap| gap.min(cap));
        self.last = Some((recorded.max(before), played));
        // Without a speed no nanosecond is lost to rounding.
        Some(if (speed - 1.0).abs() < f64::EPSILON {
            played
        } else {
            Duration::try_from_secs_f64(played.as_secs_f64() / speed).unwrap_or(Duration::MAX)
        })
    }
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Played")
            .field("rules", &self.rules)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
