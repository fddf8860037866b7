//! What follows from settings and configuration. What the rules do is tested with promtool
//! (`dashboards/rules/tests`).

use std::collections::BTreeSet;

use super::*;

/// A configuration with one probe for each of `rates`, each at the target `t`.
fn configured(rates: &[&str], urls: &str) -> Config {
    let probes: Vec<String> = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| {
            format!(
                "  - name: p{index}\n    targets: [t]\n    arrivals: {rate}\n    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 8 }} }}\n"
            )
        })
        .collect();
    let probes = probes.concat();
    let text = format!("targets:\n  - {{ name: t, {urls} }}\nprobes:\n{probes}");
    crate::config::from_text(&text, crate::config::Format::Yaml, "c.yaml").expect("it is good")
}

fn rate(rate: &str) -> String {
    format!("{{ process: constant, rate: {rate} }}")
}

fn group<'a>(file: &'a RuleFile, name: &str) -> Option<&'a Group> {
    file.groups.iter().find(|group| group.name == name)
}

fn rule<'a>(group: &'a Group, name: &str) -> &'a Rule {
    let named = |rule: &&Rule| rule.name() == name;
    group.rules.iter().find(named).expect("it is there")
}

#[test]
fn each_length_of_window_has_rules_for_its_probes() {
    let rates = [
        &*rate("0.2/s"),
        &*rate("0.1/s"),
        &*rate("6/min"),
        &*rate("1/min"),
    ];
    let file = rules(
        &Settings::default(),
        Some(&configured(&rates, "url: 'http://a'")),
    );
    let names: Vec<&str> = file.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(
        names,
        [
            "tokencanary-streams-5m",
            "tokencanary-streams-30m",
            "tokencanary-baselines",
            "tokencanary-slo",
            "tokencanary-slo-long",
            "tokencanary-alerts",
            "tokencanary-own-alerts",
        ]
    );
    let fast = group(&file, "tokencanary-streams-5m").expect("above");
    assert_eq!(
        rule(fast, "tokencanary:request_ttft_seconds:samples")
            .expr
            .0,
        "sum without (instance, pod) (increase(tokencanary_request_ttft_seconds_count{probe=~\"p0|p1|p2\"}[5m]))"
    );
    let slow = group(&file, "tokencanary-streams-30m").expect("above");
    assert_eq!(
        rule(slow, "tokencanary:request_ttft_seconds:samples")
            .expr
            .0,
        "sum without (instance, pod) (increase(tokencanary_request_ttft_seconds_count{probe=\"p3\"}[30m]))"
    );
}

#[test]
fn several_addresses_share_the_rate_of_a_probe() {
    let one = configured(&[&rate("6/min")], "url: 'http://a'");
    let two = configured(&[&rate("6/min")], "urls: ['http://a', 'http://b']");
    let settings = Settings::default();
    assert!(group(&rules(&settings, Some(&one)), "tokencanary-streams-5m").is_some());
    assert!(group(&rules(&settings, Some(&two)), "tokencanary-streams-10m").is_some());
}

#[test]
fn probes_that_are_too_slow_for_any_window_are_named() {
    let config = configured(
        &[
            &rate("1/min"),
            &rate("1/h"),
            "{ process: closed, concurrency: 1 }",
        ],
        "url: 'http://a'",
    );
    assert_eq!(unwatched(&Settings::default(), &config), ["p1"]);
    // 6 h hold 20 requests at 1 in 18 minutes, if nothing is left to chance.
    let config = configured(&[&rate("3.4/h"), &rate("3.3/h")], "url: 'http://a'");
    assert_eq!(unwatched(&Settings::default(), &config), ["p1"]);
}

#[test]
fn every_time_is_divided() {
    let settings = Settings {
        compress: NonZeroU32::new(12).expect("not zero"),
        ..Settings::default()
    };
    let file = rules(&settings, None);
    let intervals: Vec<&str> = file.groups.iter().map(|group| &*group.interval).collect();
    assert_eq!(
        intervals,
        ["2s500ms", "2s500ms", "2s500ms", "25s", "2s500ms", "2s500ms"]
    );
    let baselines = group(&file, "tokencanary-baselines").expect("it is there");
    assert_eq!(
        rule(baselines, "tokencanary:request_itl_seconds:p95_baseline")
            .expr
            .0,
        "quantile_over_time(0.5, tokencanary:request_itl_seconds:p95[2h] offset 2m30s)\nand count_over_time(tokencanary:request_itl_seconds:p95[2h] offset 2m30s) >= 120"
    );
    let alerts = group(&file, "tokencanary-alerts").expect("it is there");
    let ttft = rule(alerts, "TokencanaryTtftRegression");
    assert_eq!(ttft.hold.as_deref(), Some("10s"));
    let success = rule(alerts, "TokencanaryNoSuccess");
    assert_eq!(success.hold, None);
    assert!(success.expr.0.ends_with("> 150"), "{}", success.expr.0);
    // A certificate does not expire sooner in a rehearsal.
    assert!(
        rule(alerts, "TokencanaryCertificateExpires")
            .expr
            .0
            .ends_with("< 1209600")
    );
    let all = to_yaml("", &file).expect("it is plain text");
    // Five minutes are what an hour becomes, and six hours three days.
    for whole in ["[1d]", "[3d]", "for: 2m\n"] {
        assert!(!all.contains(whole), "{whole}");
    }
    assert!(all.contains("[25s]"), "{all}");
}

#[test]
fn names_are_recorded_once_and_links_are_as_asked() {
    let settings = Settings {
        links: Links {
            runbooks: "https://wiki/".to_owned(),
            grafana: "https://grafana".to_owned(),
        },
        ..Settings::default()
    };
    let file = rules(&settings, None);
    let all: Vec<&Rule> = file.groups.iter().flat_map(|group| &group.rules).collect();
    let names: BTreeSet<&str> = all
        .iter()
        .filter_map(|rule| rule.record.as_deref())
        .collect();
    assert_eq!(
        names.len(),
        all.iter().filter(|rule| rule.record.is_some()).count()
    );
    let alerts: BTreeSet<&str> = all
        .iter()
        .filter_map(|rule| rule.alert.as_deref())
        .collect();
    // One comes with a configuration only.
    assert_eq!(alerts.len(), ALERTS.len() - 1);
    for annotations in all.iter().filter_map(|rule| rule.annotations.as_ref()) {
        assert!(annotations.runbook_url.starts_with("https://wiki/"));
        assert!(
            annotations
                .dashboard_url
                .starts_with("https://grafana/d/tokencanary-")
        );
    }
}

#[test]
fn odd_names_are_quoted() {
    let mut config = configured(&[&rate("1/s")], "url: 'http://a'");
    config.probes[0].name = "a.b\"c".to_owned();
    config.probes.push(config.probes[0].clone());
    config.probes[1].name = "d".to_owned();
    let file = rules(&Settings::default(), Some(&config));
    let text = to_yaml("", &file).expect("it is text");
    assert!(text.contains(r#"probe=~"a\\.b\"c|d""#), "{text}");
    assert!(text.contains(r#"absent(tokencanary_arrivals_total{target="t", probe="a.b\"c"})"#));
}
