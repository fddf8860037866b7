//! When each request is due: arrival processes, lazy and seeded.
//!
//! A schedule never skips an arrival and never moves one: however late the world is, the next
//! call gives the next due time, which may lie in the past. Open processes know their times in
//! advance; a closed loop is due when a slot is free. The same seed gives the same times to the
//! nanosecond, whoever asks and when.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `load/schedule` | `Schedule`: `next(slot_free) -> Option<Arrival>`, lazy | say when each request is due; open processes ignore the argument, closed loops and sessions are due from it | sleep, know prompts, skip an arrival |

mod gaps;
mod profile;
mod ramp;
mod replay;
mod spread;
#[cfg(test)]
mod tests;
mod users;

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use self::gaps::Steps;
use self::profile::Profile;
use self::replay::Played;
use self::users::Users;
use crate::clock::MonoTime;
use crate::config::{Arrivals, Bounds, Gaps, Ramp, Replay};

pub use self::ramp::{CapRamp, CapStep};
pub use self::replay::Times;
pub use self::spread::start_within;

/// One request that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it is due.
    pub intended: MonoTime,
    /// Its place in a session; `None`: it is a session of its own.
    pub turn: Option<Turn>,
}

/// One request of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Number of the session in its phase, from 0.
    pub session: u64,
    /// Requests of the session before this one, those included that lie before the start.
    pub turn: u32,
    /// Whether the session ends with it.
    pub last: bool,
}

/// When a schedule begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// No arrival before this.
    pub start: MonoTime,
    /// How much of a UTC day had passed then; for profiles of a day.
    pub since_midnight: Duration,
    /// No arrival at or after the duration, none beyond the counts.
    pub bounds: Bounds,
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
    /// A process of rate 1 on the clock of the integrated rate.
    Open {
        steps: Steps,
        rate: Profile,
    },
    /// The k-th arrival is in burst ⌊k / size⌋.
    Burst {
        size: u32,
        every: Duration,
    },
    /// The k-th arrival is `late`, at most twice the jitter, after k · every.
    Jitter {
        every: Duration,
        jitter: Duration,
        random: Box<StdRng>,
    },
    Users(Users),
    Fixed(Played),
    /// Due when a slot is free.
    Closed,
}

impl Schedule {
    /// The arrivals of `arrivals` within `span`. `ramp` leads to the rate of a process that has
    /// one rate, and is ignored by others. `random` is used by processes with chance in them.
    ///
    /// # Panics
    ///
    /// If a smoothness is not finite and positive, which the configuration excludes.
    #[must_use]
    pub fn new((arrivals, ramp): (&Arrivals, Option<Ramp>), span: Span, random: StdRng) -> Self {
        let open = |gaps, rate: f64, random| Process::Open {
            steps: Steps::new(gaps, random),
            rate: ramp.map_or_else(|| Profile::constant(rate), |ramp| Profile::ramp(ramp, rate)),
        };
        let process = match arrivals {
            Arrivals::Constant { rate } => open(Gaps::Constant, *rate, random),
            Arrivals::Poisson { rate } => open(Gaps::Poisson, *rate, random),
            Arrivals::Gamma { rate, smoothness } => {
                let smoothness = *smoothness;
                open(Gaps::Gamma { smoothness }, *rate, random)
            }
            Arrivals::Burst { size, every } => Process::Burst {
                size: *size,
                every: *every,
            },
            Arrivals::Jitter { every, jitter } => Process::Jitter {
                every: *every,
                jitter: *jitter,
                random: Box::new(random),
            },
            Arrivals::Series { gaps, points } => Process::Open {
                steps: Steps::new(*gaps, random),
                rate: Profile::series(points),
            },
            Arrivals::Diurnal { gaps, rates } => Process::Open {
                steps: Steps::new(*gaps, random),
                rate: Profile::diurnal(rates.clone(), span.since_midnight),
            },
            Arrivals::Users { users, rate, turns } => {
                Process::Users(Users::new((*users, *turns), *rate, span.bounds.sessions))
            }
            Arrivals::Fixed { times, replay } => {
                let times = times.clone();
                let each = (0..times.len()).map(move |index| times[index]);
                Process::Fixed(Played::new(Box::new(each), *replay))
            }
            // The times of a file come with `recorded`.
            Arrivals::Trace { replay } => {
                Process::Fixed(Played::new(Box::new(std::iter::empty()), *replay))
            }
            Arrivals::Closed { .. } => Process::Closed,
        };
        Self {
            process,
            span,
            given: 0,
        }
    }

    /// The arrivals of a recording within `span`: `times` are read as they are needed.
    #[must_use]
    pub fn recorded((times, rules): (Times, Replay), span: Span) -> Self {
        Self {
            process: Process::Fixed(Played::new(times, rules)),
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
        let Bounds {
            requests,
            duration,
            sessions,
        } = self.span.bounds;
        let sessions = sessions.filter(|_| !matches!(self.process, Process::Users(_)));
        let most = [requests, sessions].into_iter().flatten().min();
        if most.is_some_and(|most| self.given >= most) {
            return None;
        }
        let arrival = self.due(slot_free)?;
        let end = duration.map(|duration| self.span.start + duration);
        if end.is_some_and(|end| arrival.intended >= end) {
            return None;
        }
        self.given += 1;
        Some(arrival)
    }

    fn due(&mut self, slot_free: MonoTime) -> Option<Arrival> {
        let mut turn = None;
        let after = match &mut self.process {
            Process::Open { steps, rate } => seconds(rate.advance(steps.next())?),
            Process::Burst { size, every } => nanos_times(*every, self.given / u64::from(*size)),
            Process::Jitter {
                every,
                jitter,
                random,
            } => {
                let late = jitter.mul_f64(2.0 * random.random_range(0.0..1.0));
                nanos_times(*every, self.given) + late
            }
            Process::Users(users) => {
                let (tick, of) = users.next()?;
                turn = Some(of);
                multiple(tick, users.rate())
            }
            Process::Fixed(played) => played.next()?,
            Process::Closed => slot_free.since(self.span.start),
        };
        Some(Arrival {
            intended: self.span.start + after,
            turn,
        })
    }
}

/// `k` times `span`, exactly, up to 584 years.
fn nanos_times(span: Duration, k: u64) -> Duration {
    let nanos = span.as_nanos().saturating_mul(u128::from(k));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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
