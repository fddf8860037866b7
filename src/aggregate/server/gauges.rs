//! Gauges over a window: each reading holds until the next one, or until it is too old.

use std::time::Duration;

use crate::clock::MonoTime;

/// One gauge over a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaugeWindow {
    /// Mean over the time for which it is known.
    pub mean: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Value at the end, or the last one known.
    pub last: f64,
    /// Share of the window for which it is known, 0 to 1.
    pub known: f64,
}

/// The readings `(at, value)`, ascending in time, between `from` and `to`. A reading from before
/// `from` may be the first one. `None` where nothing is known.
pub(super) fn weighted(
    readings: impl Iterator<Item = (MonoTime, Option<f64>)>,
    (from, to): (MonoTime, MonoTime),
    max_age: Duration,
) -> Option<GaugeWindow> {
    let mut sum = Weighted::default();
    let mut readings = readings.peekable();
    while let Some((at, value)) = readings.next() {
        let next = readings.peek().map_or(to, |(next, _)| *next);
        let too_old = MonoTime::from_nanos(at.as_nanos().saturating_add(nanos(max_age)));
        let (start, end) = (at.max(from), next.min(to).min(too_old));
        if let Some(value) = value
            && at <= to
            && start <= end
        {
            sum.add(value, end.since(start).as_secs_f64());
        }
    }
    sum.finish(to.since(from).as_secs_f64())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Default)]
struct Weighted {
    seconds: f64,
    area: f64,
    /// Least, greatest and last value.
    seen: Option<(f64, f64, f64)>,
}

impl Weighted {
    fn add(&mut self, value: f64, seconds: f64) {
        self.seconds += seconds;
        self.area += value * seconds;
        let (min, max, _) = self.seen.unwrap_or((value, value, value));
        self.seen = Some((min.min(value), max.max(value), value));
    }

    fn finish(self, whole: f64) -> Option<GaugeWindow> {
        let (min, max, last) = self.seen?;
        let mean = if self.seconds > 0.0 {
            (self.area / self.seconds).clamp(min, max)
        } else {
            last
        };
        let known = if whole > 0.0 {
            (self.seconds / whole).min(1.0)
        } else {
            1.0
        };
        Some(GaugeWindow {
            mean,
            min,
            max,
            last,
            known,
        })
    }
}
