//! The boards as Grafana's own types read them: no field that they do not know, no value that
//! they take for another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use super::components::component;
use super::prometheus::told_of;
use crate::program::tell;

/// What the types leave to others: a data source has fields of its own in an annotation, and the
/// page that edits a variable keeps its query a second time.
const BEYOND: [&str; 7] = [
    ".annotations.list[].step",
    ".annotations.list[].tagKeys",
    ".annotations.list[].textFormat",
    ".annotations.list[].titleFormat",
    ".annotations.list[].useValueForTime",
    ".templating.list[].definition",
    // Its absence and `null` are the same to them.
    ".templating.list[].allValue",
];

#[derive(Deserialize)]
struct Read {
    panels: usize,
    differences: Vec<(String, String)>,
}

fn read(boards: &BTreeMap<String, Value>) -> BTreeMap<String, Read> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/components/read_boards.py");
    let mut python = Command::new(component("TOKENCANARY_PYTHON"));
    python.arg(script);
    let told = told_of(python, &json!(boards).to_string());
    serde_json::from_str(&told).expect("it prints JSON")
}

fn boards() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards");
    let files = fs::read_dir(folder).expect("it is there");
    let paths = files.map(|entry| entry.expect("it can be read").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("it can be read");
            let board = serde_json::from_str(&text).expect("it is JSON");
            (path.display().to_string(), board)
        })
        .collect()
}

/// How often a panel of `kind` is spoilt in `boards`, by a field that no panel has.
fn spoil(boards: &mut BTreeMap<String, Value>, kind: &str) -> usize {
    let all = boards.values_mut().flat_map(|board| {
        let panels = board["panels"].as_array_mut();
        panels.expect("a board has panels")
    });
    let of_kind = all.filter(|panel| panel["type"] == kind);
    of_kind
        .map(|panel| panel["options"]["no_such_option"] = json!(true))
        .count()
}

#[test]
fn the_types_of_grafana_know_every_field_of_the_boards() {
    let boards = boards();
    assert_eq!(boards.len(), 4, "{:?}", boards.keys());
    let mut panels = 0;
    for (name, read) in read(&boards) {
        let ours = boards[&name]["panels"].as_array().map(Vec::len);
        assert_eq!(Some(read.panels), ours, "{name}");
        panels += read.panels;
        let unknown: Vec<_> = read
            .differences
            .iter()
            .filter(|(place, _)| !BEYOND.contains(&place.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{name}: {unknown:#?}");
    }
    tell(&format!("{panels} panels of {} boards", boards.len()));
}

#[test]
fn an_option_that_no_panel_has_is_found() {
    for kind in ["timeseries", "heatmap", "stat", "table"] {
        let mut boards = boards();
        assert!(spoil(&mut boards, kind) > 0, "no {kind}");
        let found = read(&boards).into_values().any(|read| {
            let unknown = (".panels[].options.no_such_option", "lost");
            read.differences
                .iter()
                .any(|(place, how)| (place.as_str(), how.as_str()) == unknown)
        });
        assert!(found, "{kind}");
    }
}
