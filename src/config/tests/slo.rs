//! What the keys of `slo` become, and what is said of those that cannot be kept.

use super::*;
use crate::measurement::{SloLimit, SloMetric};

/// The good probe with `slo` behind it, on line 9.
fn with_slo(slo: &str) -> String {
    format!("{}  slo: {slo}\n", with_probe(GOOD))
}

fn read_slo(slo: &str) -> Slo {
    let config = from_text(&with_slo(slo), Format::Yaml, "c.yaml");
    let config = config.unwrap_or_else(|found| panic!("{found}"));
    config.probes[0].slo
}

#[track_caller]
fn check_slo(slo: &str, expected: &str) {
    check(&with_slo(slo), expected);
}

const fn limit(micros: u64, objective: f64) -> SloLimit {
    SloLimit {
        at_most: Duration::from_micros(micros),
        objective: Some(objective),
    }
}

#[test]
fn limits_and_objectives_are_read() {
    let expected = Slo::NONE
        .with_limit(SloMetric::Ttft, limit(500_000, 0.95))
        .with_limit(SloMetric::Ttfo, limit(2_000_000, 0.5))
        .with_limit(SloMetric::Itl, limit(50_500, 0.999))
        .with_limit(SloMetric::ServiceTime, limit(60_000_000, 0.95))
        .with_limit(SloMetric::ResponseTtft, limit(600_000, 0.95))
        .with_limit(SloMetric::ResponseTime, limit(90_000_000, 0.9999))
        .with_success(0.99);
    let found = read_slo(
        "{ ttft: 500ms at p95, ttfo: 2s at p50, itl: 50.5ms at p99.9, service_time: 1m at p95, response_ttft: 600ms  at  p95, response_time: 90s at p99.99, success: 99% }",
    );
    assert_eq!(found, expected);
    let metrics: Vec<_> = found.limits().map(|(metric, _)| metric).collect();
    assert_eq!(metrics, SloMetric::ALL);
    assert_eq!(
        read_slo("{ success: 99.9% }"),
        Slo::NONE.with_success(0.999)
    );
    let without = from_text(&with_probe(GOOD), Format::Yaml, "c.yaml").expect("a good file");
    assert!(without.probes[0].slo.is_none());
}

#[test]
fn every_bad_limit_is_told_apart() {
    check_slo(
        "{ ttft: 500, itl: 50ms, ttfo: 1 parsec at p95, service_time: 1s at 95%, response_time: 1s at p100, response_ttft: 1us at p95, success: 100% }",
        "
c.yaml:9: `probes[0].slo.ttft`: wrong unit
  given: `500`
  wanted: a limit and its objective, as in `500ms at p95`
  hint: write `500ms at p95`
c.yaml:9: `probes[0].slo.ttfo`: wrong unit
  given: `1 parsec at p95`
  wanted: a limit and its objective, as in `500ms at p95`
  hint: the units are `ms`, `s`, `m`, `h` or `d`
c.yaml:9: `probes[0].slo.itl`: not understood
  given: `50ms`
  wanted: a limit and its objective, as in `500ms at p95`
  hint: say what share of requests is to hold it, as in `at p95`
c.yaml:9: `probes[0].slo.service_time`: not understood
  given: `1s at 95%`
  wanted: a limit and its objective, as in `500ms at p95`
  hint: the objective is a quantile, as in `at p95`
c.yaml:9: `probes[0].slo.response_ttft`: out of range
  given: `1us at p95`
  wanted: from `100us` to `1d`
c.yaml:9: `probes[0].slo.response_time`: out of range
  given: `1s at p100`
  wanted: an objective above `p0`, below `p100`
c.yaml:9: `probes[0].slo.success`: out of range
  given: `100%`
  wanted: above `0%`, below `100%`
  hint: with an objective of all there is no budget that failures could use up",
    );
    check_slo(
        "{ ttftt: 500ms at p95, chunk_gap: 1s at p95 }",
        "
c.yaml:9: `probes[0].slo.chunk_gap`: not available in this version
c.yaml:9: `probes[0].slo.ttftt`: unknown key
  hint: did you mean `ttft`
c.yaml:9: `probes[0].slo`: missing
  given: a section
  wanted: at least one limit, or `success`",
    );
    check_slo(
        "{}",
        "
c.yaml:9: `probes[0].slo`: missing
  given: an empty section
  wanted: at least one limit, or `success`",
    );
    check_slo(
        "500ms",
        "
c.yaml:9: `probes[0].slo`: wrong type
  given: `500ms`
  wanted: the section `probes[].slo`",
    );
}

#[test]
fn a_limit_that_no_request_reaches_is_refused() {
    check_slo(
        "{ ttft: 11s at p95, itl: 16s at p95, service_time: 61s at p95, response_time: 61s at p95 }",
        "
c.yaml:9: `probes[0].slo.ttft`: out of range
  given: `11s at p95`
  wanted: at most `limits.first_token`, which is `10s`
  hint: a slower request is given up before; raise `limits.first_token`
c.yaml:9: `probes[0].slo.itl`: out of range
  given: `16s at p95`
  wanted: at most `limits.gap`, which is `15s`
  hint: a slower request is given up before; raise `limits.gap`
c.yaml:9: `probes[0].slo.service_time`: out of range
  given: `61s at p95`
  wanted: at most `limits.total`, which is `1m`
  hint: a slower request is given up before; raise `limits.total`",
    );
}

#[test]
fn limits_of_single_tokens_need_streams() {
    let wanted = "
c.yaml:10: `probes[0].slo.ttft`: does not go together
  given: `1s at p95`
  wanted: a probe all of whose requests ask for a stream
  hint: leave it out: no other response shows when single tokens came";
    check_behind(
        "  streaming: false\n  slo: { ttft: 1s at p95, service_time: 1s at p95 }\n",
        wanted,
    );
    let unary = with_slo("{ itl: 1s at p95 }").replace("name: a", "name: a\n  api: embeddings");
    let found = from_text(&unary, Format::Yaml, "c.yaml").expect_err("no streams");
    assert_eq!(found.as_slice()[0].path, "probes[0].slo.itl");
}

#[test]
fn there_are_so_many_different_limits_of_one_latency() {
    let probe = |n: usize, ms: usize| {
        format!(
            "- name: p{n}\n  targets: [a]\n{GOOD}\n  slo: {{ ttft: {ms}ms at p95, itl: {ms}ms at p95 }}\n"
        )
    };
    let with = |limits: &[usize]| {
        let probes = limits.iter().enumerate().map(|(n, ms)| probe(n, *ms));
        let probes: String = probes.collect();
        let text = format!("targets:\n- name: a\n  url: http://h:1\nprobes:\n{probes}");
        from_text(&text, Format::Yaml, "c.yaml")
    };
    let sixteen: Vec<usize> = (1..=16).chain([1, 2, 3]).collect();
    assert!(with(&sixteen).is_ok());
    let seventeen: Vec<usize> = (1..=17).collect();
    let found = with(&seventeen).expect_err("one too many").to_string();
    assert!(
        found.contains("`probes[16].slo`: out of range")
            && found.contains("at most 16 different limits of `ttft` over all probes")
            && found.contains("at most 16 different limits of `itl` over all probes"),
        "{found}"
    );
}
