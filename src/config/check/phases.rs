//! The phases of a probe: one that has no end, or a list of them.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{Arrivals, Bounds, Cancellation, PhaseConfig, Ramp, RampShape, Ramps};
use super::arrivals::{LONGEST_GRACE, LONGEST_PHASE, MOST_RATE, arrivals, within};
use super::{MILLISECOND, MOST_IN_FLIGHT, check_unique, items, name, small};
use crate::measurement::PhaseKind;

/// Arrivals of one phase.
const MOST_REQUESTS: u64 = 1_000_000_000_000;
/// Levels of a stepped ramp.
const MOST_STEPS: u64 = 10_000;

/// The keys that stand in the probe itself where it has one phase only.
const OF_ONE: [&str; 4] = ["arrivals", "prefill_concurrency", "ramp", "cancel"];

/// What the phases of a probe have to fit.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// Requests in flight of the target.
    pub(super) in_flight: u32,
    /// Whether tokens can be seen as they come.
    pub(super) streaming: bool,
}

/// The phases of the probe at `section`; `None` if any is wrong.
pub(super) fn phases<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    around: Around,
) -> Option<Vec<PhaseConfig>> {
    if section.get("phases").is_none() {
        reader.require(section, "arrivals");
        let mut phase = parts(reader, section, around)?;
        PhaseKind::Profiling.name().clone_into(&mut phase.name);
        return Some(vec![phase]);
    }
    for key in OF_ONE {
        if let Some(node) = section.get(key) {
            let hint = "with `phases` each phase has its own";
            reader.refuse(&node, &Refusal::new(Problem::Conflict).hint(hint));
        }
    }
    let sections: Vec<_> = items(reader, section, "phases")?
        .into_iter()
        .map(|node| reader.section(node, &keys::PHASE))
        .collect();
    let last = sections.len() - 1;
    let read: Vec<_> = sections
        .iter()
        .enumerate()
        .map(|(index, section)| {
            let section = section.as_ref()?;
            let phase = phase(reader, section, around)?;
            if phase.bounds.is_endless() && index < last {
                let wanted = "an end, since another phase follows: a count or a duration";
                reader.missing(section, ("duration", wanted));
                return None;
            }
            Some(phase)
        })
        .collect();
    let sections: Vec<Section<'a>> = sections.into_iter().flatten().collect();
    check_unique(reader, &sections);
    let phases: Vec<PhaseConfig> = read.into_iter().collect::<Option<_>>()?;
    if !phases.iter().any(|phase| phase.kind.is_measured()) {
        let refusal = Refusal::new(Problem::Missing).wanted("one phase with `kind: profiling`");
        reader.refuse(&section.get("phases")?, &refusal);
        return None;
    }
    Some(phases)
}

/// One phase of a list.
fn phase<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    around: Around,
) -> Option<PhaseConfig> {
    let name = reader.required(section, "name", name);
    let kind = reader.optional(section, "kind", |given| {
        let kinds = [PhaseKind::WarmUp, PhaseKind::Profiling, PhaseKind::CoolDown];
        given.word(&kinds.map(|kind| (kind.name(), kind)), &[])
    });
    reader.require(section, "arrivals");
    let seamless = reader.optional(section, "seamless", |given| given.flag());
    let mut count = |key| reader.optional(section, key, |given| given.count(1..=MOST_REQUESTS));
    let (requests, sessions) = (count("requests"), count("sessions"));
    let duration = reader.optional(section, "duration", |given| {
        given.duration(MILLISECOND..=LONGEST_PHASE)
    });
    let grace = reader.optional(section, "grace", |given| {
        if section.get("duration").is_none() {
            return Err(Refusal::new(Problem::Conflict)
                .wanted("`duration` beside it: the grace period begins when that is over"));
        }
        given.duration(Duration::ZERO..=LONGEST_GRACE)
    });
    let parts = parts(reader, section, around)?;
    Some(PhaseConfig {
        name: name?,
        kind: kind.unwrap_or(PhaseKind::Profiling),
        bounds: Bounds {
            requests,
            duration,
            sessions,
        },
        grace,
        seamless: seamless.unwrap_or(false),
        ..parts
    })
}

/// What a phase and a probe of one phase have in common.
fn parts<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    around: Around,
) -> Option<PhaseConfig> {
    let of = reader.subsection(section, "arrivals", &keys::ARRIVALS);
    let of = of.and_then(|section| arrivals(reader, &section, around.in_flight));
    let prefill = reader.optional(section, "prefill_concurrency", |given| {
        if !around.streaming {
            return Err(Refusal::new(Problem::Conflict)
                .wanted("a probe with `streaming`: without it no first token is seen"));
        }
        within(given, around.in_flight)
    });
    let cancel = reader.subsection(section, "cancel", &keys::CANCEL);
    let cancellation = cancel.map(|section| cancellation(reader, &section));
    let ramp = reader.subsection(section, "ramp", &keys::RAMP);
    let (arrivals, concurrency) = of?;
    let mut phase = PhaseConfig {
        concurrency,
        prefill_concurrency: prefill,
        ..PhaseConfig::endless(arrivals)
    };
    if let Some(section) = ramp {
        phase.ramps = ramps(reader, &section, &phase);
    }
    phase.cancellation = match cancellation {
        Some(read) => Some(read?),
        None => None,
    };
    Some(phase)
}

fn cancellation<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Cancellation> {
    let share = reader.required(section, "share", |given| given.share());
    let after = reader.optional(section, "after", |given| {
        given.duration(Duration::ZERO..=LONGEST_GRACE)
    });
    Some(Cancellation {
        share: share?,
        after: after.unwrap_or_default(),
    })
}

/// The ramps of `phase`, which has no others yet.
fn ramps<'a>(reader: &mut Reader<'a>, section: &Section<'a>, phase: &PhaseConfig) -> Ramps {
    let rate = match phase.arrivals {
        Arrivals::Constant { rate } | Arrivals::Poisson { rate } | Arrivals::Gamma { rate, .. } => {
            Some(rate)
        }
        _ => None,
    };
    let mut read = |key, to: Option<f64>, without| {
        let section = reader.subsection(section, key, &keys::RAMP_OF)?;
        if let Some(to) = to {
            return ramp(reader, &section, (to, key == "rate"));
        }
        reader.refuse(
            &section.node,
            &Refusal::new(Problem::Conflict).hint(without),
        );
        None
    };
    Ramps {
        rate: read(
            "rate",
            rate,
            "only `constant`, `poisson` and `gamma` have a rate that a ramp can lead to",
        ),
        concurrency: read(
            "concurrency",
            phase.cap().map(f64::from),
            "there is no `concurrency` that it could lead to",
        ),
        prefill_concurrency: read(
            "prefill_concurrency",
            phase.prefill_concurrency.map(f64::from),
            "there is no `prefill_concurrency` that it could lead to",
        ),
    }
}

/// A ramp to `to`, which is a rate or a count.
fn ramp<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    (to, is_rate): (f64, bool),
) -> Option<Ramp> {
    let over = reader.required(section, "over", |given| {
        given.duration(MILLISECOND..=LONGEST_PHASE)
    });
    let steps = reader.optional(section, "steps", |given| given.whole(1..=MOST_STEPS));
    let shape = reader.optional(section, "shape", |given| {
        let words = [
            ("linear", RampShape::Linear),
            ("exponential", RampShape::Exponential),
            ("stepped", RampShape::Stepped { steps: 0 }),
        ];
        given.word(&words, &[])
    });
    let shape = match shape.unwrap_or(RampShape::Linear) {
        RampShape::Stepped { .. } => {
            reader.require(section, "steps");
            RampShape::Stepped {
                steps: small(steps?),
            }
        }
        shape => {
            if let Some(node) = section.get("steps") {
                let refusal =
                    Refusal::new(Problem::Conflict).hint("only `shape: stepped` takes it");
                reader.refuse(&node, &refusal);
            }
            shape
        }
    };
    let given = section.get("from").is_some();
    let from = reader.optional(section, "from", |given| start(given, is_rate, shape));
    let ramp = Ramp::up_to(to, over?, shape);
    Some(Ramp {
        from: match given {
            true => from?,
            false if is_rate => ramp.from,
            false => 1.0,
        },
        ..ramp
    })
}

/// Where a ramp begins.
fn start(given: Given<'_>, is_rate: bool, shape: RampShape) -> Result<f64, Refusal> {
    if !is_rate {
        return given
            .whole(1..=MOST_IN_FLIGHT)
            .map(|from| f64::from(small(from)));
    }
    match shape {
        RampShape::Exponential => given.rate(MOST_RATE),
        RampShape::Linear | RampShape::Stepped { .. } => given.rate_or_zero(MOST_RATE),
    }
}
