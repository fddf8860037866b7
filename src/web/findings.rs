//! `/api/v1/findings`: what is wrong with each stream, and why.

use serde::Serialize;

use crate::aggregate::Live;
use crate::analysis::{Diagnosis, Fact, Look, Symptom, Watch};
use crate::clock::MonoTime;

/// `/api/v1/findings`.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    /// Every stream that was looked at, in the order of streams.
    findings: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    target: Box<str>,
    endpoint: Box<str>,
    probe: Box<str>,
    /// How long ago it was looked at.
    age_s: f64,
    /// The span of time that was looked at.
    span_s: f64,
    /// Whether there is a healthy past to hold it against; limits hold without.
    has_baseline: bool,
    symptoms: Vec<&'static str>,
    /// The surest first; empty with symptoms: nothing says why.
    causes: Vec<Why>,
}

#[derive(Debug, Serialize)]
struct Why {
    cause: &'static str,
    confidence: &'static str,
    advice: &'static str,
    evidence: Vec<Number>,
}

#[derive(Debug, Serialize)]
struct Number {
    what: String,
    now: f64,
    before: Option<f64>,
    unit: &'static str,
}

impl Findings {
    pub(super) fn of(live: &Live, watch: &Watch, now: MonoTime) -> Self {
        let looks = live.streams().iter().zip(watch.looks());
        let findings = looks
            .filter_map(|(stream, look)| {
                let stream = stream.stream();
                Some(Row {
                    target: stream.target.clone(),
                    endpoint: stream.endpoint.clone(),
                    probe: stream.probe.clone(),
                    ..Row::of(look?, now)
                })
            })
            .collect();
        Self { findings }
    }
}

impl Row {
    fn of(look: &Look, now: MonoTime) -> Self {
        let finding = &look.finding;
        Self {
            target: Box::default(),
            endpoint: Box::default(),
            probe: Box::default(),
            age_s: now.since(look.at).as_secs_f64(),
            span_s: look.span.as_secs_f64(),
            has_baseline: look.has_reference,
            symptoms: finding
                .symptoms
                .iter()
                .copied()
                .map(Symptom::name)
                .collect(),
            causes: finding.causes.iter().map(Why::of).collect(),
        }
    }
}

impl Why {
    fn of(diagnosis: &Diagnosis) -> Self {
        Self {
            cause: diagnosis.cause.name(),
            confidence: diagnosis.confidence.name(),
            advice: diagnosis.cause.advice(),
            evidence: diagnosis.facts.iter().map(Number::of).collect(),
        }
    }
}

impl Number {
    fn of(fact: &Fact) -> Self {
        Self {
            what: fact.what.clone(),
            now: fact.now,
            before: fact.before,
            unit: fact.unit.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::aggregate::fixture::{RULES, ms, ok, stream};
    use crate::analysis::{Gauge, Surroundings, WatchedStream};
    use crate::measurement::{Slo, SloLimit, SloMetric};

    /// A stream that was looked at once: its requests take longer than their limit.
    fn watch() -> Watch {
        let limit = SloLimit {
            at_most: Duration::from_millis(1),
            objective: None,
        };
        let mut watch = Watch::new([WatchedStream {
            target: 0,
            is_alone: true,
            slo: Slo::default().with_limit(SloMetric::Ttft, limit),
        }]);
        let stream = stream(0);
        for due in 0..20 {
            watch.observe(&ok(&stream, due, &[10, 15, 20]).record);
        }
        let mut around = Surroundings::default();
        around.server.waiting = Some(Gauge {
            mean: 3.0,
            max: 4.0,
        });
        watch.look(ms(10_000), |_, _, _| around.clone());
        watch
    }

    #[test]
    fn findings_say_what_is_wrong_why_and_what_to_do() {
        let live = Live::new(vec![(stream(0), RULES)], 1);
        let all = Findings::of(&live, &watch(), ms(12_000));
        let all = serde_json::to_value(&all).expect("it is JSON");
        let found = &all["findings"][0];
        assert_eq!(found["probe"], "p");
        assert_eq!(found["symptoms"], json!(["slow_first_token"]));
        assert_eq!(found["has_baseline"], false);
        assert_eq!(found["span_s"], 10.0);
        let cause = &found["causes"][0];
        assert_eq!(cause["cause"], "queueing");
        assert_eq!(cause["confidence"], "likely");
        assert_eq!(
            cause["evidence"][0],
            json!({ "what": "requests waiting", "now": 3.0, "before": null, "unit": "" })
        );
        assert!(
            cause["advice"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
}
