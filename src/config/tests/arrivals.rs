//! Arrivals, ramps and phases: what is taken, and how what is wrong is told.

use super::*;
use crate::measurement::PhaseKind;

/// The phases of the one probe with `keys`, of which up to 50 requests may be in flight.
fn phases(keys: &str) -> Vec<PhaseConfig> {
    let text = text(keys);
    let config = from_text(&text, Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.probes.remove(0).phases
}

/// The problems of the probe with `keys`, which begin at line 7.
fn refused(keys: &str, expected: &str) {
    check(&text(keys), &format!("\n{expected}"));
}

fn text(keys: &str) -> String {
    format!(
        "targets: [{{ name: a, url: 'http://h' }}]
governor: {{ in_flight: 50 }}
probes:
- name: p
  targets: [a]
  workload: {{ synthetic: {{ input_tokens: 1, output_tokens: 1 }} }}
{keys}
"
    )
}

fn one(keys: &str) -> PhaseConfig {
    let mut phases = phases(keys);
    assert_eq!(phases.len(), 1);
    phases.remove(0)
}

fn arrivals(keys: &str) -> Arrivals {
    one(&format!("  arrivals: {{ {keys} }}")).arrivals
}

#[test]
fn each_process_takes_its_keys() {
    let seconds = Duration::from_secs;
    for (keys, expected) in [
        (
            "process: gamma, rate: 12/min, smoothness: 0.5",
            Arrivals::Gamma {
                rate: 0.2,
                smoothness: 0.5,
            },
        ),
        (
            "process: burst, size: 3, every: 2m",
            Arrivals::Burst {
                size: 3,
                every: seconds(120),
            },
        ),
        (
            "process: jitter, every: 10s, jitter: 5s",
            Arrivals::Jitter {
                every: seconds(10),
                jitter: seconds(5),
            },
        ),
        (
            "process: series, points: [{ at: 0s, rate: 0/s }, { at: 1m, rate: 2/s }]",
            Arrivals::Series {
                gaps: Gaps::Poisson,
                points: [(0, 0.0), (60, 2.0)]
                    .map(|(at, rate)| RatePoint {
                        at: seconds(at),
                        rate,
                    })
                    .into(),
            },
        ),
        (
            "process: users, users: 9, rate: 3/s, turns: 4",
            Arrivals::Users {
                users: 9,
                rate: 3.0,
                turns: Some(4),
            },
        ),
        (
            "process: fixed, times: [0s, 1s], from: 1s, speed: 2, gap_cap: 9s",
            Arrivals::Fixed {
                times: [seconds(0), seconds(1)].into(),
                replay: Replay {
                    from: Some(seconds(1)),
                    to: None,
                    shift: false,
                    speed: 2.0,
                    gap_cap: Some(seconds(9)),
                },
            },
        ),
    ] {
        assert_eq!(arrivals(keys), expected, "{keys}");
    }
}

#[test]
fn keys_of_another_process_are_refused() {
    refused(
        "  arrivals: { process: closed, concurrency: 3, rate: 1/s, every: 2s }",
        "c.yaml:7: `probes[0].arrivals.rate`: does not go together
  given: `1/s`
  hint: `process: closed` takes `concurrency`
c.yaml:7: `probes[0].arrivals.every`: does not go together
  given: `2s`
  hint: `process: closed` takes `concurrency`",
    );
    refused(
        "  arrivals: { process: series, smoothness: 2, points: [{ at: 0s, rate: 1/s }] }",
        "c.yaml:7: `probes[0].arrivals.smoothness`: does not go together
  given: `2`
  hint: only `gaps: gamma` takes it",
    );
}

#[test]
fn values_have_to_make_sense_together() {
    refused(
        "  arrivals: { process: jitter, every: 10s, jitter: 6s }",
        "c.yaml:7: `probes[0].arrivals.jitter`: out of range
  given: `6s`
  wanted: at most half of `every`, which is `10s`",
    );
    refused(
        "  arrivals: { process: series, points: [{ at: 9s, rate: 1/s }, { at: 8s, rate: 1/s }] }",
        "c.yaml:7: `probes[0].arrivals.points[1].at`: out of range
  given: `8s`
  wanted: not before the point before it, at `9s`",
    );
    refused(
        "  arrivals: { process: series, points: [{ at: 9s, rate: 0/s }] }",
        "c.yaml:7: `probes[0].arrivals.points`: missing
  given: a list
  wanted: a point with a rate above `0/s`",
    );
    refused(
        "  arrivals: { process: diurnal, rates: [1/s, x] }",
        "c.yaml:7: `probes[0].arrivals.rates`: out of range
  given: a list
  wanted: 24 rates, from 0:00 UTC on
  hint: there are 2
c.yaml:7: `probes[0].arrivals.rates[1]`: wrong unit
  given: `x`
  wanted: a list of 24 rates, as in `0.2/s`",
    );
    refused(
        "  arrivals: { process: fixed, times: [2s, 1s] }",
        "c.yaml:7: `probes[0].arrivals.times[1]`: out of range
  given: `1s`
  wanted: not before the one before it, `2s`",
    );
}

#[test]
fn ramps_lead_to_something() {
    let phase = one(
        "  arrivals: { process: poisson, rate: 8/s, concurrency: 20 }
  prefill_concurrency: 4
  ramp:
    rate: { over: 10s, shape: exponential }
    concurrency: { from: 5, over: 20s }
    prefill_concurrency: { over: 30s, shape: stepped, steps: 3 }",
    );
    let ramp = |from, seconds, shape| {
        Some(Ramp {
            from,
            over: Duration::from_secs(seconds),
            shape,
        })
    };
    assert_eq!(phase.concurrency, Some(20));
    assert_eq!(phase.prefill_concurrency, Some(4));
    assert_eq!(
        phase.ramps,
        Ramps {
            rate: ramp(0.08, 10, RampShape::Exponential),
            concurrency: ramp(5.0, 20, RampShape::Linear),
            prefill_concurrency: ramp(1.0, 30, RampShape::Stepped { steps: 3 }),
        }
    );
    refused(
        "  arrivals: { process: burst, size: 1, every: 1s }
  ramp: { rate: { over: 1s }, concurrency: { over: 1s } }",
        "c.yaml:8: `probes[0].ramp.rate`: does not go together
  given: a section
  hint: only `constant`, `poisson` and `gamma` have a rate that a ramp can lead to
c.yaml:8: `probes[0].ramp.concurrency`: does not go together
  given: a section
  hint: there is no `concurrency` that it could lead to",
    );
    refused(
        "  arrivals: { process: poisson, rate: 1/s }
  ramp: { rate: { over: 1s, shape: stepped } }",
        "c.yaml:8: `probes[0].ramp.rate.steps`: missing
  wanted: a whole number from `1` to `10000`",
    );
}

#[test]
fn phases_follow_each_other() {
    let phases = phases(
        "  phases:
  - { name: a, kind: warm_up, requests: 5, arrivals: { process: closed, concurrency: 2 } }
  - { name: b, duration: 1m, grace: 5s, seamless: true, arrivals: { process: poisson, rate: 1/s }, cancel: { share: 12.5% } }
  - { name: c, kind: cool_down, sessions: 2k, arrivals: { process: poisson, rate: 1/s } }",
    );
    let kinds: Vec<PhaseKind> = phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(
        kinds,
        [PhaseKind::WarmUp, PhaseKind::Profiling, PhaseKind::CoolDown]
    );
    assert_eq!(phases[0].bounds.requests, Some(5));
    assert_eq!(phases[1].bounds.duration, Some(Duration::from_mins(1)));
    assert_eq!(phases[1].grace, Some(Duration::from_secs(5)));
    assert!(phases[1].seamless);
    let cancellation = phases[1].cancellation.expect("it was given");
    assert!((cancellation.share - 0.125).abs() < 1e-12);
    assert_eq!(cancellation.after, Duration::ZERO);
    assert_eq!(phases[2].bounds.sessions, Some(2_000));
}

#[test]
fn phases_that_cannot_be_are_refused() {
    refused(
        "  arrivals: { process: poisson, rate: 1/s }
  phases:
  - { name: a, kind: warm_up, arrivals: { process: closed, concurrency: 51 } }
  - { name: a, grace: 2s, arrivals: { process: poisson, rate: 1/s }, cancel: { share: 0% } }",
        "c.yaml:7: `probes[0].arrivals`: does not go together
  given: a section
  hint: with `phases` each phase has its own
c.yaml:9: `probes[0].phases[0].arrivals.concurrency`: out of range
  given: `51`
  wanted: at most `governor.in_flight`, which is `50`
  hint: raise `governor.in_flight`
c.yaml:10: `probes[0].phases[1].grace`: does not go together
  given: `2s`
  wanted: `duration` beside it: the grace period begins when that is over
c.yaml:10: `probes[0].phases[1].cancel.share`: out of range
  given: `0%`
  wanted: above `0%`, at most `100%`
c.yaml:10: `probes[0].phases[1].name`: given twice
  given: `a`
  wanted: a name of its own
  hint: `probes[0].phases[0].name` has it already",
    );
    refused(
        "  phases:
  - { name: a, arrivals: { process: poisson, rate: 1/s } }
  - { name: b, arrivals: { process: poisson, rate: 1/s } }",
        "c.yaml:8: `probes[0].phases[0].duration`: missing
  wanted: an end, since another phase follows: a count or a duration",
    );
    refused(
        "  phases:
  - { name: a, kind: warm_up, arrivals: { process: poisson, rate: 1/s } }",
        "c.yaml:7: `probes[0].phases`: missing
  given: a list
  wanted: one phase with `kind: profiling`",
    );
    refused(
        "  streaming: false
  prefill_concurrency: 2
  arrivals: { process: poisson, rate: 1/s }",
        "c.yaml:8: `probes[0].prefill_concurrency`: does not go together
  given: `2`
  wanted: a probe with `streaming`: without it no first token is seen",
    );
}
