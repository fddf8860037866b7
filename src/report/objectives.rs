//! What a configuration wants of its requests, and how one request stands with it.
//!
//! Only what the operator wrote, and the share that it allows of a day's requests.

use super::number::{UNKNOWN, decimal, millis};
use super::table::{table, text};
use crate::measurement::{RequestRecord, Slo, SloMetric};

const DAY_S: f64 = 86_400.0;

/// The objectives of one probe.
#[derive(Debug, Clone)]
pub struct ObjectiveRow {
    /// Name of the probe.
    pub probe: String,
    /// What it wants.
    pub slo: Slo,
    /// Mean arrivals per second, at each of its targets; `None` in a closed loop.
    pub rate: Option<f64>,
}

/// The objectives as a table; empty where nothing is wanted.
#[must_use]
pub fn objectives_table(rows: &[ObjectiveRow]) -> String {
    if rows.iter().all(|row| row.slo.is_none()) {
        return String::new();
    }
    let head = [
        "probe",
        "a request is good if",
        "objective",
        "bad/day allowed",
    ];
    let mut table = table(head, 2);
    for row in rows {
        let mut name = row.probe.clone();
        let limits = row.slo.limits().map(|(metric, limit)| {
            let wanted = format!("{} ≤ {} ms", shown(metric), millis(limit.at_most));
            (wanted, limit.objective)
        });
        let success = row.slo.success();
        let success = success.map(|objective| ("it is answered".to_owned(), Some(objective)));
        for (wanted, objective) in limits.chain(success) {
            table.add_row([
                std::mem::take(&mut name),
                wanted,
                objective.map_or(UNKNOWN.to_owned(), share),
                allowed(row.rate, objective),
            ]);
        }
    }
    text(&table)
}

/// How `record` stands with each limit of `slo`; `None` where nothing is wanted, or if it counts
/// for nobody.
#[must_use]
pub fn objectives_line(record: &RequestRecord, slo: &Slo) -> Option<String> {
    let judged = slo.judge(record).filter(|_| !slo.is_none())?;
    let mut parts: Vec<String> = slo
        .limits()
        .map(|(metric, limit)| {
            let value = metric.of(record).map_or(UNKNOWN.to_owned(), millis);
            let verdict = if judged.holds(metric) {
                "holds"
            } else {
                "does not hold"
            };
            let (name, limit) = (shown(metric), millis(limit.at_most));
            format!("{name} {value} of {limit} ms {verdict}")
        })
        .collect();
    if slo.success().is_some() {
        let answered = if judged.is_ok {
            "answered"
        } else {
            "not answered"
        };
        parts.push(answered.to_owned());
    }
    let verdict = if judged.is_good { "good" } else { "not good" };
    Some(format!("  objectives: {} · {verdict}\n", parts.join(" · ")))
}

const fn shown(metric: SloMetric) -> &'static str {
    match metric {
        SloMetric::Ttft => "TTFT",
        SloMetric::Ttfo => "TTFO",
        SloMetric::Itl => "ITL",
        SloMetric::ServiceTime => "service time",
        SloMetric::ResponseTtft => "response TTFT",
        SloMetric::ResponseTime => "response time",
    }
}

/// A share without places that say nothing: `99.9 %`.
fn share(of: f64) -> String {
    let text = format!("{:.3}", of * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} %")
}

fn allowed(rate: Option<f64>, objective: Option<f64>) -> String {
    match (rate, objective) {
        (Some(rate), Some(objective)) => decimal(rate * DAY_S * (1.0 - objective), 0),
        _ => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aggregate::fixture::{failed, ok, refused, stream};
    use crate::measurement::{Outcome, RefusedReason, SloLimit};

    fn slo() -> Slo {
        let limit = |ms, objective| SloLimit {
            at_most: Duration::from_millis(ms),
            objective,
        };
        Slo::NONE
            .with_limit(SloMetric::Ttft, limit(500, Some(0.95)))
            .with_limit(SloMetric::Itl, limit(50, None))
            .with_success(0.999)
    }

    #[test]
    fn a_table_says_what_is_good_and_what_a_day_allows() {
        let row = |probe: &str, slo, rate| ObjectiveRow {
            probe: probe.to_owned(),
            slo,
            rate,
        };
        let rows = [
            row("short-chat", slo(), Some(0.2)),
            row("plain", Slo::NONE, Some(1.0)),
            row("closed", Slo::NONE.with_success(0.99), None),
        ];
        insta::assert_snapshot!(objectives_table(&rows), @r"
         probe        a request is good if   objective  bad/day allowed
        ───────────────────────────────────────────────────────────────
         short-chat   TTFT ≤ 500.00 ms            95 %              864
                      ITL ≤ 50.00 ms                 –                –
                      it is answered            99.9 %               17
         closed       it is answered              99 %                –
        ");
        assert_eq!(objectives_table(&rows[1..2]), "");
    }

    #[test]
    fn a_request_is_held_against_each_limit() {
        let stream = stream(0);
        let line = |record| objectives_line(&record, &slo());
        assert_eq!(
            line(ok(&stream, 0, &[100, 160, 220]).record).as_deref(),
            Some(
                "  objectives: TTFT 100.00 of 500.00 ms holds · ITL 60.00 of 50.00 ms does not hold · answered · not good\n"
            )
        );
        assert_eq!(
            line(failed(&stream, 0, Outcome::Connect, None).record).as_deref(),
            Some(
                "  objectives: TTFT – of 500.00 ms does not hold · ITL – of 50.00 ms does not hold · not answered · not good\n"
            )
        );
        let nobody = refused(&stream, 0, RefusedReason::Shutdown).record;
        assert_eq!(line(nobody), None);
        let record = ok(&stream, 0, &[100]).record;
        assert_eq!(objectives_line(&record, &Slo::NONE), None);
    }
}
