//! `OpenAI` responses: what is asked, and what each event says.
//!
//! Every event has a type, in its data and mostly in its name. Text comes in events whose type
//! ends in `.delta`; the `.done` events repeat it and carry no token. There is no `[DONE]`: the
//! last event says what became of the whole.

use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::asked::{Messages, messages};
use super::lenient::{Content, Length, Many, Maybe};
use super::text::Text;
use super::usage::{RawUsage, usage};
use super::{Ask, Channel, Said, error_from, error_in};
use crate::client::framing::Event;
use crate::load::workload::{Media, Prompt};
use crate::measurement::TokenSource;

const PATH: &str = "/v1/responses";

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Input<'a>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
}

/// One text, or messages.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Text(&'a str),
    Messages(Messages<'a, AskedPart<'a>>),
}

/// A part of a message: sounds and videos are not known here.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AskedPart<'a> {
    InputText { text: &'a str },
    InputImage { image_url: &'a str },
}

impl<'a> AskedPart<'a> {
    const fn text(text: &'a str) -> Self {
        Self::InputText { text }
    }

    fn of(media: &'a Media) -> Option<Self> {
        match media {
            Media::Image(image_url) => Some(Self::InputImage { image_url }),
            _ => None,
        }
    }
}

fn input(prompt: &Prompt) -> Input<'_> {
    if prompt.history.is_empty() && prompt.media.is_empty() && prompt.verbatim.is_none() {
        return Input::Text(&prompt.text);
    }
    Input::Messages(messages(prompt, false, AskedPart::of, AskedPart::text))
}

pub(super) fn path(_ask: &Ask<'_>) -> String {
    PATH.to_owned()
}

/// The request body. This API knows no way to ask for an exact length, and always tells usage.
pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        instructions: ask.prompt.system.as_deref(),
        input: input(ask.prompt),
        stream: ask.streaming,
        max_output_tokens: ask.prompt.output_tokens,
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

/// An event, or a whole response: their fields do not meet.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    delta: Content<'a>,
    #[serde(default)]
    logprobs: Length,
    #[serde(borrow, default)]
    response: Maybe<Response<'a>>,
    #[serde(borrow, default)]
    output: Many<Item<'a>>,
    #[serde(borrow, default)]
    status: Text<'a>,
    #[serde(borrow, default)]
    incomplete_details: Maybe<Incomplete<'a>>,
    #[serde(default)]
    usage: Maybe<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    status: Text<'a>,
    #[serde(borrow, default)]
    incomplete_details: Maybe<Incomplete<'a>>,
    #[serde(default)]
    usage: Maybe<RawUsage>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
}

/// One item of the output: a message, reasoning, or a call.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    summary: Content<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
}

/// Reads the JSON of one event or of a whole response.
///
/// # Errors
///
/// If it is not a JSON object.
pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let Maybe::Object(message) = serde_json::from_slice::<Maybe<Message<'a>>>(event.data)? else {
        return Err(serde_json::Error::custom("not an object"));
    };
    let kind = if message.kind.0.is_empty() {
        std::str::from_utf8(event.name).unwrap_or_default()
    } else {
        &message.kind.0
    };
    if let Some(of) = kind.strip_suffix(".delta") {
        delta(of, message.delta, said);
        // The list is always there, empty unless it was asked for.
        let listed = message.logprobs.0.filter(|count| *count > 0);
        said.listed = listed.map(|count| (count, TokenSource::Logprobs));
    } else if kind.starts_with("response.") {
        state(kind, event.data, message.response, said)?;
    } else if kind == "error" || message.error.is_some() || message.detail.is_some() {
        let json: serde_json::Value = serde_json::from_slice(event.data)?;
        said.error = error_in(&json).or_else(|| Some(error_of_event(&json)));
        said.done = kind == "error";
    } else {
        whole(message, said);
    }
    Ok(())
}

/// `{"type":"error","code","message"}`: the type only says that it is one.
fn error_of_event(json: &serde_json::Value) -> crate::measurement::RequestError {
    let code = json.get("code").and_then(serde_json::Value::as_str);
    error_from(json, Some(code.unwrap_or("error")))
}

/// A piece of the text of what `of` names, as in `response.output_text`.
fn delta<'a>(of: &str, text: Content<'a>, said: &mut Said<'a>) {
    let has = |part: &str| of.contains(part);
    if has("reasoning") {
        text.say(0, Channel::Reasoning, said);
    } else if has("refusal") {
        text.say(0, Channel::Refusal, said);
    } else if of.ends_with("audio") {
        said.hidden_token = !text.is_empty(); // sound, not text
    } else if has("output_text") || has("transcript") || has("content_part") {
        text.say(0, Channel::Output, said);
    } else {
        text.say(0, Channel::Tool, said); // arguments, input or code of some call
    }
}

/// An event that says how the response as a whole stands.
fn state<'a>(
    kind: &str,
    data: &[u8],
    response: Maybe<Response<'a>>,
    said: &mut Said<'a>,
) -> Result<(), serde_json::Error> {
    let ended = matches!(
        kind,
        "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.error"
    );
    if !ended {
        return Ok(());
    }
    said.done = true;
    if matches!(
        kind,
        "response.failed" | "response.error" | "response.cancelled"
    ) {
        let json: serde_json::Value = serde_json::from_slice(data)?;
        let inside = json.get("response").and_then(error_in);
        said.error = inside
            .or_else(|| error_in(&json))
            .or_else(|| Some(error_of_event(&json)));
    }
    if let Some(response) = response.get() {
        said.usage = usage(response.usage);
        finish(&response.status, response.incomplete_details, said);
    }
    if said.finish.is_none() {
        said.finish(kind.trim_start_matches("response."));
    }
    Ok(())
}

fn finish<'a>(status: &Text<'a>, incomplete: Maybe<Incomplete<'a>>, said: &mut Said<'a>) {
    let reason = incomplete.get().map(|incomplete| incomplete.reason.0);
    match reason {
        Some(reason) if !reason.is_empty() => said.finish(&reason),
        _ => said.finish(&status.0),
    }
}

/// A whole response.
fn whole<'a>(message: Message<'a>, said: &mut Said<'a>) {
    for item in message.output.objects() {
        let channel = if item.kind.0.contains("reasoning") {
            Channel::Reasoning
        } else {
            Channel::Output
        };
        item.summary.say(0, Channel::Reasoning, said);
        item.content.say(0, channel, said);
        said.say(0, Channel::Tool, item.name.0);
        said.say(0, Channel::Tool, item.arguments.0);
    }
    said.usage = usage(message.usage);
    finish(&message.status, message.incomplete_details, said);
}
