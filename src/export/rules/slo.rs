//! Objectives: how fast the error budget is spent, over several windows at once.
//!
//! The windows and factors are those of chapter 5 of Google's Site Reliability Workbook. The long
//! window says that it matters, the short one that it goes on. What its table lacks is added: the
//! long window must hold enough events and enough bad ones, so that one slow request of a quiet
//! night wakes nobody.

use std::time::Duration;

use super::alerts::{Alert, AlertKind, Severity};
use super::promql::PLACE;
use super::recorded::series;
use super::{Rule, Settings, span_text};
use crate::export::catalog::{Metric, SLO_EVENTS, SLO_GOOD, SLO_OBJECTIVE};

/// Evaluating days of counters is work, and their shares move slowly.
pub(super) const LONG_INTERVAL: Duration = Duration::from_mins(5);

const MINUTE: u64 = 1;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Windows that are evaluated often, minutes.
const SHORT: [u64; 5] = [5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR];

/// Windows that are evaluated rarely, minutes.
const LONG: [u64; 2] = [DAY, 3 * DAY];

/// A condition: long window, short window, how many times too fast.
type Burn = (u64, u64, &'static str);

/// 2 % of the budget of 30 days in an hour, 5 % in six.
const FAST: [Burn; 2] = [(HOUR, 5 * MINUTE, "14.4"), (6 * HOUR, 30 * MINUTE, "6")];

/// 10 % of it in a day or three.
const SLOW: [Burn; 2] = [(DAY, 2 * HOUR, "3"), (3 * DAY, 6 * HOUR, "1")];

/// Name of what is recorded over `minutes`, which are in it uncompressed.
pub(in crate::export) fn recorded_over(what: &str, minutes: u64) -> String {
    let window = span_text(Duration::from_mins(minutes));
    format!("tokencanary:slo_{what}_{window}")
}

/// The budget, and the shares over the short windows.
pub(super) fn short(settings: &Settings) -> Vec<Rule> {
    let mut rules = vec![Rule::record(
        series::ERROR_BUDGET,
        format!("1 - max without ({PLACE}) ({})", SLO_OBJECTIVE.prometheus),
    )];
    rules.extend(SHORT.into_iter().flat_map(|one| shares(settings, one)));
    rules
}

/// The shares over the long windows.
pub(super) fn long(settings: &Settings) -> Vec<Rule> {
    LONG.into_iter()
        .flat_map(|one| shares(settings, one))
        .collect()
}

fn shares(settings: &Settings, minutes: u64) -> Vec<Rule> {
    let window = settings.span(Duration::from_mins(minutes));
    let grown = |counter: &Metric| {
        format!(
            "sum without ({PLACE}) (increase({}[{window}]))",
            counter.prometheus
        )
    };
    let (events, bad) = (
        recorded_over("events:increase", minutes),
        recorded_over("bad:increase", minutes),
    );
    let mut rules = vec![
        Rule::record(&events, grown(&SLO_EVENTS)),
        Rule::record(
            &bad,
            format!(
                "clamp_min({events} - ({} or 0 * {events}), 0)",
                grown(&SLO_GOOD)
            ),
        ),
    ];
    rules.push(Rule::record(
        &recorded_over("bad:ratio", minutes),
        format!("{bad} / ({events} > 0)"),
    ));
    rules
}

/// The alerts.
pub(super) fn alerts(settings: &Settings) -> Vec<Rule> {
    [
        (AlertKind::SloBurnFast, Severity::Critical, FAST),
        (AlertKind::SloBurnSlow, Severity::Warning, SLOW),
    ]
    .into_iter()
    .map(|(kind, severity, burns)| {
        let conditions = burns.map(|burn| condition(settings, burn));
        let spent = match kind {
            AlertKind::SloBurnFast => "gone in five days or less",
            _ => "gone before they are over",
        };
        Alert {
            kind,
            severity,
            expr: conditions.join("\nor\n"),
            hold: Duration::ZERO,
            summary: "The error budget of {{ $labels.slo }} is burning, {{ $labels.probe }} at {{ $labels.target }}".to_owned(),
            description: format!(
                "{{{{ $labels.probe }}}} at {{{{ $labels.target }}}} ({{{{ $labels.endpoint }}}}) misses its objective of {{{{ $labels.slo }}}} {{{{ $value | humanize }}}} times as often as it may. At that rate the budget of 30 days is {spent}."
            ),
        }
        .rule(settings)
    })
    .collect()
}

fn condition(settings: &Settings, (long, short, factor): Burn) -> String {
    let [events, bad] = settings.slo_least;
    let budget = series::ERROR_BUDGET;
    let ratio = |minutes| recorded_over("bad:ratio", minutes);
    format!(
        "(\n  {} / {budget} > {factor}\n  and {} / {budget} > {factor}\n  and {} >= {events}\n  and {} >= {bad}\n)",
        ratio(long),
        ratio(short),
        recorded_over("events:increase", long),
        recorded_over("bad:increase", long),
    )
}
