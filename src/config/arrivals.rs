//! When requests are due, as the program uses it: processes, ramps, phases.
//!
//! Values of these types are complete and in range; whoever makes them in code keeps to what
//! the fields say.

use std::sync::Arc;
use std::time::Duration;

use crate::measurement::PhaseKind;

/// When requests are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Every 1/rate seconds.
    Constant {
        /// Arrivals per second, finite and positive.
        rate: f64,
    },
    /// Exponential times between arrivals.
    Poisson {
        /// Mean arrivals per second, finite and positive.
        rate: f64,
    },
    /// Gamma-distributed times between arrivals.
    Gamma {
        /// Mean arrivals per second, finite and positive.
        rate: f64,
        /// Shape: 1 is Poisson, more is smoother, less comes in clusters.
        smoothness: f64,
    },
    /// Several at once, at regular times.
    Burst {
        /// Arrivals that are due together, at least 1.
        size: u32,
        /// From one burst to the next.
        every: Duration,
    },
    /// One around each multiple of an interval: the grid stays, so nothing drifts.
    Jitter {
        /// The interval.
        every: Duration,
        /// Each is up to this much before or after its place; at most half of `every`.
        jitter: Duration,
    },
    /// A rate that follows straight lines between points, and is flat outside.
    Series {
        /// Times between arrivals, at rate 1.
        gaps: Gaps,
        /// At least one, in order of time, with a positive last rate.
        points: Arc<[RatePoint]>,
    },
    /// A rate for each hour of the UTC day.
    Diurnal {
        /// Times between arrivals, at rate 1.
        gaps: Gaps,
        /// Arrivals per second from 0:00 on; not all zero.
        rates: Arc<[f64; 24]>,
    },
    /// Users who take turns.
    Users {
        /// At the same time, at least 1. Each sends every users/rate seconds.
        users: u32,
        /// Arrivals per second of all of them, finite and positive.
        rate: f64,
        /// Requests of a user before another one takes the place, at least 1; `None`: users work
        /// through the conversations of a file, one after the other.
        turns: Option<u32>,
    },
    /// Given times from the start of the phase on.
    Fixed {
        /// As recorded, in order.
        times: Arc<[Duration]>,
        /// How they are played.
        replay: Replay,
    },
    /// As the rows of the workload's file were recorded.
    Trace {
        /// How they are played.
        replay: Replay,
    },
    /// Always this many in flight: the next is due when a slot is free.
    Closed {
        /// Requests in flight, at least 1.
        concurrency: u32,
    },
}

/// How times between arrivals are spread around their mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gaps {
    /// All alike.
    Constant,
    /// Exponential.
    Poisson,
    /// Gamma-distributed.
    Gamma {
        /// Shape: 1 is Poisson, more is smoother, less comes in clusters.
        smoothness: f64,
    },
}

/// The rate at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// From the start of the phase.
    pub at: Duration,
    /// Arrivals per second, finite and not negative.
    pub rate: f64,
}

/// How recorded times are played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// Recorded times before this are left out.
    pub from: Option<Duration>,
    /// Recorded times after this are left out.
    pub to: Option<Duration>,
    /// Whether the first that is played is due at once; else what lies before it in the
    /// recording, or in its part after `from`, is waited for.
    pub shift: bool,
    /// Recorded seconds per second, finite and positive.
    pub speed: f64,
    /// Longer gaps of the recording are played as if they were this long.
    pub gap_cap: Option<Duration>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            from: None,
            to: None,
            shift: true,
            speed: 1.0,
            gap_cap: None,
        }
    }
}

/// A way up or down to a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// Where it begins; positive if the shape is exponential.
    pub from: f64,
    /// How long it takes.
    pub over: Duration,
    /// The way.
    pub shape: RampShape,
}

impl Ramp {
    /// A ramp of a rate up to `rate` from as little as its shape allows: from 0 in a straight
    /// line, from one of equal steps, from a hundredth.
    #[must_use]
    pub fn up_to(rate: f64, over: Duration, shape: RampShape) -> Self {
        let from = match shape {
            RampShape::Linear => 0.0,
            RampShape::Exponential => rate / 100.0,
            RampShape::Stepped { steps } => rate / (f64::from(steps) + 1.0),
        };
        Self { from, over, shape }
    }
}

/// The way of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampShape {
    /// A straight line.
    Linear,
    /// The same factor in the same time.
    Exponential,
    /// Levels of equal height and length: the first is where the ramp begins, and after the
    /// last comes the value it leads to.
    Stepped {
        /// How many levels, at least 1.
        steps: u32,
    },
}

/// The ramps of a phase; `None`: the value holds from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ramps {
    /// Of the rate, where the process has one rate.
    pub rate: Option<Ramp>,
    /// Of the requests in flight.
    pub concurrency: Option<Ramp>,
    /// Of the requests without a first token.
    pub prefill_concurrency: Option<Ramp>,
}

/// A planned cancellation of some requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cancellation {
    /// Chance of each request, above 0 and at most 1.
    pub share: f64,
    /// From the moment the request is written.
    pub after: Duration,
}

/// When a phase has no more arrivals; whichever comes first. Nothing set: it has no end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// After this many arrivals.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
    /// After this many sessions have begun and those have ended. A request of no session is one.
    pub sessions: Option<u64>,
}

impl Bounds {
    /// Whether there is no end.
    #[must_use]
    pub const fn is_endless(&self) -> bool {
        self.requests.is_none() && self.duration.is_none() && self.sessions.is_none()
    }
}

/// One phase of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseConfig {
    /// Unique within the probe.
    pub name: String,
    /// What it is for.
    pub kind: PhaseKind,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// Requests of this phase in flight at most; a closed loop has its own number.
    pub concurrency: Option<u32>,
    /// Requests of this phase without a first token at most.
    pub prefill_concurrency: Option<u32>,
    /// How these values are reached.
    pub ramps: Ramps,
    /// Requests that are given up on purpose.
    pub cancellation: Option<Cancellation>,
    /// When it ends.
    pub bounds: Bounds,
    /// After `bounds.duration` its requests have this long; then those in flight are cancelled,
    /// and arrivals still in line refused. `None`: as long as they take.
    pub grace: Option<Duration>,
    /// Whether the next phase begins at its end, without waiting for its requests.
    pub seamless: bool,
}

impl PhaseConfig {
    /// A measured phase of `arrivals` that has no end.
    #[must_use]
    pub fn endless(arrivals: Arrivals) -> Self {
        Self {
            name: PhaseKind::Profiling.name().to_owned(),
            kind: PhaseKind::Profiling,
            arrivals,
            concurrency: None,
            prefill_concurrency: None,
            ramps: Ramps::default(),
            cancellation: None,
            bounds: Bounds::default(),
            grace: None,
            seamless: false,
        }
    }

    /// Requests of this phase in flight at most.
    #[must_use]
    pub const fn cap(&self) -> Option<u32> {
        match self.arrivals {
            Arrivals::Closed { concurrency } => Some(concurrency),
            _ => self.concurrency,
        }
    }

    /// Mean arrivals until `span` has passed, at most; `None` where the server decides.
    #[must_use]
    pub fn expected(&self, span: Duration) -> Option<f64> {
        let span = self.bounds.duration.map_or(span, |most| most.min(span));
        let most = [self.bounds.requests, self.bounds.sessions];
        let most = most.into_iter().flatten().min().map(count);
        let open = self.arrivals.expected(span.as_secs_f64());
        match (open, most) {
            (Some(open), Some(most)) => Some(open.min(most)),
            (open, most) => open.or(most),
        }
    }
}

impl Arrivals {
    /// Whether arrivals are due only when a slot is free.
    #[must_use]
    pub const fn is_closed_loop(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// The time from one arrival to the next, where that is always the same: streams that begin
    /// together would fall together for ever.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Constant { rate } | Self::Users { rate, .. } => {
                Duration::try_from_secs_f64(rate.recip()).ok()
            }
            Self::Burst { every, .. } | Self::Jitter { every, .. } => Some(*every),
            _ => None,
        }
    }

    /// Mean arrivals in the first `seconds`; `None` where the server decides.
    fn expected(&self, seconds: f64) -> Option<f64> {
        Some(match self {
            Self::Constant { rate }
            | Self::Poisson { rate }
            | Self::Gamma { rate, .. }
            | Self::Users { rate, .. } => rate * seconds,
            Self::Burst { size, every } => f64::from(*size) * seconds / every.as_secs_f64(),
            Self::Jitter { every, .. } => seconds / every.as_secs_f64(),
            Self::Series { points, .. } => area(points, seconds),
            Self::Diurnal { rates, .. } => rates.iter().sum::<f64>() / 24.0 * seconds,
            Self::Fixed { times, .. } => count(times.len() as u64),
            Self::Closed { .. } | Self::Trace { .. } => return None,
        })
    }
}

/// The integral over the first `seconds` of the rate that `points` draw.
fn area(points: &[RatePoint], seconds: f64) -> f64 {
    let first = points.first().map_or(0.0, |point| point.rate);
    let last = points.last().map_or(0.0, |point| point.rate);
    let corners = points
        .iter()
        .map(|point| (point.at.as_secs_f64(), point.rate))
        .chain([(f64::INFINITY, last)]);
    let (mut sum, mut before) = (0.0, (0.0, first));
    for (at, rate) in corners {
        let end = at.min(seconds);
        let width = end - before.0;
        if width > 0.0 {
            let share = if at.is_finite() {
                width / (at - before.0)
            } else {
                0.0
            };
            let at_end = before.1 + (rate - before.1) * share;
            sum += width * f64::midpoint(before.1, at_end);
        }
        before = (at, rate);
    }
    sum
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a plan needs no more than 52 bits of a count"
)]
const fn count(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_arrivals_by_hand() {
        let series = |points: &[(u64, f64)]| Arrivals::Series {
            gaps: Gaps::Poisson,
            points: points
                .iter()
                .map(|(at, rate)| RatePoint {
                    at: Duration::from_secs(*at),
                    rate: *rate,
                })
                .collect(),
        };
        for (arrivals, seconds, expected) in [
            (Arrivals::Constant { rate: 2.0 }, 10.0, 20.0),
            (
                Arrivals::Burst {
                    size: 5,
                    every: Duration::from_secs(2),
                },
                10.0,
                25.0,
            ),
            // 10 s at 1/s, 10 s rising from 1/s to 3/s, then 10 s at 3/s.
            (series(&[(10, 1.0), (20, 3.0)]), 30.0, 60.0),
            // Half of the rise only: from 1/s to 2/s.
            (series(&[(0, 1.0), (20, 3.0)]), 10.0, 15.0),
        ] {
            let found = arrivals.expected(seconds).expect("it is open");
            assert!((found - expected).abs() < 1e-9, "{arrivals:?}: {found}");
        }
        assert_eq!(Arrivals::Closed { concurrency: 1 }.expected(1.0), None);
    }

    #[test]
    fn bounds_cut_what_is_expected() {
        let mut phase = PhaseConfig::endless(Arrivals::Constant { rate: 2.0 });
        phase.bounds.duration = Some(Duration::from_secs(10));
        let day = Duration::from_hours(24);
        assert_eq!(phase.expected(day), Some(20.0));
        phase.bounds.requests = Some(7);
        assert_eq!(phase.expected(day), Some(7.0));
        phase.arrivals = Arrivals::Closed { concurrency: 3 };
        assert_eq!(phase.expected(day), Some(7.0));
    }
}
