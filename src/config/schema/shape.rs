//! From the words for what is wanted to what a value looks like.
//!
//! It says less than the readers do: ranges of durations, and what other keys and files allow, are
//! theirs.

use serde_json::{Value, json};

/// `50ms`, `1.5 h`.
const DURATION: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(us|µs|ms|s|m|min|h|d)\s*$";
/// `0.2/s`, `12/min`.
const RATE: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*/(s|m|min|h|d)\s*$";
/// `50000`, `50k`.
const COUNT: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*[kMG]?\s*$";
/// `100MB`, `64KiB`.
const SIZE: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(B|[kK]B|[MGT]B|[KMGT]iB)\s*$";
/// `10%`.
const PERCENTAGE: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*%\s*$";
/// `500ms at p95`.
const LIMIT: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(us|µs|ms|s|m|min|h|d)\s+at\s+p([0-9]+\.?[0-9]*|\.[0-9]+)\s*$";
const NAME: &str = r"^[A-Za-z0-9._-]{1,64}$";

/// How phrases for values without a closed set of words begin.
const TEXTS: [&str; 12] = [
    "a text",
    "the namespace of ",
    "the name of ",
    "the path of ",
    "a URL, ",
    "a whole URL, ",
    "the base URL ",
    "an address and a port, ",
    "a path below ",
    "a JSON path, ",
    "pairs of lengths, ",
    "a host name, ",
];

/// What `wanted` says; `section` is a reference to the section that the key holds, or that the
/// items of its list are. `None` if these words are not known.
pub(super) fn shape(wanted: &str, section: Option<Value>) -> Option<Value> {
    if let Some(shape) = list(wanted, section.clone()) {
        return Some(shape);
    }
    let shape = match wanted {
        "`true` or `false`" => json!({ "type": "boolean" }),
        // Programs that write the older YAML make `false` of `off`.
        _ if wanted.starts_with("`auto`, `off` or a URL") => {
            any_of([json!({ "const": false }), json!({ "type": "string" })])
        }
        _ if wanted.starts_with("`words`, `{ ") => any_of([json!({ "const": "words" }), section?]),
        _ if wanted.ends_with(", or a section") => any_of([json!({ "type": "string" }), section?]),
        _ if wanted.starts_with("`{ env: ") => reference("secret"),
        _ if wanted.starts_with("a section") => return map(wanted).or(section),
        _ if wanted.starts_with("a number of tokens from ") => {
            any_of([number("integer", wanted)?, json!({ "type": "string" })])
        }
        _ if wanted.starts_with("a whole number") => number("integer", wanted)?,
        _ if wanted.starts_with("a number from ") => number("number", wanted)?,
        _ if wanted.starts_with("a duration, ") => pattern(DURATION),
        _ if wanted.starts_with("a rate, ") => pattern(RATE),
        _ if wanted.starts_with("a count, ") => {
            any_of([json!({ "type": "integer", "minimum": 0 }), pattern(COUNT)])
        }
        _ if wanted.starts_with("a size, ") => pattern(SIZE),
        _ if wanted.starts_with("a percentage, ") => pattern(PERCENTAGE),
        _ if wanted.starts_with("a limit and its objective, ") => pattern(LIMIT),
        _ if wanted.starts_with("1 to 64 letters") => pattern(NAME),
        // A rate, or how many.
        _ if wanted.starts_with("where it begins, ") => {
            any_of([json!({ "type": "integer", "minimum": 1 }), pattern(RATE)])
        }
        _ if TEXTS.iter().any(|text| wanted.starts_with(text)) => json!({ "type": "string" }),
        _ => return words(wanted).map(|words| json!({ "enum": words })),
    };
    Some(shape)
}

/// A list, if these are the words for one.
fn list(wanted: &str, section: Option<Value>) -> Option<Value> {
    let rest = wanted.strip_prefix("a list")?;
    let rest = rest.strip_prefix(" of ").unwrap_or(rest);
    let items = if rest.starts_with(" with at least one") || rest.starts_with(", as in `[{") {
        section?
    } else if rest.starts_with("names ") {
        pattern(NAME)
    } else if rest.starts_with("numbers") {
        json!({ "type": "integer", "minimum": 0 })
    } else if rest.starts_with("URLs") || rest.starts_with("keys") {
        json!({ "type": "string" })
    } else if rest.starts_with("durations") {
        pattern(DURATION)
    } else if rest.starts_with("24 rates") {
        let items = pattern(RATE);
        return Some(json!({ "type": "array", "items": items, "minItems": 24, "maxItems": 24 }));
    } else {
        json!({ "enum": words(rest)? })
    };
    Some(json!({ "type": "array", "items": items, "minItems": 1 }))
}

/// A section whose keys are the reader's own, if these are the words for one.
fn map(wanted: &str) -> Option<Value> {
    let values = match wanted {
        "a section of header names and their values" => {
            any_of([json!({ "type": "string" }), reference("secret")])
        }
        "a section of further fields of the body" => json!(true),
        "a section of attribute names and their values" => json!({ "type": ["string", "number"] }),
        _ => return None,
    };
    Some(json!({ "type": "object", "additionalProperties": values }))
}

/// A secret: where it is, never what it is.
pub(super) fn secret() -> Value {
    let place = |key: &str| {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": [key],
            "properties": { key: { "type": "string" } },
        })
    };
    json!({ "oneOf": [place("env"), place("file")] })
}

/// A reference to the definition called `name`.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn any_of(choices: [Value; 2]) -> Value {
    let choices = Vec::from(choices);
    json!({ "anyOf": choices })
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A number with the bounds that `wanted` names.
fn number(kind: &str, wanted: &str) -> Option<Value> {
    let (_, bounds) = wanted.split_once(" from `")?;
    let (least, rest) = bounds.split_once("` to `")?;
    let (most, _) = rest.split_once('`')?;
    let bound = |text: &str| serde_json::from_str::<Value>(text).ok();
    Some(json!({ "type": kind, "minimum": bound(least)?, "maximum": bound(most)? }))
}

/// A closed set of words. One that reads as a number may stand without quotes.
fn words(wanted: &str) -> Option<Vec<Value>> {
    let mut parts = wanted.split('`');
    let mut words = Vec::new();
    while let Some(between) = parts.next() {
        if !matches!(between, "" | ", " | " or " | " and ") {
            return None;
        }
        let Some(word) = parts.next() else { break };
        words.push(Value::from(word));
        words.extend(word.parse::<f64>().ok().map(Value::from));
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_what_they_say() {
        let of = |wanted| shape(wanted, None);
        assert_eq!(
            of("a whole number from `1` to `100`"),
            Some(json!({ "type": "integer", "minimum": 1, "maximum": 100 }))
        );
        assert_eq!(
            of("a number from `0.001` to `1000`"),
            Some(json!({ "type": "number", "minimum": 0.001, "maximum": 1000 }))
        );
        assert_eq!(
            of("`any`, `ipv4` or `ipv6`"),
            Some(json!({ "enum": ["any", "ipv4", "ipv6"] }))
        );
        assert_eq!(
            of("`1.1`, `2` or `auto`"),
            Some(json!({ "enum": ["1.1", 1.1, "2", 2.0, "auto"] }))
        );
        assert_eq!(
            of("a list of `traces`, `metrics` and `logs`"),
            Some(json!({
                "type": "array", "minItems": 1,
                "items": { "enum": ["traces", "metrics", "logs"] },
            }))
        );
        assert_eq!(of("as you like"), None);
        assert_eq!(of("a section, as in `{ a: b }`"), None, "which one");
        assert_eq!(
            shape("a section", Some(reference("x"))),
            Some(json!({ "$ref": "#/$defs/x" }))
        );
    }
}
