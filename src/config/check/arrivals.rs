//! The arrival process of a phase: each takes its own keys, and no others.

use std::sync::Arc;
use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal, shown};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{Arrivals, Gaps, RatePoint, Replay};
use super::{HOUR, MILLISECOND, MOST_IN_FLIGHT, small};

/// Arrivals per second; beyond what one process sends.
pub(super) const MOST_RATE: f64 = 100_000.0;
/// Longest time between one arrival and the next, and longest time of a series.
const LONGEST: Duration = Duration::from_hours(24 * 366);
/// Requests of one user.
const MOST_TURNS: u64 = 1_000_000;
/// Smoothness; beyond these bounds a gamma distribution is a burst or a clock.
const SMOOTHNESS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;
/// Hours of a day.
const HOURS: usize = 24;

/// A process and the other keys it takes. All open ones also take `concurrency`.
pub(in crate::config) const PROCESSES: [(&str, &[&str]); 11] = [
    ("constant", &["rate", "concurrency"]),
    ("poisson", &["rate", "concurrency"]),
    ("gamma", &["rate", "smoothness", "concurrency"]),
    ("burst", &["size", "every", "concurrency"]),
    ("jitter", &["every", "jitter", "concurrency"]),
    ("series", &["points", "gaps", "smoothness", "concurrency"]),
    ("diurnal", &["rates", "gaps", "smoothness", "concurrency"]),
    ("users", &["users", "rate", "turns", "concurrency"]),
    (
        "fixed",
        &[
            "times",
            "from",
            "to",
            "shift",
            "speed",
            "gap_cap",
            "concurrency",
        ],
    ),
    (
        "trace",
        &["from", "to", "shift", "speed", "gap_cap", "concurrency"],
    ),
    ("closed", &["concurrency"]),
];

/// The process and, for an open one, its own cap on requests in flight.
pub(super) fn arrivals<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    in_flight: u32,
) -> Option<(Arrivals, Option<u32>)> {
    let process = reader.required(section, "process", |given| {
        let words = PROCESSES.map(|(word, _)| (word, word));
        given.word(&words, &["ramp", "steps", "sine"])
    })?;
    exclude_others(reader, section, process);
    let cap = reader.optional(section, "concurrency", |given| within(given, in_flight));
    let arrivals = match process {
        "gamma" => {
            let rate = rate(reader, section);
            let smoothness =
                reader.required(section, "smoothness", |given| given.number(SMOOTHNESS));
            Arrivals::Gamma {
                rate: rate?,
                smoothness: smoothness?,
            }
        }
        "constant" => Arrivals::Constant {
            rate: rate(reader, section)?,
        },
        "poisson" => Arrivals::Poisson {
            rate: rate(reader, section)?,
        },
        "burst" => {
            let size = reader.required(section, "size", |given| given.whole(1..=MOST_IN_FLIGHT));
            let every = every(reader, section);
            Arrivals::Burst {
                size: small(size?),
                every: every?,
            }
        }
        "jitter" => jitter(reader, section)?,
        "series" => series(reader, section)?,
        "diurnal" => diurnal(reader, section)?,
        "users" => users(reader, section)?,
        "fixed" => fixed(reader, section)?,
        "trace" => Arrivals::Trace {
            replay: replay(reader, section),
        },
        _ => {
            reader.require(section, "concurrency");
            Arrivals::Closed { concurrency: cap? }
        }
    };
    let cap = cap.filter(|_| !arrivals.is_closed_loop());
    Some((arrivals, cap))
}

/// Notes every key that `process` does not take.
fn exclude_others<'a>(reader: &mut Reader<'a>, section: &Section<'a>, process: &str) {
    let taken = PROCESSES
        .iter()
        .find(|(word, _)| *word == process)
        .map_or(&[][..], |(_, keys)| *keys);
    let list: Vec<String> = taken.iter().map(|key| format!("`{key}`")).collect();
    let others = keys::ARRIVALS.keys.iter().map(|key| key.name);
    for key in others.filter(|key| *key != "process" && !taken.contains(key)) {
        if let Some(node) = section.get(key) {
            let hint = format!("`process: {process}` takes {}", list.join(", "));
            reader.refuse(&node, &Refusal::new(Problem::Conflict).hint(hint));
        }
    }
}

/// A cap on requests in flight, which can be no more than the target's.
pub(super) fn within(given: Given<'_>, in_flight: u32) -> Result<u32, Refusal> {
    let cap = given.whole(1..=MOST_IN_FLIGHT)?;
    if cap > u64::from(in_flight) {
        return Err(Refusal::new(Problem::OutOfRange)
            .wanted(format!(
                "at most `governor.in_flight`, which is `{in_flight}`"
            ))
            .hint("raise `governor.in_flight`"));
    }
    Ok(small(cap))
}

fn rate<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<f64> {
    reader.required(section, "rate", |given| given.rate(MOST_RATE))
}

fn every<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Duration> {
    reader.required(section, "every", |given| {
        given.duration(MILLISECOND..=LONGEST)
    })
}

fn jitter<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Arrivals> {
    let every = every(reader, section);
    let jitter = reader.required(section, "jitter", |given| {
        let jitter = given.duration(Duration::ZERO..=LONGEST)?;
        match every {
            Some(every) if jitter > every / 2 => Err(Refusal::new(Problem::OutOfRange).wanted(
                format!("at most half of `every`, which is `{}`", shown(every)),
            )),
            _ => Ok(jitter),
        }
    });
    Some(Arrivals::Jitter {
        every: every?,
        jitter: jitter?,
    })
}

fn gaps<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Gaps> {
    let smoothness = reader.optional(section, "smoothness", |given| given.number(SMOOTHNESS));
    let words = [
        ("constant", "constant"),
        ("poisson", "poisson"),
        ("gamma", "gamma"),
    ];
    let word = match section.get("gaps") {
        Some(_) => reader.optional(section, "gaps", |given| given.word(&words, &[]))?,
        None => "poisson",
    };
    if word == "gamma" {
        reader.require(section, "smoothness");
        return smoothness.map(|smoothness| Gaps::Gamma { smoothness });
    }
    if let Some(node) = section.get("smoothness") {
        let refusal = Refusal::new(Problem::Conflict).hint("only `gaps: gamma` takes it");
        reader.refuse(&node, &refusal);
    }
    Some(if word == "constant" {
        Gaps::Constant
    } else {
        Gaps::Poisson
    })
}

fn series<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Arrivals> {
    let gaps = gaps(reader, section);
    reader.require(section, "points");
    let nodes = reader.list(section, "points")?;
    let count = nodes.len();
    let mut points: Vec<RatePoint> = Vec::new();
    for node in nodes {
        let Some(section) = reader.section(node, &keys::POINT) else {
            continue;
        };
        let before = points.last().map(|point| point.at);
        let at = reader.required(&section, "at", |given| {
            let at = given.duration(Duration::ZERO..=LONGEST)?;
            match before {
                Some(before) if at < before => Err(Refusal::new(Problem::OutOfRange).wanted(
                    format!("not before the point before it, at `{}`", shown(before)),
                )),
                _ => Ok(at),
            }
        });
        let rate = reader.required(&section, "rate", |given| given.rate_or_zero(MOST_RATE));
        points.extend(at.zip(rate).map(|(at, rate)| RatePoint { at, rate }));
    }
    if points.len() < count {
        return None;
    }
    // What ends at rate zero ends there; but one arrival must be possible.
    if points.iter().all(|point| point.rate <= 0.0) {
        let refusal = Refusal::new(Problem::Missing).wanted("a point with a rate above `0/s`");
        reader.refuse(&section.get("points")?, &refusal);
        return None;
    }
    Some(Arrivals::Series {
        gaps: gaps?,
        points: points.into(),
    })
}

fn diurnal<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Arrivals> {
    let gaps = gaps(reader, section);
    reader.require(section, "rates");
    let nodes = reader.list(section, "rates")?;
    let mut rates = [0.0; HOURS];
    let mut good = nodes.len() == HOURS && nodes.len() == rates.len();
    if !good {
        let refusal = Refusal::new(Problem::OutOfRange)
            .wanted("24 rates, from 0:00 UTC on")
            .hint(format!("there are {}", nodes.len()));
        reader.refuse(&section.get("rates")?, &refusal);
    }
    for (node, rate) in nodes.iter().zip(&mut rates) {
        let read = reader.item(section, (node, "rates"), |given| {
            given.rate_or_zero(MOST_RATE)
        });
        good &= read.is_some();
        *rate = read.unwrap_or_default();
    }
    if good && rates.iter().all(|rate| *rate <= 0.0) {
        let refusal = Refusal::new(Problem::Missing).wanted("a rate above `0/s`");
        reader.refuse(&section.get("rates")?, &refusal);
        good = false;
    }
    let gaps = gaps?;
    good.then(|| Arrivals::Diurnal {
        gaps,
        rates: Arc::new(rates),
    })
}

fn users<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Arrivals> {
    let users = reader.required(section, "users", |given| given.whole(1..=MOST_IN_FLIGHT));
    let turns = reader.optional(section, "turns", |given| given.whole(1..=MOST_TURNS));
    let rate = rate(reader, section);
    Some(Arrivals::Users {
        users: small(users?),
        rate: rate?,
        turns: small(turns.unwrap_or(1)),
    })
}

/// How recorded times are played.
fn replay<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Replay {
    let mut span = |key| {
        reader.optional(section, key, |given| {
            given.duration(Duration::ZERO..=LONGEST)
        })
    };
    let (from, to, gap_cap) = (span("from"), span("to"), span("gap_cap"));
    let shift = reader.optional(section, "shift", |given| given.flag());
    let speed = reader.optional(section, "speed", |given| given.number(0.001..=1e6));
    Replay {
        from,
        to,
        shift: shift.unwrap_or(from.is_none()),
        speed: speed.unwrap_or(1.0),
        gap_cap,
    }
}

fn fixed<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Arrivals> {
    let replay = replay(reader, section);
    reader.require(section, "times");
    let nodes = reader.list(section, "times")?;
    let mut times: Vec<Duration> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let before = times.last().copied().unwrap_or_default();
        let read = reader.item(section, (node, "times"), |given| {
            let at = given.duration(Duration::ZERO..=LONGEST)?;
            if at < before {
                return Err(Refusal::new(Problem::OutOfRange)
                    .wanted(format!("not before the one before it, `{}`", shown(before))));
            }
            Ok(at)
        });
        times.extend(read);
    }
    (times.len() == nodes.len()).then(|| Arrivals::Fixed {
        times: times.into(),
        replay,
    })
}

/// Longest time that a ramp or a phase takes.
pub(super) const LONGEST_PHASE: Duration = LONGEST;
/// Longest grace period and longest delay of a cancellation.
pub(super) const LONGEST_GRACE: Duration = HOUR;
