//! When each request is due: arrival processes, lazy and seeded.
//!
//! A schedule never skips an arrival and never moves one: however late the world is, the next
//! call gives the next due time, which may lie in the past. Open processes know their times in
//! advance; a closed loop is due when a slot is free.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `load/schedule` | `Schedule`: `next(slot_free) -> Option<Arrival>`, lazy | say when each request is due; open processes ignore the argument, closed loops and sessions are due from it | sleep, know prompts, skip an arrival |

use std::time::Duration;

use rand::rngs::StdRng;
use rand_distr::{Distribution, Exp};

use crate::clock::MonoTime;
use crate::config::Arrivals;

/// One request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it is due.
    pub intended: MonoTime,
}

/// When a schedule begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// No arrival before this.
    pub start: MonoTime,
    /// No arrival at or after this.
    pub end: Option<MonoTime>,
    /// At most this many arrivals.
    pub count: Option<u64>,
}

/// A lazy sequence of due times.
#[derive(Debug)]
pub struct Schedule {
    process: Process,
    span: Span,
    given: u64,
}

#[derive(Debug)]
enum Process {
    /// The k-th arrival is at start + k / rate, without accumulated rounding.
    Constant { rate: f64 },
    /// Exponential gaps; `next` is the arrival to be given.
    Poisson {
        gap: Exp<f64>,
        next: MonoTime,
        random: Box<StdRng>,
    },
    /// Due when a slot is free.
    Closed,
}

/// A rate no float division can break: `config` allows only finite, positive rates.
const RATE_CHECKED: &str = "rates are checked to be finite and positive";

impl Schedule {
    /// The arrivals of `arrivals` within `span`. `random` is used by the Poisson process only.
    ///
    /// # Panics
    ///
    /// If a rate is not finite and positive, which the configuration excludes.
    #[must_use]
    pub fn new(arrivals: Arrivals, span: Span, mut random: StdRng) -> Self {
        let process = match arrivals {
            Arrivals::Constant { rate } => Process::Constant { rate },
            Arrivals::Poisson { rate } => {
                let gap = Exp::new(rate).expect(RATE_CHECKED);
                let next = span.start + seconds(gap.sample(&mut random));
                Process::Poisson {
                    gap,
                    next,
                    random: Box::new(random),
                }
            }
            Arrivals::Closed { .. } => Process::Closed,
        };
        Self {
            process,
            span,
            given: 0,
        }
    }

    /// Whether arrivals are due only when a slot is free.
    #[must_use]
    pub const fn is_closed_loop(&self) -> bool {
        matches!(self.process, Process::Closed)
    }

    /// The next arrival; `None` at the end of the span. `slot_free` is when a slot was free for
    /// it: the due time in a closed loop, ignored otherwise.
    pub fn next(&mut self, slot_free: MonoTime) -> Option<Arrival> {
        if self.span.count.is_some_and(|count| self.given >= count) {
            return None;
        }
        let intended = match &self.process {
            Process::Constant { rate } => self.span.start + multiple(self.given, *rate),
            Process::Poisson { next, .. } => *next,
            Process::Closed => slot_free,
        };
        if self.span.end.is_some_and(|end| intended >= end) {
            return None;
        }
        if let Process::Poisson { gap, next, random } = &mut self.process {
            *next = *next + seconds(gap.sample(random));
        }
        self.given += 1;
        Some(Arrival { intended })
    }
}

/// `k / rate` seconds, to the nanosecond for any k that a run can reach.
fn multiple(k: u64, rate: f64) -> Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a run gives far fewer than 2^52 arrivals"
    )]
    let seconds_since_start = k as f64 / rate;
    seconds(seconds_since_start)
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * 1_000_000)
    }

    fn open(arrivals: Arrivals, seed: u64, count: u64) -> Vec<MonoTime> {
        let span = Span {
            start: at(500),
            end: None,
            count: Some(count),
        };
        let mut schedule = Schedule::new(arrivals, span, StdRng::seed_from_u64(seed));
        std::iter::from_fn(|| schedule.next(at(0)))
            .map(|arrival| arrival.intended)
            .collect()
    }

    #[test]
    fn constant_arrivals_do_not_accumulate_rounding() {
        let times = open(Arrivals::Constant { rate: 3.0 }, 0, 3_000_001);
        assert_eq!(times[..2], [at(500), MonoTime::from_nanos(833_333_333)]);
        assert_eq!(times[3_000_000], at(1_000_000_500));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = open(Arrivals::Poisson { rate: 50.0 }, 7, 100_000);
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| pair[1].since(pair[0]).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / 99_999.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 99_999.0;
        assert!((mean - 0.02).abs() < 0.0003, "mean {mean}");
        assert!(
            (variance.sqrt() - 0.02).abs() < 0.0004,
            "deviation {}",
            variance.sqrt()
        );
    }

    #[test]
    fn the_seed_decides_every_arrival() {
        let process = Arrivals::Poisson { rate: 5.0 };
        assert_eq!(open(process, 1, 1000), open(process, 1, 1000));
        assert_ne!(open(process, 1, 1000), open(process, 2, 1000));
    }

    #[test]
    fn a_span_ends_before_its_end() {
        let span = Span {
            start: at(0),
            end: Some(at(300)),
            count: None,
        };
        let process = Arrivals::Constant { rate: 10.0 };
        let mut schedule = Schedule::new(process, span, StdRng::seed_from_u64(0));
        let times: Vec<_> = std::iter::from_fn(|| schedule.next(at(9_999))).collect();
        assert_eq!(
            times
                .iter()
                .map(|arrival| arrival.intended)
                .collect::<Vec<_>>(),
            [at(0), at(100), at(200)],
            "an arrival at the end belongs to the next span, and lateness skips none"
        );
    }

    #[test]
    fn a_closed_loop_is_due_when_a_slot_is_free() {
        let span = Span {
            start: at(0),
            end: Some(at(50)),
            count: Some(3),
        };
        let process = Arrivals::Closed { concurrency: 2 };
        let mut schedule = Schedule::new(process, span, StdRng::seed_from_u64(0));
        assert_eq!(schedule.next(at(4)), Some(Arrival { intended: at(4) }));
        assert_eq!(schedule.next(at(9)), Some(Arrival { intended: at(9) }));
        assert_eq!(schedule.next(at(50)), None);
    }
}
