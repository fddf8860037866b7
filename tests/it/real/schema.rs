//! The JSON Schema of the configuration, asked with a validator of others: it takes every
//! configuration that is shown anywhere, and refuses unknown keys and wrong types in all of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use tokencanary::config::schema;

use super::components::component;
use crate::program::tell;

/// Sections whose keys are the reader's own.
const FREE: [&str; 3] = ["headers", "extra", "resource"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("it is YAML")
}

/// What is wrong with each of `documents`, by the validator.
fn wrong(documents: &BTreeMap<String, Value>) -> BTreeMap<String, Vec<String>> {
    let script = root().join("tests/components/validate_schema.py");
    let mut python = Command::new(component("TOKENCANARY_PYTHON"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is installed");
    let asked = json!({ "schema": schema(), "documents": documents }).to_string();
    let mut input = python.stdin.take().expect("it is piped");
    input.write_all(asked.as_bytes()).expect("it reads");
    drop(input);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// The files of samples, and those that are deployed.
fn samples() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for folder in ["config", "deploy/compose", "deploy/kubernetes"] {
        for entry in fs::read_dir(root().join(folder)).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let name = path.display().to_string();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let is_ours = folder == "config" || name.ends_with("/canary.yaml");
            let is_toml = path.extension().is_some_and(|end| end == "toml");
            if is_ours && is_toml {
                let value: Value = toml::from_str(&text).expect("it is TOML");
                found.insert(name, value);
            } else if is_ours {
                found.insert(name, yaml(&text));
            }
        }
    }
    assert!(found.len() >= 7, "{:?}", found.keys());
    found
}

/// Blocks of the documents that are configurations, or parts of one: what is missing is put in.
fn blocks(whole: &Value) -> BTreeMap<String, Value> {
    let known = schema()["properties"].clone();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("docs")).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("it can be read");
        let blocks = text.split("```yaml\n").skip(1).enumerate();
        for (number, block) in blocks {
            let (block, _) = block.split_once("```").expect("it ends");
            let Ok(Value::Object(mut part)) = serde_saphyr::from_str::<Value>(block) else {
                continue;
            };
            if !part.keys().all(|key| known.get(key).is_some()) {
                continue;
            }
            for key in ["targets", "probes"] {
                part.entry(key).or_insert_with(|| whole[key].clone());
            }
            found.insert(format!("{} {number}", path.display()), part.into());
        }
    }
    found
}

/// Every way to make `document` wrong in one place: a key that nobody knows in each section, and
/// in place of each value a list in a list.
fn spoilt(document: &Value) -> Vec<(String, Value)> {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(place) = places.get(next).cloned() {
        next += 1;
        let is_free = FREE.iter().any(|name| place.ends_with(&format!("/{name}")));
        match document.pointer(&place) {
            Some(Value::Object(section)) if !is_free => {
                places.extend(section.keys().map(|key| format!("{place}/{key}")));
            }
            Some(Value::Array(items)) => {
                places.extend((0..items.len()).map(|index| format!("{place}/{index}")));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for place in places {
        let is_free = FREE.iter().any(|name| place.ends_with(&format!("/{name}")));
        let mut other = document.clone();
        let value = other.pointer_mut(&place).expect("it was found");
        let section: Option<&mut Map<String, Value>> = value.as_object_mut();
        if let Some(section) = section.filter(|_| !is_free) {
            section.insert("no_such_key".to_owned(), json!(1));
            found.push((format!("{place}/no_such_key"), other));
        }
        let mut other = document.clone();
        *other.pointer_mut(&place).expect("it was found") = json!([[]]);
        found.push((format!("{place} [[]]"), other));
    }
    found
}

#[test]
fn the_schema_takes_what_is_shown_and_refuses_what_is_wrong() {
    let samples = samples();
    let minimal = samples
        .iter()
        .find(|(name, _)| name.ends_with("minimal.yaml"));
    let blocks = blocks(minimal.expect("it is there").1);
    assert!(blocks.len() >= 4, "{:?}", blocks.keys());
    let mut good = samples.clone();
    good.extend(blocks);
    let told = wrong(&good);
    let (refused, taken): (Vec<_>, Vec<_>) = told.iter().partition(|(_, wrong)| !wrong.is_empty());
    // The one that the page shows to be refused.
    assert_eq!(refused.len(), 1, "{refused:#?}");
    let (name, why) = &refused[0];
    assert!(name.contains("configuration.md"), "{name}");
    let why = why.join("\n");
    for part in ["api_key", "input_token", "expect", "rate"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }

    let spoilt: BTreeMap<String, Value> = samples
        .iter()
        .flat_map(|(name, document)| {
            let ways = spoilt(document).into_iter();
            ways.map(move |(way, document)| (format!("{name} {way}"), document))
        })
        .collect();
    assert!(spoilt.len() > 300, "{}", spoilt.len());
    let told = wrong(&spoilt);
    assert_eq!(told.len(), spoilt.len());
    let missed: Vec<_> = told.iter().filter(|(_, wrong)| wrong.is_empty()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    tell(&format!(
        "{} configurations taken, {} spoilt ones refused",
        taken.len(),
        spoilt.len()
    ));
}
