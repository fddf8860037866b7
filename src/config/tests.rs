//! The reader as a whole: what a text becomes, and what is said about a bad one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::load::read;
use super::*;
use crate::measurement::{Api, CacheMode, ConnectionPolicy};

const MINIMAL: &str = include_str!("../../config/minimal.yaml");

/// One target, and one probe with `probe` as its further lines.
fn with_probe(probe: &str) -> String {
    format!("targets:\n- name: a\n  url: http://h:1\nprobes:\n- name: p\n  targets: [a]\n{probe}\n")
}

const GOOD: &str = "  arrivals: { process: constant, rate: 1/s }
  workload: { synthetic: { input_tokens: 8, output_tokens: 4 } }";

/// `text` is refused with exactly these words; `c.yaml` is its name.
#[track_caller]
fn check(text: &str, expected: &str) {
    let found = from_text(text, Format::Yaml, "c.yaml").expect_err("it is refused");
    assert_eq!(found.to_string(), expected.trim_start_matches('\n'));
}

/// As [`check`], of the one good probe with `extra` behind it (from line 9).
#[track_caller]
fn check_behind(extra: &str, expected: &str) {
    check(&format!("{}{extra}", with_probe(GOOD)), expected);
}

fn overlaid(text: &str, env: &[(&str, &str)], flags: &[FlagOverride]) -> Result<Config, String> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let env: BTreeMap<String, String> = env.iter().map(pair).collect();
    read(text, (Format::Yaml, "c.yaml"), (env, flags)).map_err(|found| found.to_string())
}

#[test]
fn what_is_left_out_holds_its_default() {
    let config = from_text(MINIMAL, Format::Yaml, "minimal.yaml").expect("a good file");
    let expected = Config {
        seed: None,
        drain: Duration::from_secs(4),
        targets: vec![TargetConfig {
            name: "local".to_owned(),
            url: BaseUrl::parse("http://127.0.0.1:8000").expect("a good URL"),
            api: Api::Chat,
            model: None,
            api_key: None,
            headers: Vec::new(),
            server_metrics: ServerMetrics::Auto,
            server_metrics_every: Duration::from_secs(5),
        }],
        probes: vec![ProbeConfig {
            name: "short-chat".to_owned(),
            targets: vec!["local".to_owned()],
            streaming: true,
            when_full: WhenFull::Refuse,
            connection: ConnectionPolicy::Pooled,
            arrivals: Arrivals::Poisson { rate: 0.2 },
            workload: WorkloadConfig {
                input_tokens: 128,
                output_tokens: Some(64),
                cache: CacheMode::Cold,
            },
            limits: Limits::PROBE,
            stall: DEFAULT_STALL,
        }],
        governor: GovernorConfig {
            requests_per_day: Some(50_000),
            tokens_per_day: Some(5_000_000),
            in_flight: 4,
        },
        export: ExportConfig {
            http: Some(HttpConfig {
                listen: SocketAddr::from(([127, 0, 0, 1], 9464)),
            }),
            otlp: None,
            files: None,
        },
    };
    assert_eq!(config, expected);
}

#[test]
fn every_sample_file_is_good() {
    for (name, text) in [
        ("minimal.yaml", MINIMAL),
        ("canary.yaml", include_str!("../../config/canary.yaml")),
        ("sidecar.yaml", include_str!("../../config/sidecar.yaml")),
    ] {
        if let Err(found) = from_text(text, Format::Yaml, name) {
            panic!("{found}");
        }
    }
}

#[test]
fn a_few_problems() {
    check(
        &with_probe("  arrivals: { process: constant, rat: 5 }\n  worklod: {}"),
        "
c.yaml:5: `probes[0].workload`: missing
  wanted: a section, as in `{ synthetic: { input_tokens: 128, output_tokens: 64 } }`
c.yaml:7: `probes[0].arrivals.rat`: unknown key
  hint: did you mean `rate`
c.yaml:7: `probes[0].arrivals.rate`: missing
  wanted: a rate, as in `0.2/s`, `12/min` or `100/h`
c.yaml:8: `probes[0].worklod`: unknown key
  hint: did you mean `workload`",
    );
    check_behind(
        "governor: { in_flight: 0 }\nstate: /x\n",
        "
c.yaml:9: `governor.in_flight`: out of range
  given: `0`
  wanted: from `1` to `100000`
c.yaml:10: `state`: not available in this version",
    );
    let _ = overlaid;
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ignored = from_text(&text, Format::Yaml, "x").is_ok();
        let _ignored = from_text(&text, Format::Toml, "x").is_ok();
    }
}
