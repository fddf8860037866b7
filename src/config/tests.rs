//! The reader as a whole: what a text becomes, and what is said about a bad one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::load::read;
use super::*;
use crate::measurement::{Api, CacheMode, ConnectionPolicy, Slo};

mod arrivals;
mod gpus;
mod otlp;
mod slo;
mod sources;
mod targets;

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
            urls: vec![BaseUrl::parse("http://127.0.0.1:8000").expect("a good URL")],
            balance: Balance::default(),
            network: NetworkConfig::default(),
            api: Api::Chat,
            request: RequestConfig::default(),
            tokenizer: None,
            model: None,
            api_key: None,
            headers: Vec::new(),
            server_metrics: ServerMetrics::Auto,
            server_metrics_every: Duration::from_secs(5),
            gpu: None,
            node: None,
            node_every: Duration::from_secs(15),
            pod_info: None,
            start: StartConfig::default(),
        }],
        probes: vec![ProbeConfig {
            name: "short-chat".to_owned(),
            targets: vec!["local".to_owned()],
            streaming: true,
            when_full: WhenFull::Refuse,
            connection: ConnectionPolicy::Pooled,
            phases: vec![PhaseConfig::endless(Arrivals::Poisson { rate: 0.2 })],
            workload: WorkloadConfig::synthetic(128, Some(64), CacheMode::Cold),
            limits: Limits::PROBE,
            stall: DEFAULT_STALL,
            slo: Slo::NONE,
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
        ("gateway.yaml", include_str!("../../config/gateway.yaml")),
        ("load.yaml", include_str!("../../config/load.yaml")),
    ] {
        if let Err(found) = from_text(text, Format::Yaml, name) {
            panic!("{found}");
        }
    }
}

#[test]
fn an_unknown_key_comes_with_what_may_be_meant() {
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
        "  concurrency: 3\nelephants: 2\n",
        "
c.yaml:9: `probes[0].concurrency`: unknown key
  hint: `concurrency` belongs to `probes[].arrivals`
c.yaml:10: `elephants`: unknown key
  hint: known here: `seed`, `drain`, `targets`, `probes`, `governor`, `export`",
    );
}

#[test]
fn a_number_needs_its_unit_and_its_range() {
    check_behind(
        "drain: 4
governor: { in_flight: 0, tokens_per_day: 5X, requests_per_day: 1.5 }
export:
  http: { listen: 'localhost:80' }
  otlp: { endpoint: 'http://h', queue: -1 }
  files: { dir: d, max_size: 100 }
",
        "
c.yaml:9: `drain`: wrong unit
  given: `4`
  wanted: a duration, as in `4s`
  hint: write `4s`
c.yaml:10: `governor.requests_per_day`: wrong type
  given: `1.5`
  wanted: a count, as in `50000` or `50k`
c.yaml:10: `governor.tokens_per_day`: wrong unit
  given: `5X`
  wanted: a count, as in `5000000` or `5M`
  hint: the units are `k`, `M` or `G`, or none
c.yaml:10: `governor.in_flight`: out of range
  given: `0`
  wanted: from `1` to `100000`
c.yaml:12: `export.http.listen`: not understood
  given: `localhost:80`
  wanted: an address and a port, as in `127.0.0.1:9464`
  hint: write `127.0.0.1:80`
c.yaml:13: `export.otlp.queue`: out of range
  given: `-1`
  wanted: a whole number from `1` to `1000000`
  hint: it cannot be negative
c.yaml:14: `export.files.max_size`: wrong unit
  given: `100`
  wanted: a size, as in `100MB` or `64KiB`
  hint: write `100MB`",
    );
    check_behind(
        "  limits: { first_token: 90s, gap: 0s }\n  stall: { factor: .nan, floor: 300 }\n",
        "
c.yaml:9: `probes[0].limits.first_token`: out of range
  given: `90s`
  wanted: at most `limits.total`, which is `1m`
c.yaml:9: `probes[0].limits.gap`: out of range
  given: `0s`
  wanted: from `1ms` to `1d`
c.yaml:10: `probes[0].stall.factor`: not understood
  given: `NaN`
  wanted: a number from `1` to `1000`
c.yaml:10: `probes[0].stall.floor`: wrong unit
  given: `300`
  wanted: a duration, as in `250ms`
  hint: write `300s`",
    );
}

#[test]
fn a_value_of_the_wrong_type_says_what_it_is() {
    check(
        "targets:\n- name: 7\n  url: [x]\n- x\nprobes: short\ngovernor:\nexport: 5\n",
        "
c.yaml:2: `targets[0].name`: wrong type
  given: `7`
  wanted: 1 to 64 letters, digits, `.`, `_` or `-`
  hint: put it in quotes: `\"7\"`
c.yaml:3: `targets[0].url`: wrong type
  given: a list
  wanted: a URL, as in `http://127.0.0.1:8000`
c.yaml:4: `targets[1]`: wrong type
  given: `x`
  wanted: the section `targets[]`
c.yaml:5: `probes`: wrong type
  given: `short`
  wanted: a list with at least one probe
c.yaml:6: `governor`: wrong type
  given: nothing
  wanted: the section `governor`
c.yaml:7: `export`: wrong type
  given: `5`
  wanted: the section `export`",
    );
    check_behind(
        "  streaming: 'yes'\n  when_full: drop\n  connection: polled\nseed: '5'\n",
        "
c.yaml:9: `probes[0].streaming`: wrong type
  given: `yes`
  wanted: `true` or `false`
  hint: write `true`, without quotes
c.yaml:10: `probes[0].when_full`: not understood
  given: `drop`
  wanted: `refuse` or `wait`
c.yaml:11: `probes[0].connection`: not understood
  given: `polled`
  wanted: `pooled`, `new` or `per_session`
  hint: did you mean `pooled`
c.yaml:12: `seed`: wrong type
  given: `5`
  wanted: a whole number from `0` to `18446744073709551615`
  hint: without quotes: `5`",
    );
}

#[test]
fn names_must_be_unique_and_references_must_hold() {
    check(
        "targets:
- { name: qwen, url: 'http://h' }
- { name: qwen, url: 'http://h' }
- { name: 'a b', url: 'http://h' }
probes:
- name: p
  targets: [qwem, qwen, qwen]
  arrivals: { process: closed, concurrency: 5 }
  workload: { synthetic: { input_tokens: 16, output_tokens: 4 }, cache: warm }
- name: p
  targets: []
  arrivals: { process: poisson, rate: 1/s, concurrency: 5 }
  workload: { synthetic: { input_tokens: 0 } }
",
        "
c.yaml:3: `targets[1].name`: given twice
  given: `qwen`
  wanted: a name of its own
  hint: `targets[0].name` has it already
c.yaml:4: `targets[2].name`: not understood
  given: `a b`
  wanted: 1 to 64 letters, digits, `.`, `_` or `-`
c.yaml:7: `probes[0].targets[0]`: unknown name
  given: `qwem`
  wanted: the name of a target
  hint: did you mean `qwen`
c.yaml:7: `probes[0].targets[2]`: given twice
  given: `qwen`
  wanted: each target once
c.yaml:8: `probes[0].arrivals.concurrency`: out of range
  given: `5`
  wanted: at most `governor.in_flight`, which is `4`
  hint: raise `governor.in_flight`
c.yaml:9: `probes[0].workload.synthetic.input_tokens`: out of range
  given: `16`
  wanted: more than `16` for `cache: warm` and `cache: paired`
  hint: the last 16 tokens of a warm prompt are always new
c.yaml:10: `probes[1].name`: given twice
  given: `p`
  wanted: a name of its own
  hint: `probes[0].name` has it already
c.yaml:11: `probes[1].targets`: missing
  given: an empty list
  wanted: at least one
c.yaml:12: `probes[1].arrivals.concurrency`: out of range
  given: `5`
  wanted: at most `governor.in_flight`, which is `4`
  hint: raise `governor.in_flight`
c.yaml:13: `probes[1].workload.synthetic.input_tokens`: out of range
  given: `0`
  wanted: from `1` to `1000000`
c.yaml:13: `probes[1].workload.synthetic.output_tokens`: missing
  wanted: a number of tokens from `1` to `1000000`, or lengths as in `normal(512, 64)`",
    );
}

#[test]
fn what_is_planned_is_refused_and_not_ignored() {
    let refused = "not available in this version";
    for (path, text) in [
        ("state", with_probe(&format!("{GOOD}\nstate: /x"))),
        ("detection", with_probe(&format!("{GOOD}\ndetection: {{}}"))),
        (
            "governor.yield_when",
            with_probe(&format!("{GOOD}\ngovernor: {{ yield_when: {{}} }}")),
        ),
        (
            "probes[0].expect",
            with_probe(&format!("{GOOD}\n  expect: {{}}")),
        ),
        (
            "probes[0].workload.questions",
            with_probe(&GOOD.replace("} }", "}, questions: x }")),
        ),
        (
            "probes[0].arrivals.process",
            with_probe(&GOOD.replace("constant", "sine")),
        ),
        (
            "targets[0].gpu.select",
            with_probe(GOOD).replace("name: a", "name: a\n  gpu: { nvml: true, select: x }"),
        ),
        (
            "targets[0].api",
            with_probe(GOOD).replace("name: a", "name: a\n  api: image_generation"),
        ),
        (
            "targets[0].http",
            with_probe(GOOD).replace("name: a", "name: a\n  http: 3"),
        ),
    ] {
        let found = from_text(&text, Format::Yaml, "c.yaml").expect_err(path);
        let found: Vec<_> = found
            .as_slice()
            .iter()
            .map(|one| (&*one.path, one.problem.text()))
            .collect();
        assert_eq!(found, [(path, refused)], "{text}");
    }
}

#[test]
fn a_syntax_error_ends_the_list() {
    for (text, format, place) in [
        ("targets: [\nname: a\n", Format::Yaml, "c:"),
        ("a: 1\na: 2\n", Format::Yaml, "c:2: "),
        ("- a\n", Format::Yaml, "c:1: "),
        ("a = 1\na = 2\n", Format::Toml, "c:2: "),
        ("[targets\n", Format::Toml, "c:1: "),
    ] {
        let found = from_text(text, format, "c")
            .expect_err("no syntax")
            .to_string();
        assert!(found.starts_with(place), "{found}");
        assert!(found.contains("syntax error\n  hint: "), "{found}");
        assert_eq!(found.lines().count(), 2, "{found}");
    }
}

#[test]
fn an_empty_file_lacks_what_must_be_there() {
    check(
        "# nothing\n",
        "
c.yaml: `targets`: missing
  wanted: a list with at least one target
c.yaml: `probes`: missing
  wanted: a list with at least one probe",
    );
}
