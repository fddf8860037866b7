//! Power that all GPUs of a target drew over a span of time, from their energy counters where they
//! have them, else from their power.
//!
//! Exporters collect less often than they are read, 30 s is usual: a counter that reads as before
//! was not collected anew. So a span begins and ends with readings at which it had moved, and is
//! not cut at the instants that were asked for.

use std::time::Duration;

use super::GpuHistory;
use crate::clock::MonoTime;
use crate::measurement::GpuState;

/// Less than this says nothing: it is near the time between two collections.
const LEAST: Duration = Duration::from_secs(20);

/// Where a power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerSource {
    /// Energy counters: nothing between two readings is missed.
    EnergyCounter,
    /// Power at the moment of each reading, each of which holds until the next.
    Power,
}

impl PowerSource {
    /// Its name in labels and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EnergyCounter => "energy_counter",
            Self::Power => "power",
        }
    }
}

/// Mean power of all GPUs of a target over a span of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// Joules a second, of all together.
    pub watts: f64,
    /// Where that comes from.
    pub source: PowerSource,
    /// Its beginning.
    pub from: MonoTime,
    /// Its end.
    pub until: MonoTime,
    /// How much of the span is known: that in which a counter began anew is not.
    pub known: Duration,
}

/// From one collection of the counters to the next.
struct Step {
    from: MonoTime,
    until: MonoTime,
    joules: f64,
}

impl GpuHistory {
    /// What the GPUs drew from `from` until `until`, or a span that is as near to that as readings
    /// allow. `None` if one of them does not say its part, if the newest reading is too old, or
    /// if fewer than 20 s are known, or less than half of the span.
    #[must_use]
    pub fn drawn(&self, (from, until): (MonoTime, MonoTime)) -> Option<Drawn> {
        let newest = self.newest.as_ref()?;
        if until.since(newest.at) > self.rules.max_age {
            return None;
        }
        // One or the other from the first reading on: where a counter is there, power that is looked
        // at now and then would say something else.
        let counts = newest.state().energy_j.is_some();
        let enough = |drawn: &Drawn| {
            drawn.known >= LEAST && drawn.known * 2 >= drawn.until.since(drawn.from)
        };
        let drawn = if counts {
            self.counted((from, until))
        } else {
            self.integrated((from, until))
        };
        drawn.filter(enough)
    }

    fn counted(&self, (from, until): (MonoTime, MonoTime)) -> Option<Drawn> {
        // The step that `from` lies in began before it, but no longer before it than all is long.
        let earliest = from.minus(until.since(from));
        let states = self.states.iter();
        let read = states.filter(|(at, _)| *at >= earliest && *at <= until);
        let steps = steps(read.map(|(at, state)| (*at, state)));
        let within: Vec<Step> = steps.into_iter().filter(|step| step.until > from).collect();
        let (first, last) = (within.first()?, within.last()?);
        let known: Duration = within.iter().map(|step| step.until.since(step.from)).sum();
        let joules: f64 = within.iter().map(|step| step.joules).sum();
        Some(Drawn {
            watts: joules / known.as_secs_f64(),
            source: PowerSource::EnergyCounter,
            from: first.from,
            until: last.until,
            known,
        })
    }

    fn integrated(&self, (from, until): (MonoTime, MonoTime)) -> Option<Drawn> {
        let window = self.window(from, until);
        let (first, _) = self.states.front()?;
        Some(Drawn {
            watts: window.power_w?,
            source: PowerSource::Power,
            from: from.max(*first),
            until,
            known: Duration::try_from_secs_f64(window.power_known_s).ok()?,
        })
    }
}

/// The steps between readings at which the counters had moved. What lies between a reading and one
/// of other GPUs, or of counters that fell, is in none.
fn steps<'a>(states: impl Iterator<Item = (MonoTime, &'a GpuState)>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before: Option<(f64, u32)> = None;
    let mut moved = None;
    for (at, state) in states {
        let Some(energy) = state.energy_j else {
            continue;
        };
        let known = before.replace((energy, state.gpus));
        // When the first reading was collected is not known.
        let Some((known, gpus)) = known else {
            continue;
        };
        let joules = energy - known;
        let goes_on = gpus == state.gpus && joules >= 0.0;
        if goes_on && joules <= 0.0 {
            continue;
        }
        if let Some(from) = moved.replace(at)
            && goes_on
        {
            steps.push(Step {
                from,
                until: at,
                joules,
            });
        }
    }
    steps
}
