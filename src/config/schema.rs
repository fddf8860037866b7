//! The configuration as a JSON Schema (draft 2020-12), for editors.
//!
//! It is made from the key table and from the page that describes the keys, and holds nothing of
//! its own: a key's type is read from the words that messages have for what is wanted, its
//! description, its default and whether it must be there from its row of
//! `docs/configuration.md`. What depends on other keys, or on files and the environment, only the
//! program itself can tell.

mod page;
mod shape;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::check::PROCESSES;
use super::keys::{ARRIVALS, Key, TABLES, TOP, Table};
use super::reader::join;
use page::Described;

/// The schema as one JSON object.
///
/// # Panics
///
/// Never: the words of the key table are a closed set, which a test holds.
#[must_use]
pub fn schema() -> Value {
    let described = page::described();
    let mut definitions: Map<String, Value> = TABLES
        .iter()
        .filter(|table| !table.at.is_empty())
        .map(|table| (definition(table.at), section(table, &described)))
        .collect();
    definitions.insert("secret".to_owned(), shape::secret());
    let mut schema = section(&TOP, &described);
    let more = [
        (
            "$schema",
            json!("https://json-schema.org/draft/2020-12/schema"),
        ),
        ("title", json!("Configuration of tokencanary")),
        ("$defs", Value::Object(definitions)),
    ];
    for (name, value) in more {
        schema[name] = value;
    }
    schema
}

/// The keys of `table`: no others, and none missing that must be there.
fn section(table: &Table, described: &Described) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut one_of = BTreeSet::new();
    for key in table.keys {
        let path = join(table.at, key.name);
        let mut property = shape_of(table, key);
        if let Some(row) = described.get(&path) {
            property["description"] = row.text.clone().into();
            // What a process takes depends on which it is.
            let is_plain = table.at != ARRIVALS.at || key.name == "process";
            if row.is_required() && is_plain {
                required.push(key.name);
            }
            let others = row.or_else();
            if !others.is_empty() {
                // From whichever side it is told, it is one choice.
                one_of.insert(
                    others
                        .into_iter()
                        .chain([key.name])
                        .collect::<BTreeSet<_>>(),
                );
            }
        }
        properties.insert(key.name.to_owned(), property);
    }
    let required_of = |names: &BTreeSet<&str>| -> Value {
        let each = names.iter().map(|name| json!({ "required": [name] }));
        json!({ "anyOf": each.collect::<Vec<_>>() })
    };
    let mut all_of: Vec<Value> = one_of.iter().map(required_of).collect();
    if table.at == ARRIVALS.at {
        all_of.extend(PROCESSES.map(|(process, keys)| taken(process, keys)));
    }
    let mut section = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    for (name, list) in [
        ("required", json!(required)),
        ("allOf", Value::Array(all_of)),
    ] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            section[name] = list;
        }
    }
    section
}

/// `process` takes `keys`, and no others.
fn taken(process: &str, keys: &[&str]) -> Value {
    let names: Vec<&str> = std::iter::once("process")
        .chain(keys.iter().copied())
        .collect();
    json!({
        "if": { "properties": { "process": { "const": process } }, "required": ["process"] },
        "then": { "propertyNames": { "enum": names } },
    })
}

/// What a value under `key` of `table` looks like.
fn shape_of(table: &Table, key: &Key) -> Value {
    let path = join(table.at, key.name);
    shape::shape(key.wanted, section_below(&path))
        .expect("the words of the key table are a closed set, which a test holds")
}

/// A reference to the section that stands at `path`, or in the list there.
fn section_below(path: &str) -> Option<Value> {
    let shared = match path {
        "probes[].ramp.concurrency" | "probes[].ramp.prefill_concurrency" => "probes[].ramp.rate",
        "export.otlp.traces.tls" | "export.otlp.metrics.tls" | "export.otlp.logs.tls" => {
            "export.otlp.tls"
        }
        path => path,
    };
    // A phase has its own of these, and they are alike.
    let shared = shared.replace(".phases[].", ".");
    let item = format!("{shared}[]");
    let table = TABLES
        .iter()
        .find(|table| table.at == shared || table.at == item)?;
    Some(shape::reference(&definition(table.at)))
}

/// The name of the definition of the section `at`.
fn definition(at: &str) -> String {
    at.replace("[]", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_type_and_a_description() {
        let described = page::described();
        for table in TABLES {
            for key in table.keys {
                let path = join(table.at, key.name);
                assert!(
                    shape::shape(key.wanted, section_below(&path)).is_some(),
                    "`{path}`: no type in `{}`",
                    key.wanted
                );
                let row = described.get(&path);
                assert!(row.is_some_and(|row| !row.text.is_empty()), "`{path}`");
            }
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition_and_every_definition_is_used() {
        let schema = schema();
        let text = schema.to_string();
        let named: std::collections::BTreeSet<&str> = text
            .split("\"#/$defs/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let defined = schema["$defs"].as_object().expect("there are some");
        let defined: std::collections::BTreeSet<&str> =
            defined.keys().map(String::as_str).collect();
        assert_eq!(named, defined);
    }

    #[test]
    fn what_must_be_there_is_what_the_page_says() {
        let schema = schema();
        assert_eq!(schema["required"], json!(["targets", "probes"]));
        let target = &schema["$defs"]["targets"];
        assert_eq!(target["required"], json!(["name"]));
        assert_eq!(
            target["allOf"],
            json!([{ "anyOf": [{ "required": ["url"] }, { "required": ["urls"] }] }])
        );
        let workload = &schema["$defs"]["probes.workload"];
        assert_eq!(
            workload["allOf"].as_array().map(Vec::len),
            Some(1),
            "{workload}"
        );
        let arrivals = &schema["$defs"]["probes.arrivals"];
        assert_eq!(arrivals["required"], json!(["process"]));
        let constant = &arrivals["allOf"][0]["then"]["propertyNames"]["enum"];
        assert_eq!(*constant, json!(["process", "rate", "concurrency"]));
    }
}
