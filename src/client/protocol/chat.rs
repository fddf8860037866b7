//! `OpenAI` chat completions: what is asked, and what each event says.
//!
//! Role-only frames, empty content, usage frames and `[DONE]` carry no token. Null equals
//! absent, and what has a type it should not have is passed over. All names of the reasoning
//! field are understood. Unknown fields are ignored. The events of `completions` differ only in
//! where the text is, so they are read here too.

use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asked::{ChatPart, Messages, messages};
use super::count::Count;
use super::lenient::{Content, Length, Many, Maybe};
use super::text::Text;
use super::usage::{RawUsage, usage};
use super::{Ask, Channel, Said, error_in};
use crate::client::framing::Event;
use crate::config::LengthField;
use crate::measurement::TokenSource;

/// Path of the API below a target's URL.
pub(super) const PATH: &str = "/v1/chat/completions";

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    messages: Messages<'a, ChatPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_salt: Option<&'a str>,
    #[serde(flatten)]
    how: How,
}

/// What `chat` and `completions` ask alike: whether to stream, with usage, and how much.
#[derive(Serialize)]
pub(super) struct How {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    /// With the next one: exactly as many, since fewer would make two requests incomparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl How {
    /// As `ask` wants it, the length under the name `field`.
    pub(super) fn of(ask: &Ask<'_>, field: LengthField) -> Self {
        let length = ask.prompt.output_tokens;
        let exact = length.filter(|_| ask.style.exact_length);
        Self {
            stream: ask.streaming,
            stream_options: (ask.streaming && ask.style.usage).then_some(StreamOptions {
                include_usage: true,
            }),
            max_tokens: length.filter(|_| field == LengthField::MaxTokens),
            max_completion_tokens: length.filter(|_| field == LengthField::MaxCompletionTokens),
            min_tokens: exact,
            ignore_eos: exact.map(|_| true),
        }
    }
}

/// The request body.
pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        messages: messages(ask.prompt, true, ChatPart::of, ChatPart::text),
        tools: ask.prompt.tools.as_deref(),
        cache_salt: ask.prompt.cache_salt.as_deref(),
        how: How::of(ask, ask.style.length),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Many<Choice<'a>>,
    #[serde(default)]
    usage: Maybe<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
    #[serde(borrow, default)]
    object: Text<'a>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Maybe<Delta<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Delta<'a>>,
    /// The text, in `completions`.
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(default)]
    token_ids: Length,
    #[serde(default)]
    logprobs: Maybe<Logprobs>,
}

/// One entry for each token: `content` and `refusal` in chat, `tokens` in completions.
#[derive(Deserialize)]
struct Logprobs {
    #[serde(default)]
    content: Length,
    #[serde(default)]
    refusal: Length,
    #[serde(default)]
    tokens: Length,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    reasoning_content: Content<'a>,
    #[serde(borrow, default)]
    reasoning: Content<'a>,
    #[serde(borrow, default)]
    reasoning_details: Content<'a>,
    #[serde(borrow, default)]
    refusal: Content<'a>,
    #[serde(borrow, default)]
    tool_calls: Many<ToolCall<'a>>,
    /// What `tool_calls` was before there could be several.
    #[serde(borrow, default)]
    function_call: Maybe<Function<'a>>,
    #[serde(borrow, default)]
    audio: Maybe<Audio<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Maybe<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
}

#[derive(Deserialize)]
struct Audio<'a> {
    #[serde(borrow, default)]
    transcript: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
}

/// Reads the JSON of one event or of a whole response, of `chat` or of `completions`.
///
/// # Errors
///
/// If it is not a JSON object.
pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let Maybe::Object(chunk) = serde_json::from_slice::<Maybe<Chunk<'a>>>(event.data)? else {
        return Err(serde_json::Error::custom("not an object"));
    };
    let mut lists = [(None, TokenSource::TokenIds), (None, TokenSource::Logprobs)];
    for choice in chunk.choices.objects() {
        let index = choice.index.value.unwrap_or(0);
        for delta in [choice.delta, choice.message] {
            if let Some(delta) = delta.get() {
                delta.say(index, said);
            }
        }
        said.say(index, Channel::Output, choice.text.0);
        said.finish(&choice.finish_reason.0);
        add(&mut lists[0].0, choice.token_ids);
        if let Some(logprobs) = choice.logprobs.get() {
            for list in [logprobs.content, logprobs.refusal, logprobs.tokens] {
                add(&mut lists[1].0, list);
            }
        }
    }
    let listed = |list: &(Option<u32>, TokenSource)| Some((list.0?, list.1));
    let lists = lists.iter().filter_map(listed);
    said.listed =
        lists.max_by_key(|(count, source)| (*count > 0, *source == TokenSource::TokenIds));
    said.usage = usage(chunk.usage);
    if chunk.error.is_some() || chunk.detail.is_some() || chunk.object.0 == "error" {
        said.error = error_in(&serde_json::from_slice(event.data)?);
    }
    Ok(())
}

/// Adds the length of a list, if it is one.
fn add(sum: &mut Option<u32>, list: Length) {
    if let Some(length) = list.0 {
        *sum = Some(sum.unwrap_or(0) + length);
    }
}

impl<'a> Delta<'a> {
    fn say(self, choice: u32, said: &mut Said<'a>) {
        // Several names of one field: a server that sends two sends the same text twice.
        let reasoning = [
            self.reasoning,
            self.reasoning_content,
            self.reasoning_details,
        ];
        if let Some(reasoning) = reasoning.into_iter().find(|content| !content.is_empty()) {
            reasoning.say(choice, Channel::Reasoning, said);
        }
        self.content.say(choice, Channel::Output, said);
        self.refusal.say(choice, Channel::Refusal, said);
        let calls = self.tool_calls.objects().map(|call| call.function);
        for function in calls.chain([self.function_call]).filter_map(Maybe::get) {
            for text in [function.name, function.arguments] {
                said.say(choice, Channel::Tool, text.0);
            }
        }
        if let Some(audio) = self.audio.get() {
            said.say(choice, Channel::Output, audio.transcript.0);
            said.hidden_token |= !audio.data.0.is_empty();
        }
    }
}

#[cfg(test)]
mod tests;
