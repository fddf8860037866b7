//! Faults as JSON: what `POST /sim/faults` takes and `GET /sim/faults` shows.
//!
//! A field that the named fault does not use is refused, not ignored.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::faults::{Fault, FaultKind};
use crate::clock::MonoTime;

const KINDS: &str = "`slow_prefill`, `slow_decode`, `freeze`, `hang`, `cut`, `stream_error`, \
                     `status`, `wrong_answers` or `restart`";
/// Above this a factor is a typing error.
const MAX_FACTOR: f64 = 1_000_000.0;
/// Longest fault, so that instants cannot overflow.
const MAX_SPAN: Duration = Duration::from_hours(365 * 24);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    fault: Option<String>,
    #[serde(rename = "for")]
    lasts: Option<Value>,
    factor: Option<Value>,
    after_chunks: Option<Value>,
    code: Option<Value>,
    retry_after: Option<Value>,
    version: Option<Value>,
}

/// Reads one fault that begins at `now`. The error says what was given and what was wanted.
pub(super) fn parse(body: &[u8], now: MonoTime) -> Result<Fault, String> {
    let mut fields: Fields = serde_json::from_slice(body)
        .map_err(|error| format!("not a fault: {error}; wanted an object such as `{{\"fault\":\"freeze\",\"for\":\"5s\"}}`"))?;
    let name = fields
        .fault
        .take()
        .ok_or_else(|| format!("`fault` is missing; wanted {KINDS}"))?;
    let lasts = duration("for", fields.lasts.take())?
        .ok_or("`for` is missing; wanted a duration such as `5s`")?;
    let kind = kind(&name, &mut fields)?;
    refuse_rest(&name, fields)?;
    Ok(Fault {
        kind,
        from: now,
        lasts,
    })
}

fn kind(name: &str, fields: &mut Fields) -> Result<FaultKind, String> {
    Ok(match name {
        "slow_prefill" => FaultKind::SlowPrefill {
            factor: factor(fields.factor.take())?,
        },
        "slow_decode" => FaultKind::SlowDecode {
            factor: factor(fields.factor.take())?,
        },
        "freeze" => FaultKind::Freeze,
        "hang" => FaultKind::Hang,
        "cut" => FaultKind::Cut {
            after_chunks: after_chunks(fields.after_chunks.take())?,
        },
        "stream_error" => FaultKind::StreamError {
            after_chunks: after_chunks(fields.after_chunks.take())?,
        },
        "status" => FaultKind::Status {
            code: code(fields.code.take())?,
            retry_after: duration("retry_after", fields.retry_after.take())?,
        },
        "wrong_answers" => FaultKind::WrongAnswers,
        "restart" => FaultKind::Restart {
            version: version(fields.version.take())?,
        },
        other => return Err(format!("`fault` is `{other}`; wanted {KINDS}")),
    })
}

fn refuse_rest(name: &str, fields: Fields) -> Result<(), String> {
    let rest = [
        ("factor", fields.factor),
        ("after_chunks", fields.after_chunks),
        ("code", fields.code),
        ("retry_after", fields.retry_after),
        ("version", fields.version),
    ];
    for (field, value) in rest {
        if value.is_some() {
            return Err(format!(
                "`{field}` means nothing for `{name}`; leave it out"
            ));
        }
    }
    Ok(())
}

fn duration(field: &str, value: Option<Value>) -> Result<Option<Duration>, String> {
    let Some(value) = value else { return Ok(None) };
    let span = value
        .as_str()
        .and_then(|text| humantime::parse_duration(text).ok())
        .filter(|span| *span <= MAX_SPAN);
    span.map(Some).ok_or_else(|| {
        format!("`{field}` is `{value}`; wanted a duration such as `5s`, at most a year")
    })
}

fn factor(value: Option<Value>) -> Result<f64, String> {
    let value = value.ok_or("`factor` is missing; wanted a number above 0 such as `2`")?;
    value
        .as_f64()
        .filter(|factor| *factor > 0.0 && *factor <= MAX_FACTOR)
        .ok_or_else(|| format!("`factor` is `{value}`; wanted a number above 0 such as `2`"))
}

/// Absent: one chunk.
fn after_chunks(value: Option<Value>) -> Result<u32, String> {
    let Some(value) = value else { return Ok(1) };
    value
        .as_u64()
        .and_then(|chunks| u32::try_from(chunks).ok())
        .ok_or_else(|| format!("`after_chunks` is `{value}`; wanted a whole number such as `3`"))
}

/// Absent: 503.
fn code(value: Option<Value>) -> Result<u16, String> {
    let Some(value) = value else { return Ok(503) };
    value
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
        .ok_or_else(|| format!("`code` is `{value}`; wanted a status from 400 to 599"))
}

fn version(value: Option<Value>) -> Result<Option<String>, String> {
    let Some(value) = value else { return Ok(None) };
    match value.as_str().filter(|text| !text.is_empty()) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(format!(
            "`version` is `{value}`; wanted a text such as `\"0.12.0\"`"
        )),
    }
}

/// Faults on and to come, as an object with one list.
pub(super) fn list<'a>(faults: impl Iterator<Item = &'a Fault>, now: MonoTime) -> Value {
    let rows: Vec<Value> = faults.map(|fault| row(fault, now)).collect();
    json!({ "faults": rows })
}

fn row(fault: &Fault, now: MonoTime) -> Value {
    let mut row = describe(&fault.kind);
    row["for"] = text(fault.lasts);
    row["starts_in"] = text(fault.from.since(now));
    row["ends_in"] = text(fault.until().since(now));
    row
}

fn describe(kind: &FaultKind) -> Value {
    match kind {
        FaultKind::SlowPrefill { factor } => json!({"fault": "slow_prefill", "factor": factor}),
        FaultKind::SlowDecode { factor } => json!({"fault": "slow_decode", "factor": factor}),
        FaultKind::Freeze => json!({"fault": "freeze"}),
        FaultKind::Hang => json!({"fault": "hang"}),
        FaultKind::Cut { after_chunks } => json!({"fault": "cut", "after_chunks": after_chunks}),
        FaultKind::StreamError { after_chunks } => {
            json!({"fault": "stream_error", "after_chunks": after_chunks})
        }
        FaultKind::Status { code, retry_after } => {
            let mut row = json!({"fault": "status", "code": code});
            if let Some(span) = retry_after {
                row["retry_after"] = text(*span);
            }
            row
        }
        FaultKind::WrongAnswers => json!({"fault": "wrong_answers"}),
        FaultKind::Restart { version } => json!({"fault": "restart", "version": version}),
    }
}

fn text(span: Duration) -> Value {
    // Whole milliseconds: the engine has no finer steps.
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let span = Duration::from_millis(millis);
    Value::String(humantime::format_duration(span).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Result<FaultKind, String> {
        parse(body.as_bytes(), MonoTime::ZERO).map(|fault| fault.kind)
    }

    #[test]
    fn every_fault_of_the_contract_is_read() {
        let five = r#""for":"5s"}"#;
        let of = |head: &str| parsed(&format!("{{{head},{five}"));
        assert_eq!(of(r#""fault":"freeze""#), Ok(FaultKind::Freeze));
        assert_eq!(of(r#""fault":"hang""#), Ok(FaultKind::Hang));
        assert_eq!(
            of(r#""fault":"wrong_answers""#),
            Ok(FaultKind::WrongAnswers)
        );
        assert_eq!(
            of(r#""fault":"slow_prefill","factor":2"#),
            Ok(FaultKind::SlowPrefill { factor: 2.0 })
        );
        assert_eq!(
            of(r#""fault":"slow_decode","factor":1.5"#),
            Ok(FaultKind::SlowDecode { factor: 1.5 })
        );
        assert_eq!(
            of(r#""fault":"cut","after_chunks":3"#),
            Ok(FaultKind::Cut { after_chunks: 3 })
        );
        assert_eq!(
            of(r#""fault":"stream_error""#),
            Ok(FaultKind::StreamError { after_chunks: 1 })
        );
        assert_eq!(
            of(r#""fault":"status","code":429,"retry_after":"7s""#),
            Ok(FaultKind::Status {
                code: 429,
                retry_after: Some(Duration::from_secs(7))
            })
        );
        assert_eq!(
            of(r#""fault":"restart","version":"0.12.0""#),
            Ok(FaultKind::Restart {
                version: Some("0.12.0".to_owned())
            })
        );
    }

    #[test]
    fn a_bad_fault_is_refused_with_what_was_wanted() {
        let cases = [
            ("[", "not a fault"),
            (
                r#"{"for":"5s"}"#,
                "`fault` is missing; wanted `slow_prefill`",
            ),
            (
                r#"{"fault":"fire","for":"5s"}"#,
                "`fault` is `fire`; wanted `slow_prefill`",
            ),
            (
                r#"{"fault":"freeze"}"#,
                "`for` is missing; wanted a duration",
            ),
            (
                r#"{"fault":"freeze","for":5}"#,
                "`for` is `5`; wanted a duration",
            ),
            (
                r#"{"fault":"freeze","for":"5s","factor":2}"#,
                "`factor` means nothing for `freeze`",
            ),
            (
                r#"{"fault":"slow_decode","for":"5s"}"#,
                "`factor` is missing",
            ),
            (
                r#"{"fault":"slow_decode","for":"5s","factor":0}"#,
                "`factor` is `0`; wanted",
            ),
            (
                r#"{"fault":"status","for":"5s","code":200}"#,
                "`code` is `200`; wanted",
            ),
            (
                r#"{"fault":"cut","for":"5s","after_chunks":-1}"#,
                "`after_chunks` is `-1`",
            ),
            (
                r#"{"fault":"freeze","for":"5s","until":3}"#,
                "unknown field `until`",
            ),
        ];
        for (body, wanted) in cases {
            let error = parsed(body).expect_err(body);
            assert!(error.contains(wanted), "{body}: {error}");
        }
    }

    #[test]
    fn the_list_says_what_is_left() {
        let fault = Fault {
            kind: FaultKind::Cut { after_chunks: 3 },
            from: MonoTime::from_nanos(1_000_000_000),
            lasts: Duration::from_secs(5),
        };
        let shown = list([&fault].into_iter(), MonoTime::from_nanos(3_000_000_000));
        assert_eq!(
            shown,
            json!({"faults": [{"fault": "cut", "after_chunks": 3, "for": "5s", "starts_in": "0s", "ends_in": "3s"}]})
        );
    }
}
