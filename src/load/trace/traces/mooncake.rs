//! Mooncake: JSON lines with `timestamp` in milliseconds, lengths, and `hash_ids` of blocks of
//! 512 tokens; and the minimal trace, which has the same fields in seconds and no ids.
//!
//! Every id stands for its block and everything before it, so equal ids are equal prefixes. The
//! fields that `AIPerf` added are read too: `session_id`, `delay` in milliseconds, and what is to
//! be sent as `text_input`, `messages` or `payload` in place of lengths.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Bad, Raw, blocks, fits, length, object, text, time};
use crate::load::trace::error::Fault;
use crate::load::trace::number::Unit;
use crate::load::trace::row::{Body, TraceRow};
use crate::load::trace::rows::{Bodies, ReadOptions};

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    delay: Raw<'a>,
    #[serde(borrow)]
    input_length: Raw<'a>,
    #[serde(borrow)]
    output_length: Raw<'a>,
    #[serde(borrow)]
    hash_ids: Raw<'a>,
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    text_input: Raw<'a>,
    #[serde(borrow)]
    messages: Raw<'a>,
    #[serde(borrow)]
    payload: Raw<'a>,
}

/// One line of a Mooncake trace, or of a minimal one if `unit` is seconds.
pub(in crate::load::trace) fn read(
    line: &[u8],
    unit: Unit,
    options: &ReadOptions,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let given: Row = object(line)?;
    row.at = time("timestamp", given.timestamp, unit)?;
    row.delay = time("delay", given.delay, unit)?;
    row.input_tokens = length("input_length", given.input_length)?;
    row.output_tokens = length("output_length", given.output_length)?;
    row.session = text("session_id", given.session_id)?;
    row.block_tokens = options.block_tokens;
    blocks("hash_ids", given.hash_ids, row)?;
    let sent = [
        ("text_input", given.text_input),
        ("messages", given.messages),
        ("payload", given.payload),
    ];
    let whole = sent.iter().find(|(_, raw)| raw.is_some());
    if row.input_tokens.is_none() && whole.is_none() {
        return Err(Fault::missing(
            "input_length",
            "a whole number of tokens, 1 or more; or one of `text_input`, `messages`, `payload`",
        ));
    }
    if unit == Unit::Seconds && row.at.is_none() {
        return Err(Fault::missing("timestamp", "seconds of 0 or more"));
    }
    if row.at.is_none() && row.delay.is_none() && row.session.is_none() && whole.is_none() {
        return Err(Fault::missing(
            "timestamp",
            "milliseconds of 0 or more; or `delay` in a session",
        ));
    }
    fits(row, options.fit())?;
    if let (Bodies::Keep, Some((name, Some(raw)))) = (options.bodies, whole) {
        row.body = Some(body(name, raw)?);
    }
    Ok(())
}

fn body(name: &str, raw: &RawValue) -> Result<Body, Bad> {
    Ok(match name {
        "text_input" => Body::Text(text(name, Some(raw))?.unwrap_or_default()),
        "messages" => Body::Messages(raw.to_owned()),
        _ => Body::Payload(raw.to_owned()),
    })
}
