//! `/api/chat` and `/api/generate` of Ollama: one JSON value per line.
//!
//! The last line says `done`, or, from some backends, no more than why it is done. A failure
//! inside a response is a line with an `error`. The prompt is not counted where all of it came
//! from the cache. There is no way to ask for an exact length.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asked::{SYSTEM, data_of, flat, texts};
use super::count::Count;
use super::lenient::Maybe;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::load::workload::{Media, Prompt, Verbatim};
use crate::measurement::Api;

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Asked<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Cow<'a, str>>,
    /// Always sent: a stream is what one gets without it.
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
}

/// All messages.
#[derive(Serialize)]
#[serde(untagged)]
enum Asked<'a> {
    Verbatim(&'a RawValue),
    Ours(Vec<Message<'a>>),
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    /// Base64 of pictures; what only has a URL cannot be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
}

/// The base64 of a picture that is sent with the request.
fn image(media: &Media) -> Option<&str> {
    let Media::Image(url) = media else {
        return None;
    };
    data_of(url).map(|(_, data)| data)
}

fn asked(prompt: &Prompt) -> Asked<'_> {
    if let Some(Verbatim::Messages(json)) = &prompt.verbatim {
        return Asked::Verbatim(json);
    }
    let system = prompt.system.as_deref().map(|text| (SYSTEM, text));
    let mut all: Vec<Message<'_>> = system
        .into_iter()
        .chain(texts(prompt))
        .map(|(role, content)| Message {
            role,
            content,
            images: Vec::new(),
        })
        .collect();
    if let Some(last) = all.last_mut() {
        last.images = prompt.media.iter().filter_map(image).collect();
    }
    Asked::Ours(all)
}

#[derive(Serialize)]
struct Options {
    num_predict: u32,
}

pub(super) fn path(api: Api, _ask: &Ask<'_>) -> String {
    let path = match api {
        Api::OllamaGenerate => "/api/generate",
        _ => "/api/chat",
    };
    path.to_owned()
}

pub(super) fn body(api: Api, ask: &Ask<'_>) -> Vec<u8> {
    let chat = api != Api::OllamaGenerate;
    let body = Body {
        model: ask.model,
        messages: chat.then(|| asked(ask.prompt)),
        prompt: (!chat).then(|| flat(ask.prompt)),
        stream: ask.streaming,
        options: ask
            .prompt
            .output_tokens
            .map(|num_predict| Options { num_predict }),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    /// Of `/api/chat`.
    #[serde(borrow, default)]
    message: Maybe<Answer<'a>>,
    /// Text and thoughts of `/api/generate`.
    #[serde(borrow)]
    response: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Option<Text<'a>>,
    #[serde(default)]
    prompt_eval_count: Count,
    #[serde(default)]
    eval_count: Count,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
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
    /// An object, not a text.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

pub(super) fn read<'a>(
    _api: Api,
    event: Event<'a>,
    said: &mut Said<'a>,
) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    let tells = incoming.error.is_some() || incoming.detail.is_some();
    fault::note(event, tells, said)?;
    for (channel, text) in [
        (Channel::Reasoning, incoming.thinking),
        (Channel::Output, incoming.response),
    ] {
        if let Some(text) = text {
            said.say(0, channel, text.0);
        }
    }
    if let Some(answer) = incoming.message.get() {
        answer.say(said);
    }
    let none = Count::default();
    let usage = Usage::of(incoming.prompt_eval_count, incoming.eval_count, none, none);
    said.usage = (usage != Usage::default()).then_some(usage);
    said.done = incoming.done == Some(true);
    if let Some(reason) = incoming.done_reason {
        said.finish(&reason.0);
    }
    Ok(())
}

impl<'a> Answer<'a> {
    fn say(self, said: &mut Said<'a>) {
        for (channel, text) in [
            (Channel::Reasoning, self.thinking),
            (Channel::Output, self.content),
        ] {
            if let Some(text) = text {
                said.say(0, channel, text.0);
            }
        }
        let calls = self.tool_calls.into_iter().flatten();
        for function in calls.filter_map(|call| call.function) {
            if let Some(name) = function.name {
                said.say(0, Channel::Tool, name.0);
            }
            if let Some(arguments) = function.arguments {
                said.say(0, Channel::Tool, arguments.get());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use crate::measurement::{Api, Outcome, TokenSource};

    const LAST: &str = "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":\
         {\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"length\",\
         \"total_duration\":5000,\"prompt_eval_count\":11,\"prompt_eval_duration\":1,\
         \"eval_count\":4}\n";

    fn chat(message: &str) -> String {
        format!("{{\"model\":\"m\",\"message\":{message},\"done\":false}}\n")
    }

    #[test]
    fn both_ways_of_asking_have_their_own_body() {
        assert_eq!(
            asked(Api::Ollama, true, Some(8)),
            (
                "/api/chat".to_owned(),
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"options":{"num_predict":8}}"#.to_owned()
            )
        );
        assert_eq!(
            asked(Api::OllamaGenerate, false, None),
            (
                "/api/generate".to_owned(),
                r#"{"model":"m","prompt":"hi","stream":false}"#.to_owned()
            )
        );
    }

    #[test]
    fn a_chat_has_its_tokens_usage_and_reason() {
        let thought = chat(r#"{"role":"assistant","content":"","thinking":"hm"}"#);
        let text = chat(r#"{"role":"assistant","content":"a\né"}"#);
        let record = replay(
            Api::Ollama,
            true,
            &format!("{thought}{text}\r\n{text}{LAST}"),
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 3);
        assert!(record.timeline.first_output > record.timeline.first_token);
        assert_eq!(record.finish_reason.as_deref(), Some("length"));
        let tokens = record.tokens;
        assert_eq!((tokens.input, tokens.output), (Some(11), Some(4)));
        assert_eq!(tokens.source, Some(TokenSource::Usage));
    }

    #[test]
    fn a_generation_has_its_tokens() {
        let body = "{\"response\":\"\",\"thinking\":\"hm\",\"done\":false}\n\
             {\"response\":\"a\",\"done\":false}\n\
             {\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"context\":[1,2],\
             \"eval_count\":2}";
        let record = replay(Api::OllamaGenerate, true, body);
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 2);
        assert_eq!((record.tokens.input, record.tokens.output), (None, Some(2)));
    }

    #[test]
    fn either_mark_of_the_end_is_enough() {
        let text = chat(r#"{"content":"a"}"#);
        for (end, expected) in [
            ("{\"done\":true}\n", Outcome::Ok),
            ("{\"done_reason\":\"stop\"}\n", Outcome::Ok),
            ("{\"done\":false}\n", Outcome::StreamCut),
            ("", Outcome::StreamCut),
        ] {
            let record = replay(Api::Ollama, true, &format!("{text}{end}"));
            assert_eq!(record.outcome, expected, "{end}");
        }
    }

    #[test]
    fn tool_calls_are_tokens() {
        let call = chat(
            r#"{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":[1]}}}]}"#,
        );
        let record = replay(Api::Ollama, true, &format!("{call}{LAST}"));
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 1));
    }

    #[test]
    fn a_line_with_an_error_is_an_error() {
        let error = "{\"error\":\"an error was encountered while running the model\"}\n";
        let text = chat(r#"{"content":"a"}"#);
        for body in [error.to_owned(), format!("{text}{error}")] {
            let record = replay(Api::Ollama, true, &body);
            assert_eq!(record.outcome, Outcome::StreamError);
            assert_eq!(
                &*record.error.expect("an error").message,
                "an error was encountered while running the model"
            );
        }
    }

    #[test]
    fn half_a_line_at_the_end_is_a_cut() {
        let text = chat(r#"{"content":"a"}"#);
        let record = replay(Api::Ollama, true, &format!("{text}{{\"message\":{{\"con"));
        assert_eq!(record.outcome, Outcome::StreamCut);
    }

    #[test]
    fn a_whole_answer_is_read() {
        let body = LAST.replace("\"content\":\"\"", "\"content\":\"a b\"");
        let record = replay(Api::Ollama, false, &body);
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.finish_reason.as_deref(), Some("length"));
        assert_eq!(record.tokens.output, Some(4));
    }
}
