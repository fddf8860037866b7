//! Growth of counters between the pages of a window, with restarts of the server in between.

use std::time::Duration;

use crate::measurement::Sample;

/// The growth of one counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterWindow {
    /// By how much it grew.
    pub delta: f64,
    /// From the first page that has it to the last.
    pub span: Duration,
    /// Times that it began anew at zero.
    pub resets: u32,
}

impl CounterWindow {
    /// Growth per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.delta / self.span.as_secs_f64()
    }
}

/// A start that differs by less is the same: some derive it from clocks that are adjusted.
pub(in crate::aggregate) const JITTER: f64 = 2.0;

/// Whether the process of `after` is another one than that of `before`, where both tell.
pub(super) fn restarted(before: &Sample, after: &Sample) -> bool {
    let start = |sample: &Sample| sample.page.totals.process_start;
    matches!((start(before), start(after)), (Some(a), Some(b)) if b > a + JITTER)
}

/// Growth of what `value` reads from each of `pages`, ascending in time. A value that falls, or
/// one of a new process, began at zero. `None` with fewer than two pages that have it: how much
/// a counter grew before it was first seen is not known.
pub(super) fn growth(
    pages: &[&Sample],
    value: impl Fn(&Sample) -> Option<f64>,
) -> Option<CounterWindow> {
    let mut known = pages
        .iter()
        .filter_map(|sample| Some((*sample, value(sample)?)));
    let (first, mut last_value) = known.next()?;
    let mut last = first;
    let (mut delta, mut resets) = (0.0, 0);
    for (sample, now) in known {
        if now < last_value || restarted(last, sample) {
            delta += now;
            resets += 1;
        } else {
            delta += now - last_value;
        }
        (last, last_value) = (sample, now);
    }
    let span = last.at.since(first.at);
    (!span.is_zero()).then_some(CounterWindow {
        delta,
        span,
        resets,
    })
}
