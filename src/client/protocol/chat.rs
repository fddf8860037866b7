//! `OpenAI` chat completions: what is asked, and what each event says.
//!
//! Role-only frames, empty content, usage frames and `[DONE]` carry no token. Null equals
//! absent. Both names of the reasoning field are understood. Unknown fields are ignored.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::text::Text;
use super::{Ask, Channel, Said, Usage, error_in};
use crate::client::framing::Event;

/// Path of the API below a target's URL.
pub(super) const PATH: &str = "/v1/chat/completions";

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    messages: [Message<'a>; 1],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    length: Option<Length>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Asks for exactly this many tokens: fewer would make two requests incomparable.
#[derive(Serialize)]
struct Length {
    max_tokens: u32,
    min_tokens: u32,
    ignore_eos: bool,
}

/// The request body.
pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        messages: [Message {
            role: "user",
            content: &ask.prompt.text,
        }],
        stream: ask.streaming,
        stream_options: ask.streaming.then_some(StreamOptions {
            include_usage: true,
        }),
        length: ask.prompt.output_tokens.map(|tokens| Length {
            max_tokens: tokens,
            min_tokens: tokens,
            ignore_eos: true,
        }),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
    object: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    finish_reason: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    reasoning_content: Option<Text<'a>>,
    reasoning: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawUsage {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u32>,
    reasoning_tokens: Option<u32>,
}

/// Reads the JSON of one event or of a whole response.
///
/// # Errors
///
/// If it is not a JSON object of this shape.
pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let chunk: Chunk<'a> = serde_json::from_slice(event.data)?;
    for choice in chunk.choices.into_iter().flatten() {
        for delta in [choice.delta, choice.message].into_iter().flatten() {
            delta.say(choice.index, said);
        }
        if let Some(reason) = choice.finish_reason {
            said.finish(&reason);
        }
    }
    said.usage = chunk.usage.map(Usage::from);
    if chunk.error.is_some()
        || chunk.detail.is_some()
        || chunk.object.is_some_and(|object| object.0 == "error")
    {
        said.error = error_in(&serde_json::from_slice(event.data)?);
    }
    Ok(())
}

impl<'a> Delta<'a> {
    fn say(self, choice: u32, said: &mut Said<'a>) {
        // Both names of one field: a server that sends both sends the same text twice.
        let reasoning = self.reasoning.or(self.reasoning_content);
        for (channel, text) in [
            (Channel::Reasoning, reasoning),
            (Channel::Output, self.content),
            (Channel::Refusal, self.refusal),
        ] {
            if let Some(text) = text {
                said.say(choice, channel, text.0);
            }
        }
        for function in self
            .tool_calls
            .into_iter()
            .flatten()
            .filter_map(|call| call.function)
        {
            for text in [function.name, function.arguments].into_iter().flatten() {
                said.say(choice, Channel::Tool, text.0);
            }
        }
    }
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        Self {
            input: raw.prompt_tokens,
            output: raw.completion_tokens,
            reasoning: raw
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
            cached: raw
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens),
            bad: false,
        }
    }
}
