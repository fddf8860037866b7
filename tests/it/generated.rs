//! What is generated and committed is what the program would write now, and it hangs together:
//! rules and boards name only what exists, and leave nothing out.
//!
//! After a wanted change: `TOKENCANARY_BLESS=1 cargo nextest run --test it generated` writes the
//! files anew; read the difference before keeping it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokencanary::config::schema;
use tokencanary::export::boards::boards;
use tokencanary::export::catalog::{ALL, Kind, Metric};
use tokencanary::export::reference;
use tokencanary::export::rules::{ALERTS, Form, HEAD, Rule, Settings, rules, to_yaml};

use crate::program::blessing;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Holds `file` against `wanted`, or writes it anew.
fn committed(file: &Path, wanted: &str) {
    if blessing() {
        fs::create_dir_all(file.parent().expect("a file is in a folder"))
            .expect("the tree can be written to");
        fs::write(file, wanted).expect("the tree can be written to");
        return;
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == wanted,
        "{}: changed; `TOKENCANARY_BLESS=1` writes it anew",
        file.display()
    );
}

/// The rules of both forms.
fn all_rules(form: Form) -> Vec<Rule> {
    let settings = Settings {
        form,
        ..Settings::default()
    };
    let groups = rules(&settings, None).groups;
    groups.into_iter().flat_map(|group| group.rules).collect()
}

#[test]
fn the_committed_rules_are_up_to_date() {
    for form in [Form::Classic, Form::Native] {
        let settings = Settings {
            form,
            ..Settings::default()
        };
        let text = to_yaml(HEAD, &rules(&settings, None)).expect("rules are plain text");
        let file = root().join(format!("dashboards/rules/{}.yaml", form.name()));
        committed(&file, &text);
    }
}

#[test]
fn the_committed_boards_are_up_to_date() {
    for board in boards() {
        let text = serde_json::to_string_pretty(&board.json).expect("it is JSON") + "\n";
        let file = root().join(format!("dashboards/{}.json", board.name));
        committed(&file, &text);
    }
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let text = serde_json::to_string_pretty(&schema()).expect("it is JSON") + "\n";
    committed(&root().join("docs/schema.json"), &text);
}

#[test]
fn the_reference_of_metrics_is_up_to_date() {
    let file = root().join("docs/metrics.md");
    let page = fs::read_to_string(&file).expect("the page is there");
    let at = page.find(reference::HEADER).expect("the page has a table");
    committed(&file, &(page[..at].to_owned() + &reference::table()));
}

/// Words of `text` that look like names of metrics or of recorded series.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == ':';
    text.split(|one| !is_part(one))
        .filter(|word| word.starts_with("tokencanary_") || word.starts_with("tokencanary:"))
        .map(str::to_owned)
        .collect()
}

/// Names under which Prometheus holds `metric`.
fn series_of(metric: &Metric) -> Vec<String> {
    let name = metric.prometheus;
    match metric.kind {
        Kind::Histogram(_) => ["", "_bucket", "_count", "_sum"]
            .map(|end| format!("{name}{end}"))
            .to_vec(),
        Kind::Counter | Kind::Gauge => vec![name.to_owned()],
    }
}

/// Every query of every panel and annotation.
fn board_texts() -> String {
    let mut found = String::new();
    let boards = boards();
    let mut open: Vec<&Value> = boards.iter().map(|board| &board.json).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    match inner.as_str() {
                        Some(text) if key == "expr" || key == "definition" => {
                            found.push_str(text);
                            found.push('\n');
                        }
                        _ => open.push(inner),
                    }
                }
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    found
}

fn rule_texts() -> String {
    let both = [Form::Classic, Form::Native].map(all_rules);
    let texts = both.iter().flatten().map(|rule| {
        let said = rule.annotations.as_ref().map(|one| &*one.description);
        format!("{}\n{}\n", rule.expr.0, said.unwrap_or_default())
    });
    texts.collect()
}

#[test]
fn rules_and_boards_name_only_what_exists() {
    let mut known: BTreeSet<String> = ALL.iter().flat_map(|one| series_of(one)).collect();
    known.extend(
        all_rules(Form::Classic)
            .iter()
            .map(|rule| rule.name().to_owned()),
    );
    for text in [board_texts(), rule_texts()] {
        assert!(text.len() > 5_000, "it looks at something");
        let unknown: Vec<String> = names_in(&text).difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn both_forms_of_the_rules_have_the_same_names() {
    let [classic, native] = [Form::Classic, Form::Native].map(all_rules);
    let names = |rules: &[Rule]| -> Vec<String> {
        rules.iter().map(|rule| rule.name().to_owned()).collect()
    };
    assert_eq!(names(&classic), names(&native));
    let natives: String = native.iter().map(|rule| rule.expr.0.clone()).collect();
    assert!(!natives.contains("_bucket"));
    assert!(natives.contains("histogram_count("));
}

#[test]
fn the_pictures_show_every_panel() {
    for board in boards() {
        let file = root().join(format!("docs/pictures/board-{}.svg", board.name));
        let picture = fs::read_to_string(&file).unwrap_or_default();
        for panel in board.json["panels"].as_array().expect("a list") {
            let title = panel["title"].as_str().expect("a title");
            let shown = format!(">{}<", title.replace('&', "&amp;"));
            assert!(
                picture.contains(&shown),
                "{}: no `{title}`; `tests/pictures` draws it anew",
                file.display()
            );
        }
    }
}

#[test]
fn every_metric_has_a_panel_a_rule_or_a_reason() {
    let page = fs::read_to_string(root().join("docs/boards.md")).expect("the page is there");
    let (_, reasons) = page
        .split_once("## On no board")
        .expect("the page says what is on no board");
    let mut named = names_in(&board_texts());
    named.extend(names_in(&rule_texts()));
    for metric in ALL {
        let shown = series_of(metric).iter().any(|name| named.contains(name))
            || board_texts().contains(metric.prometheus);
        let excused = reasons.contains(&format!("`{}`", metric.prometheus));
        assert!(
            shown != excused,
            "{}: shown {shown}, excused {excused}",
            metric.prometheus
        );
    }
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let folder = root().join("docs/runbooks");
    let mut wanted = BTreeSet::new();
    for alert in ALERTS {
        let file = folder.join(alert.runbook());
        let text = fs::read_to_string(&file).unwrap_or_default();
        let title = text.lines().next().unwrap_or_default();
        assert!(title.contains(alert.name()), "{}: {title}", file.display());
        wanted.insert(file);
    }
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let found: BTreeSet<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    assert_eq!(found, wanted);
}

/// The tests of the rules, as one text.
fn rule_tests() -> String {
    let folder = root().join("dashboards/rules/tests");
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let texts = entries.map(|entry| {
        let path = entry.expect("it can be read").path();
        fs::read_to_string(path).expect("it can be read")
    });
    texts.collect()
}

#[test]
fn every_rule_is_tested_and_every_alert_both_ways() {
    let tests = rule_tests();
    let names = names_in(&tests);
    let mut untested = Vec::new();
    for rule in all_rules(Form::Classic) {
        match &rule.record {
            Some(name) if !names.contains(name) => untested.push(name.clone()),
            _ => {}
        }
    }
    // What a test says of an alert begins with its name.
    let said: Vec<&str> = tests.split("alertname: ").skip(1).collect();
    for alert in ALERTS {
        let of = |text: &&&str| text.starts_with(alert.name());
        let all: Vec<&str> = said.iter().filter(of).copied().collect();
        let quiet = all.iter().any(|text| text.contains("exp_alerts: []"));
        let fires = all.iter().any(|text| text.contains("exp_labels:"));
        if !quiet || !fires {
            untested.push(format!("{}: quiet {quiet}, fires {fires}", alert.name()));
        }
    }
    assert!(untested.is_empty(), "{untested:#?}");
}
