//! Data capture of a `SageMaker` endpoint that speaks chat completions: JSON lines, each with the
//! request and the answer as text or base64 inside, and the instant of the inference.
//!
//! The answer may be one JSON object or an event stream; lengths come from its usage. Without
//! usage the length of the answer is what the request allowed, and that of the prompt is absent.

use base64::Engine as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{Bad, Raw, length, object, required, text};
use crate::load::trace::error::Fault;
use crate::load::trace::row::{Body, TraceRow};
use crate::load::trace::rows::{Bodies, ReadOptions};
use crate::load::trace::stamp;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(borrow)]
    capture_data: CaptureData<'a>,
    #[serde(borrow)]
    event_metadata: EventMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaptureData<'a> {
    #[serde(borrow)]
    endpoint_input: Option<Capture<'a>>,
    #[serde(borrow)]
    endpoint_output: Option<Capture<'a>>,
}

#[derive(Deserialize)]
struct Capture<'a> {
    #[serde(borrow)]
    data: Raw<'a>,
    #[serde(borrow)]
    encoding: Raw<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventMetadata<'a> {
    #[serde(borrow)]
    inference_time: Raw<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Raw<'a>,
    #[serde(borrow)]
    max_tokens: Raw<'a>,
    #[serde(borrow)]
    max_completion_tokens: Raw<'a>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(borrow)]
    prompt_tokens: Raw<'a>,
    #[serde(borrow)]
    completion_tokens: Raw<'a>,
}

const INPUT: &str = "captureData.endpointInput.data";
const OUTPUT: &str = "captureData.endpointOutput.data";
const TIME: &str = "eventMetadata.inferenceTime";

/// One line.
pub(in crate::load::trace) fn read(
    line: &[u8],
    options: &ReadOptions,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let given: Row = object(line)?;
    let at = required(TIME, text(TIME, given.event_metadata.inference_time)?)?;
    row.at = Some(
        stamp::instant(&at)
            .ok_or_else(|| Fault::new(TIME, &at, "an instant as `2026-04-29T00:00:00Z`"))?,
    );
    let input = match given.capture_data.endpoint_input {
        Some(capture) => decoded(INPUT, &capture)?,
        None => None,
    };
    let input = required(INPUT, input)?;
    let request: Request = serde_json::from_str(&input)
        .map_err(|_| Fault::new(INPUT, &input, "a body of chat completions"))?;
    let messages = request
        .messages
        .ok_or_else(|| Fault::new(INPUT, &input, "a body of chat completions, with `messages`"))?;
    row.model = text("model", request.model)?;
    let output = match &given.capture_data.endpoint_output {
        Some(capture) => decoded(OUTPUT, capture)?,
        None => None,
    };
    if let Some(output) = &output {
        usage(output, row)?;
    }
    if row.output_tokens.is_none() {
        row.output_tokens = match length("max_tokens", request.max_tokens)? {
            None => length("max_completion_tokens", request.max_completion_tokens)?,
            some => some,
        };
    }
    if options.bodies == Bodies::Keep {
        row.body = Some(Body::Messages(messages.to_owned()));
    }
    Ok(())
}

/// What was captured, as text; `None` if it was not.
fn decoded(name: &str, capture: &Capture) -> Result<Option<String>, Bad> {
    let Some(data) = text(name, capture.data)? else {
        return Ok(None);
    };
    let encoding = text("encoding", capture.encoding)?;
    match encoding.as_deref() {
        Some("JSON") => Ok(Some(data)),
        Some("BASE64") | None => {
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(&data)
                .map_err(|_| Fault::new(name, &data, "base64, as `encoding` says"))?;
            String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| Fault::new(name, &data, "base64 of a text in UTF-8"))
        }
        Some(other) => Err(Fault::new("encoding", other, "`JSON` or `BASE64`")),
    }
}

/// Lengths from the usage of an answer, or of the last event that has one.
fn usage(output: &str, row: &mut TraceRow) -> Result<(), Bad> {
    let events = output
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("data:"));
    for text in std::iter::once(output).chain(events) {
        // An answer that is no JSON, as an error page, has no usage.
        let Ok(Answer { usage: Some(usage) }) = serde_json::from_str(text) else {
            continue;
        };
        row.input_tokens = length("usage.prompt_tokens", usage.prompt_tokens)?;
        // Nothing was generated: the length that was allowed stands.
        row.output_tokens = match usage.completion_tokens.map(RawValue::get) {
            Some("0") => None,
            _ => length("usage.completion_tokens", usage.completion_tokens)?,
        };
        return Ok(());
    }
    Ok(())
}
