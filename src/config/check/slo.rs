//! What a probe wants of its requests: limits with an objective each.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Refusal, shown};
use super::super::reader::{Reader, Section};
use super::super::{Limits, ProbeConfig, keys};
use crate::measurement::{Slo, SloLimit, SloMetric};

/// Shorter limits are slips: no token comes as fast.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_hours(24);

/// Different limits of one latency over all probes: each is a bucket in the histograms of every
/// stream, so that sums over streams are right.
const MOST_LIMITS: usize = 16;

/// What the limits of a probe are held against.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// Whether every request of the probe asks for a stream.
    pub(super) streaming: bool,
    /// When its requests are given up.
    pub(super) limits: Limits,
}

/// Reads `slo` of the probe in `section`.
pub(super) fn slo<'a>(reader: &mut Reader<'a>, section: &Section<'a>, held: Held) -> Slo {
    let mut slo = Slo::NONE;
    let Some(section) = reader.subsection(section, "slo", &keys::SLO) else {
        return slo;
    };
    for metric in SloMetric::ALL {
        let limit = reader.optional(&section, metric.name(), |given| {
            if metric.needs_stream() && !held.streaming {
                return Err(Refusal::new(Problem::Conflict)
                    .wanted("a probe all of whose requests ask for a stream")
                    .hint("leave it out: no other response shows when single tokens came"));
            }
            let (at_most, objective) = given.limit(SHORTEST..=LONGEST)?;
            check_reachable(metric, at_most, held.limits)?;
            Ok(SloLimit {
                at_most,
                objective: Some(objective),
            })
        });
        if let Some(limit) = limit {
            slo = slo.with_limit(metric, limit);
        }
    }
    let success = reader.optional(&section, "success", |given| {
        let share = given.share()?;
        if share < 1.0 {
            Ok(share)
        } else {
            Err(Refusal::new(Problem::OutOfRange)
                .wanted("above `0%`, below `100%`")
                .hint("with an objective of all there is no budget that failures could use up"))
        }
    });
    if let Some(objective) = success {
        slo = slo.with_success(objective);
    }
    if keys::SLO
        .keys
        .iter()
        .all(|key| section.get(key.name).is_none())
    {
        let refusal = Refusal::new(Problem::Missing).wanted("at least one limit, or `success`");
        reader.refuse(&section.node, &refusal);
    }
    slo
}

/// A request that is given up before it can reach the limit fails it all the same: such a limit
/// says something else than what was meant.
fn check_reachable(metric: SloMetric, at_most: Duration, limits: Limits) -> Result<(), Refusal> {
    let (key, longest) = match metric {
        SloMetric::Ttft => ("first_token", limits.first_token),
        SloMetric::Itl => ("gap", limits.gap),
        SloMetric::Ttfo | SloMetric::ServiceTime => ("total", Some(limits.total)),
        // From when they were due: waiting for a slot comes on top.
        SloMetric::ResponseTtft | SloMetric::ResponseTime => return Ok(()),
    };
    match longest {
        Some(longest) if at_most > longest => Err(Refusal::new(Problem::OutOfRange)
            .wanted(format!(
                "at most `limits.{key}`, which is `{}`",
                shown(longest)
            ))
            .hint(format!(
                "a slower request is given up before; raise `limits.{key}`"
            ))),
        _ => Ok(()),
    }
}

/// Notes the first limit that is one too many. `sections` are those of `probes`.
pub(super) fn check_number<'a>(
    reader: &mut Reader<'a>,
    sections: &[Section<'a>],
    probes: &[Option<ProbeConfig>],
) {
    for metric in SloMetric::ALL {
        let mut seen: Vec<Duration> = Vec::new();
        for (section, probe) in sections.iter().zip(probes) {
            let limits = probe.iter().flat_map(|probe| probe.slo.limits());
            for (_, limit) in limits.filter(|(of, _)| *of == metric) {
                if !seen.contains(&limit.at_most) {
                    seen.push(limit.at_most);
                }
            }
            if seen.len() > MOST_LIMITS {
                let wanted = format!(
                    "at most {MOST_LIMITS} different limits of `{}` over all probes",
                    metric.name()
                );
                let refusal = Refusal::new(Problem::OutOfRange)
                    .wanted(wanted)
                    .hint("each is a bucket in the histograms of every stream");
                if let Some(node) = section.get("slo") {
                    reader.refuse(&node, &refusal);
                }
                break;
            }
        }
    }
}
