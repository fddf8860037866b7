//! The probes: what is sent, when, and when it is given up.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Refusal, shown};
use super::super::keys::{self, nearest};
use super::super::reader::{Reader, Section};
use super::super::{DEFAULT_STALL, Limits, ProbeConfig, WhenFull};
use super::known_answers::unanswered;
use super::phases::{Around, phases};
use super::prompt_file::check_arrivals;
use super::slo::{Held, check_number, slo};
use super::workload::workload_of;
use super::{HOUR, MILLISECOND, check_unique, items, name};
use crate::measurement::{Api, ConnectionPolicy, StallRule};

/// Longest request; reasoning models may take their time.
const LONGEST: Duration = Duration::from_hours(24);

/// Reads `probes`; `None` if any is wrong.
pub(super) fn probes<'a>(
    reader: &mut Reader<'a>,
    top: &Section<'a>,
    in_flight: u32,
) -> Option<Vec<ProbeConfig>> {
    let known = known_targets(top);
    let sections: Vec<_> = items(reader, top, "probes")?
        .into_iter()
        .map(|node| reader.section(node, &keys::PROBE))
        .collect();
    let read: Vec<Option<ProbeConfig>> = sections
        .iter()
        .map(|section| probe(reader, section.as_ref()?, (&known, in_flight)))
        .collect();
    let sections: Vec<Section<'a>> = sections.into_iter().flatten().collect();
    check_unique(reader, &sections);
    // Where a probe is no section at all, they do not stand side by side.
    if sections.len() == read.len() {
        check_number(reader, &sections, &read);
    }
    read.into_iter().collect()
}

fn probe<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    (known, in_flight): (&[Known<'_>], u32),
) -> Option<ProbeConfig> {
    let name = reader.required(section, "name", name);
    let targets = targets(reader, section, known);
    let streaming = reader.optional(section, "streaming", |given| {
        let streaming = given.flag()?;
        match targets.iter().flatten().find_map(|name| unary(name, known)) {
            Some(refusal) if streaming => Err(refusal),
            _ => Ok(streaming),
        }
    });
    let when_full = reader.optional(section, "when_full", |given| {
        given.word(
            &[("refuse", WhenFull::Refuse), ("wait", WhenFull::Wait)],
            &[],
        )
    });
    let connection = reader.optional(section, "connection", |given| {
        let known = [
            ("pooled", ConnectionPolicy::Pooled),
            ("new", ConnectionPolicy::New),
            ("per_session", ConnectionPolicy::PerSession),
        ];
        given.word(&known, &[])
    });
    let around = Around {
        in_flight,
        streaming: streaming.unwrap_or(true) && !only_unary(targets.as_deref(), known),
    };
    let mut phases = phases(reader, section, around);
    reader.require(section, "workload");
    let workload = reader.subsection(section, "workload", &keys::WORKLOAD);
    let workload = workload.and_then(|section| workload_of(reader, &section));
    if let (Some(phases), Some(workload)) = (&mut phases, &workload)
        && let Some(node) = section.get("arrivals").or_else(|| section.get("phases"))
    {
        check_arrivals(reader, &node, (phases, workload.file()));
    }
    if let Some(workload) = &workload
        && workload.knows_answers()
        && let Some(node) = section.get("workload")
        && let Some(refusal) = targets.iter().flatten().find_map(|name| {
            let of = known.iter().find(|known| known.name == name)?;
            unanswered(name, of.api?)
        })
    {
        reader.refuse(&node, &refusal);
    }
    let limits = reader.subsection(section, "limits", &keys::LIMITS);
    let limits = limits.map_or(Limits::PROBE, |section| limits_of(reader, &section));
    let stall = reader.subsection(section, "stall", &keys::STALL);
    let held = Held {
        streaming: streaming.unwrap_or(true) && !some_unary(targets.as_deref(), known),
        limits,
    };
    Some(ProbeConfig {
        slo: slo(reader, section, held),
        limits,
        stall: stall.map_or(DEFAULT_STALL, |section| stall_of(reader, &section)),
        name: name?,
        targets: targets?,
        streaming: streaming.unwrap_or(true),
        when_full: when_full.unwrap_or(WhenFull::Refuse),
        connection: connection.unwrap_or(ConnectionPolicy::Pooled),
        phases: phases?,
        workload: workload?,
    })
}

/// A target that probes can refer to.
#[derive(Clone, Copy)]
struct Known<'a> {
    name: &'a str,
    /// Absent if it cannot be read.
    api: Option<Api>,
}

/// The targets that probes can refer to, whatever else is wrong with them.
fn known_targets<'a>(top: &Section<'a>) -> Vec<Known<'a>> {
    let items = top.get("targets").and_then(|node| node.value.as_array());
    let known = |item: &'a figment::value::Value| {
        let dict = item.as_dict()?;
        let api = match dict.get("api") {
            None => Some(Api::Chat),
            Some(api) => api.as_str().and_then(Api::named),
        };
        Some(Known {
            name: dict.get("name")?.as_str()?,
            api,
        })
    };
    items.into_iter().flatten().filter_map(known).collect()
}

/// Why the target `name` cannot be asked for a stream.
fn unary(name: &str, known: &[Known<'_>]) -> Option<Refusal> {
    let api = known.iter().find(|known| known.name == name)?.api?;
    (!api.can_stream()).then(|| {
        Refusal::new(Problem::Conflict)
            .wanted(format!(
                "`false`, since `{name}` speaks `{}`, which has no streams",
                api.name()
            ))
            .hint("leave the key out")
    })
}

/// Whether none of `names` has streams.
fn only_unary(names: Option<&[String]>, known: &[Known<'_>]) -> bool {
    names.is_some_and(|names| names.iter().all(|name| unary(name, known).is_some()))
}

/// Whether some of `names` have no streams.
fn some_unary(names: Option<&[String]>, known: &[Known<'_>]) -> bool {
    names.is_some_and(|names| names.iter().any(|name| unary(name, known).is_some()))
}

fn targets<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    known: &[Known<'_>],
) -> Option<Vec<String>> {
    let nodes = items(reader, section, "targets")?;
    let mut names: Vec<String> = Vec::new();
    for node in &nodes {
        let refusal = match node.value.as_str() {
            None => Refusal::new(Problem::WrongType).wanted("the name of a target"),
            Some(name) if names.iter().any(|other| other == name) => {
                Refusal::new(Problem::Duplicate).wanted("each target once")
            }
            Some(name) if known.iter().any(|known| known.name == name) => {
                names.push(name.to_owned());
                continue;
            }
            Some(name) => unknown_target(name, known),
        };
        reader.refuse(node, &refusal);
    }
    (names.len() == nodes.len()).then_some(names)
}

fn unknown_target(name: &str, known: &[Known<'_>]) -> Refusal {
    let refusal = Refusal::new(Problem::UnknownName).wanted("the name of a target");
    match nearest(name, known.iter().map(|known| known.name)) {
        Some(near) => refusal.hint(format!("did you mean `{near}`")),
        None if known.is_empty() => refusal,
        None => {
            let some: Vec<String> = known
                .iter()
                .take(8)
                .map(|known| format!("`{}`", known.name))
                .collect();
            refusal.hint(format!("there are {}", some.join(", ")))
        }
    }
}

/// Limits that are left out hold their default, or `total` if that is less.
fn limits_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Limits {
    let default = Limits::PROBE;
    let total = reader.optional(section, "total", |given| {
        given.duration(MILLISECOND..=LONGEST)
    });
    let total = total.unwrap_or(default.total);
    let mut read = |key, default: Duration| {
        let limit = reader.optional(section, key, |given| {
            let limit = given.duration(MILLISECOND..=LONGEST)?;
            if limit > total {
                return Err(Refusal::new(Problem::OutOfRange).wanted(format!(
                    "at most `limits.total`, which is `{}`",
                    shown(total)
                )));
            }
            Ok(limit)
        });
        limit.unwrap_or(default.min(total))
    };
    Limits {
        connect: read("connect", default.connect),
        first_token: default
            .first_token
            .map(|default| read("first_token", default)),
        gap: default.gap.map(|default| read("gap", default)),
        total,
    }
}

fn stall_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> StallRule {
    let factor = reader.optional(section, "factor", |given| given.number(1.0..=1_000.0));
    let floor = reader.optional(section, "floor", |given| given.duration(MILLISECOND..=HOUR));
    StallRule {
        factor: factor.unwrap_or(DEFAULT_STALL.factor),
        floor: floor.unwrap_or(DEFAULT_STALL.floor),
    }
}
