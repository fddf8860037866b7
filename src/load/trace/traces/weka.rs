//! WEKA agent sessions: one JSON object for each session, with its requests inside, and
//! sub-agents with requests of their own.
//!
//! Times are seconds from the start of the session; those of a sub-agent's requests too, unless
//! they begin before the sub-agent did: then they count from its start. Ids are those of the
//! session, sub-agents included, and mean nothing in another.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;

use super::fields::{Bad, Fit, Raw, blocks, fits, length, length_of, object, required, text, time};
use crate::load::trace::error::Fault;
use crate::load::trace::number::Unit;
use crate::load::trace::row::{BlockScope, TraceRow};

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    block_size: Raw<'a>,
    #[serde(borrow)]
    hash_id_scope: Raw<'a>,
    #[serde(borrow)]
    requests: Option<Vec<Request<'a>>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    t: Raw<'a>,
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow, rename = "in")]
    input: Raw<'a>,
    #[serde(borrow, rename = "out")]
    output: Raw<'a>,
    #[serde(borrow)]
    hash_ids: Raw<'a>,
    #[serde(borrow)]
    api_time: Raw<'a>,
    #[serde(borrow)]
    think_time: Raw<'a>,
    #[serde(borrow)]
    ttft: Raw<'a>,
    #[serde(borrow)]
    agent_id: Raw<'a>,
    #[serde(borrow)]
    requests: Option<Vec<Request<'a>>>,
}

/// What all requests of a session have in common.
struct Common<'a> {
    session: &'a str,
    block_tokens: u32,
}

/// A row, or what is wrong with it.
type Read = Result<TraceRow, Bad>;

/// All requests of one session into `rows`.
pub(in crate::load::trace) fn read(document: &[u8], rows: &mut VecDeque<Read>) -> Result<(), Bad> {
    let given: Session = object(document)?;
    let session = required("id", text("id", given.id)?)?;
    let block_tokens = required("block_size", length("block_size", given.block_size)?)?;
    if let Some(scope) = text("hash_id_scope", given.hash_id_scope)?
        && scope != "local"
    {
        return Err(Fault::new("hash_id_scope", &scope, "`local`"));
    }
    let common = Common {
        session: &session,
        block_tokens,
    };
    let requests = given
        .requests
        .ok_or_else(|| Fault::missing("requests", "a list of requests"))?;
    for (place, request) in requests.iter().enumerate() {
        let at = format!("requests[{place}]");
        if text("type", request.kind)?.as_deref() != Some("subagent") {
            rows.push_back(one(request, &common).map_err(|fault| within(&at, fault)));
            continue;
        }
        if let Err(fault) = agent(request, &common, (&at, rows)) {
            rows.push_back(Err(within(&at, fault)));
        }
    }
    Ok(())
}

/// The requests of a sub-agent.
fn agent(
    agent: &Request,
    common: &Common,
    (at, rows): (&str, &mut VecDeque<Read>),
) -> Result<(), Bad> {
    let start = required("t", time("t", agent.t, Unit::Seconds)?)?;
    let name = required("agent_id", text("agent_id", agent.agent_id)?)?;
    let requests = agent.requests.as_deref().unwrap_or_default();
    let mut first: Option<Duration> = None;
    for request in requests {
        // A time that cannot be read is told with its request below.
        if let Ok(Some(at)) = time("t", request.t, Unit::Seconds) {
            first = Some(first.map_or(at, |first| first.min(at)));
        }
    }
    let from_start = first.is_some_and(|first| first < start);
    for (place, request) in requests.iter().enumerate() {
        let at = format!("{at}.requests[{place}]");
        let row = one(request, common).map(|mut row| {
            row.agent = Some(name.clone());
            if from_start {
                row.at = row.at.map(|at| at + start);
            }
            row
        });
        rows.push_back(row.map_err(|fault| within(&at, fault)));
    }
    Ok(())
}

fn one(request: &Request, common: &Common) -> Read {
    let mut row = TraceRow {
        at: Some(required("t", time("t", request.t, Unit::Seconds)?)?),
        input_tokens: Some(required("in", length("in", request.input)?)?),
        block_tokens: common.block_tokens,
        scope: BlockScope::Session,
        session: Some(common.session.to_owned()),
        delay: time("think_time", request.think_time, Unit::Seconds)?,
        service: time("api_time", request.api_time, Unit::Seconds)?,
        first_token: time("ttft", request.ttft, Unit::Seconds)?,
        model: text("model", request.model)?,
        ..TraceRow::default()
    };
    row.output_tokens = match request.output.map(serde_json::value::RawValue::get) {
        None | Some("0") => None,
        Some(tokens) => Some(length_of("out", tokens)?),
    };
    blocks("hash_ids", request.hash_ids, &mut row)?;
    // What is behind the last id is not hashed, however long it is.
    fits(&row, Fit::Head)?;
    Ok(row)
}

fn within(at: &str, mut fault: Bad) -> Bad {
    fault.field = format!("{at}.{}", fault.field);
    fault
}
