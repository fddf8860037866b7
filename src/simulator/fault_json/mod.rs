//! Faults as JSON: what `POST /sim/faults` takes and `GET /sim/faults` shows.
//!
//! A field that the named fault does not use is refused, not ignored.

mod fields;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::{Value, json};

use self::fields::Fields;
use super::faults::{Fault, FaultKind};
use crate::clock::MonoTime;

const KINDS: &str = "`slow_prefill`, `slow_decode`, `freeze`, `hang`, `cut`, `stream_error`, \
                     `status`, `wrong_answers`, `restart`, `throttle`, `xid`, `gpu_full`, `flush_prefix_cache`, \
                     `shrink_kv`, `host_stall`, `host_pressure`, `gateway_delay`, `buffer`, \
                     `decode_bandwidth`, `model_change`, `load` or `frontend_limit`";

/// Reads one fault that begins at `now`. The error says what was given and what was wanted.
pub(super) fn parse(body: &[u8], now: MonoTime) -> Result<Fault, String> {
    let mut fields: Fields = serde_json::from_slice(body)
        .map_err(|error| format!("not a fault: {error}; wanted an object such as `{{\"fault\":\"freeze\",\"for\":\"5s\"}}`"))?;
    let name = fields
        .fault
        .take()
        .ok_or_else(|| format!("`fault` is missing; wanted {KINDS}"))?;
    let lasts = fields::duration("for", fields.lasts.take())?
        .ok_or("`for` is missing; wanted a duration such as `5s`")?;
    let kind = match of_engine(&name, &mut fields)? {
        Some(kind) => kind,
        None => of_answers(&name, &mut fields)?,
    };
    fields.refuse_rest(&name)?;
    Ok(Fault {
        kind,
        from: now,
        lasts,
    })
}

/// Those of engine, model and machine.
fn of_engine(name: &str, fields: &mut Fields) -> Result<Option<FaultKind>, String> {
    Ok(Some(match name {
        "slow_prefill" => FaultKind::SlowPrefill {
            factor: fields.factor()?,
        },
        "slow_decode" => FaultKind::SlowDecode {
            factor: fields.factor()?,
        },
        "throttle" => FaultKind::Throttle {
            factor: fields.factor()?,
        },
        "gpu_full" => FaultKind::GpuFull {
            factor: fields.factor()?,
        },
        "host_stall" => FaultKind::HostStall {
            factor: fields.factor()?,
        },
        "host_pressure" => FaultKind::HostPressure {
            factor: fields.factor()?,
        },
        "decode_bandwidth" => FaultKind::DecodeBandwidth {
            factor: fields.factor()?,
        },
        "freeze" => FaultKind::Freeze,
        "xid" => FaultKind::Xid {
            code: fields.xid()?,
        },
        "flush_prefix_cache" => FaultKind::FlushPrefixCache,
        "shrink_kv" => FaultKind::ShrinkKv {
            share: fields.share()?,
        },
        "model_change" => fields.model_change()?,
        "load" => FaultKind::Load {
            rate: fields.rate()?,
            input_tokens: fields.input_tokens()?,
            output_tokens: fields.output_tokens()?,
        },
        _ => return Ok(None),
    }))
}

/// Those of requests, answers and connections.
fn of_answers(name: &str, fields: &mut Fields) -> Result<FaultKind, String> {
    Ok(match name {
        "hang" => FaultKind::Hang,
        "cut" => FaultKind::Cut {
            after_chunks: fields.after_chunks()?,
        },
        "stream_error" => FaultKind::StreamError {
            after_chunks: fields.after_chunks()?,
        },
        "status" => FaultKind::Status {
            code: fields.status()?,
            retry_after: fields::duration("retry_after", fields.retry_after.take())?,
        },
        "restart" => FaultKind::Restart {
            version: fields.version()?,
        },
        "gateway_delay" => FaultKind::GatewayDelay {
            delay: fields.delay()?,
        },
        "buffer" => FaultKind::Buffer,
        "wrong_answers" => FaultKind::WrongAnswers,
        "frontend_limit" => FaultKind::FrontendLimit {
            requests: fields.requests()?,
        },
        other => return Err(format!("`fault` is `{other}`; wanted {KINDS}")),
    })
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
    let slower = |name: &str, factor: &f64| json!({"fault": name, "factor": factor});
    match kind {
        FaultKind::SlowPrefill { factor } => slower("slow_prefill", factor),
        FaultKind::SlowDecode { factor } => slower("slow_decode", factor),
        FaultKind::Throttle { factor } => slower("throttle", factor),
        FaultKind::GpuFull { factor } => slower("gpu_full", factor),
        FaultKind::HostStall { factor } => slower("host_stall", factor),
        FaultKind::HostPressure { factor } => slower("host_pressure", factor),
        FaultKind::DecodeBandwidth { factor } => slower("decode_bandwidth", factor),
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
        FaultKind::Restart { version } => json!({"fault": "restart", "version": version}),
        FaultKind::Xid { code } => json!({"fault": "xid", "code": code}),
        FaultKind::FlushPrefixCache => json!({"fault": "flush_prefix_cache"}),
        FaultKind::ShrinkKv { share } => json!({"fault": "shrink_kv", "share": share}),
        FaultKind::GatewayDelay { delay } => {
            json!({"fault": "gateway_delay", "delay": text(*delay)})
        }
        FaultKind::Buffer => json!({"fault": "buffer"}),
        FaultKind::WrongAnswers => json!({"fault": "wrong_answers"}),
        FaultKind::ModelChange {
            model,
            version,
            factor,
        } => {
            json!({"fault": "model_change", "model": model, "version": version, "factor": factor})
        }
        FaultKind::Load {
            rate,
            input_tokens,
            output_tokens,
        } => {
            json!({"fault": "load", "rate": rate, "input_tokens": input_tokens, "output_tokens": output_tokens})
        }
        FaultKind::FrontendLimit { requests } => {
            json!({"fault": "frontend_limit", "requests": requests})
        }
    }
}

fn text(span: Duration) -> Value {
    // Whole milliseconds: the engine has no finer steps.
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let span = Duration::from_millis(millis);
    Value::String(humantime::format_duration(span).to_string())
}
