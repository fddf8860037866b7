//! The `OTEL_*` variables, as keys of this configuration.
//!
//! They lie between the file and the `TOKENCANARY__…` variables. They switch OTLP on only where
//! they say where it goes. Values of other spellings (milliseconds without a unit, longer words)
//! are rewritten as ours; what is not understood stays as it is, and is refused under the name
//! of its variable.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

/// One variable, as the key path it stands for.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) keys: Vec<&'static str>,
    pub(super) value: Value,
}

/// What all three signals have.
const SIGNALS: [(&str, &str, &str); 3] = [
    ("TRACES_", "traces", "traces_endpoint"),
    ("METRICS_", "metrics", "metrics_endpoint"),
    ("LOGS_", "logs", "logs_endpoint"),
];
const PREFIX: &str = "OTEL_EXPORTER_OTLP_";

/// Whether OTLP is switched off for all programs.
pub(super) fn is_disabled(environment: &BTreeMap<String, String>) -> bool {
    environment
        .get("OTEL_SDK_DISABLED")
        .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// The variables that are set. `configured` says whether OTLP is on without them.
pub(super) fn variables(environment: &BTreeMap<String, String>, configured: bool) -> Vec<Variable> {
    let mut set = Set {
        environment,
        found: Vec::new(),
    };
    set.put(&format!("{PREFIX}ENDPOINT"), &["endpoint"], text);
    for (of, _, endpoint) in SIGNALS {
        set.put(&format!("{PREFIX}{of}ENDPOINT"), &[endpoint], text);
    }
    if set.found.is_empty() && !configured {
        return set.found;
    }
    for (name, key, convert) in WHOLE {
        set.put(name, &[key], convert);
    }
    let receivers =
        std::iter::once(("", None)).chain(SIGNALS.map(|(of, section, _)| (of, Some(section))));
    for (of, section) in receivers {
        for (name, keys, convert) in RECEIVER {
            let keys: Vec<_> = section.into_iter().chain(keys.iter().copied()).collect();
            set.put(&format!("{PREFIX}{of}{name}"), &keys, convert);
        }
    }
    set.found
}

struct Set<'e> {
    environment: &'e BTreeMap<String, String>,
    found: Vec<Variable>,
}

impl Set<'_> {
    /// The variable `name`, unless it is not set or empty, as the key `keys` of OTLP.
    fn put(&mut self, name: &str, keys: &[&'static str], convert: Convert) {
        let value = self.environment.get(name).map(|value| value.trim());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.found.push(Variable {
                name: name.to_owned(),
                keys: [&["export", "otlp"], keys].concat(),
                value: convert(value),
            });
        }
    }
}

type Convert = fn(&str) -> Value;

/// What is said of all signals or of metrics.
const WHOLE: [(&str, &str, Convert); 5] = [
    ("OTEL_SERVICE_NAME", "service_name", text),
    ("OTEL_RESOURCE_ATTRIBUTES", "resource", pairs),
    ("OTEL_METRIC_EXPORT_INTERVAL", "every", milliseconds),
    (
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
        "temporality",
        temporality,
    ),
    (
        "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
        "histograms",
        aggregation,
    ),
];

/// What may be said of one receiver or of all.
const RECEIVER: [(&str, &[&str], Convert); 7] = [
    ("PROTOCOL", &["protocol"], text),
    ("HEADERS", &["headers"], pairs),
    ("COMPRESSION", &["compression"], text),
    ("TIMEOUT", &["timeout"], milliseconds),
    ("CERTIFICATE", &["tls", "ca"], text),
    ("CLIENT_CERTIFICATE", &["tls", "cert"], text),
    ("CLIENT_KEY", &["tls", "key"], text),
];

fn text(value: &str) -> Value {
    Value::from(value)
}

fn milliseconds(value: &str) -> Value {
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        Value::from(format!("{value}ms"))
    } else {
        Value::from(value)
    }
}

fn temporality(value: &str) -> Value {
    let lower = value.to_ascii_lowercase();
    Value::from(match lower.as_str() {
        "lowmemory" => "low_memory",
        _ => lower.as_str(),
    })
}

fn aggregation(value: &str) -> Value {
    let lower = value.to_ascii_lowercase();
    Value::from(match lower.as_str() {
        "explicit_bucket_histogram" => "explicit",
        "base2_exponential_bucket_histogram" => "exponential",
        _ => lower.as_str(),
    })
}

/// `name=value,name=value`, percent-encoded. A part without `=` becomes a name that is refused.
fn pairs(value: &str) -> Value {
    let pairs = value
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let dict: Dict = pairs
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => (decoded(name.trim()), Value::from(decoded(value.trim()))),
            // Not under its own name: it may be half of a secret.
            None => ("?".to_owned(), Value::from(Dict::new())),
        })
        .collect();
    Value::from(dict)
}

/// `text` without its percent-encoding; what is none stays as it is.
fn decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2)));
        match escaped {
            Some((high, low)) if *byte == b'%' => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
