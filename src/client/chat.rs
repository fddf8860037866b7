//! `OpenAI` chat completions: what is asked, and what each event says.
//!
//! Role-only frames, empty content, usage frames and `[DONE]` carry no token. Null equals
//! absent. Both names of the reasoning field are understood. Unknown fields are ignored.

use serde::{Deserialize, Serialize};

use crate::load::workload::Prompt;
use crate::measurement::RequestError;

/// Path of the API below a target's URL.
pub(super) const PATH: &str = "/v1/chat/completions";

/// Longest finish reason that is kept.
const MAX_REASON: usize = 100;
/// Longest error message that is kept.
const MAX_MESSAGE: usize = 500;

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

/// The request body for `prompt`; without `model` if it is empty.
pub(super) fn body(model: &str, prompt: &Prompt, streaming: bool) -> Vec<u8> {
    let body = Body {
        model,
        messages: [Message {
            role: "user",
            content: &prompt.text,
        }],
        stream: streaming,
        stream_options: streaming.then_some(StreamOptions {
            include_usage: true,
        }),
        length: prompt.output_tokens.map(|tokens| Length {
            max_tokens: tokens,
            min_tokens: tokens,
            ignore_eos: true,
        }),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

/// What one event, or one whole response, says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// It carried at least one token of any channel.
    pub(super) token: bool,
    /// It carried a token that is not reasoning.
    pub(super) output: bool,
    /// Finish reason, as spelled; an empty one is none.
    pub(super) finish: Option<Box<str>>,
    /// Usage, if there was any.
    pub(super) usage: Option<Usage>,
    /// An error in place of an answer.
    pub(super) error: Option<RequestError>,
}

/// Token counts as the server reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: Option<u32>,
    pub(super) output: Option<u32>,
    pub(super) reasoning: Option<u32>,
    pub(super) cached: Option<u32>,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    usage: Option<RawUsage>,
    error: Option<serde_json::Value>,
    /// Errors in the shape `{"object":"error","message":…}`.
    object: Option<Box<str>>,
    message: Option<Box<str>>,
    detail: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<Box<str>>,
}

/// Texts are only asked whether they are empty, so their values are not kept.
#[derive(Deserialize)]
struct Delta {
    content: Option<Text>,
    reasoning_content: Option<Text>,
    reasoning: Option<Text>,
    refusal: Option<Text>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<Text>,
    arguments: Option<Text>,
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

/// Whether a JSON string is non-empty, read without copying it.
struct Text(bool);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NonEmpty;
        impl serde::de::Visitor<'_> for NonEmpty {
            type Value = Text;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(!text.is_empty()))
            }
        }
        deserializer.deserialize_str(NonEmpty)
    }
}

fn filled(text: Option<&Text>) -> bool {
    text.is_some_and(|text| text.0)
}

impl Delta {
    fn has_output(&self) -> bool {
        filled(self.content.as_ref())
            || filled(self.refusal.as_ref())
            || self
                .tool_calls
                .iter()
                .flatten()
                .filter_map(|call| call.function.as_ref())
                .any(|function| {
                    filled(function.name.as_ref()) || filled(function.arguments.as_ref())
                })
    }

    fn has_reasoning(&self) -> bool {
        filled(self.reasoning_content.as_ref()) || filled(self.reasoning.as_ref())
    }
}

/// Reads the JSON of one event or of a whole response.
///
/// # Errors
///
/// If it is not a JSON object of this shape.
pub(super) fn read(json: &[u8]) -> Result<Said, serde_json::Error> {
    let chunk: Chunk = serde_json::from_slice(json)?;
    let mut said = Said::default();
    for choice in chunk.choices.into_iter().flatten() {
        for delta in [choice.delta, choice.message].into_iter().flatten() {
            said.output |= delta.has_output();
            said.token |= delta.has_output() || delta.has_reasoning();
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            said.finish = Some(plain(cut(&reason, MAX_REASON)).into());
        }
    }
    said.usage = chunk.usage.map(|usage| Usage {
        input: usage.prompt_tokens,
        output: usage.completion_tokens,
        reasoning: usage
            .completion_tokens_details
            .and_then(|details| details.reasoning_tokens),
        cached: usage
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens),
    });
    said.error = match (chunk.error, chunk.detail) {
        (Some(error), _) if !error.is_null() => Some(error_from(&error)),
        (_, Some(detail)) if !detail.is_null() => Some(error_from(&detail)),
        _ if chunk.object.as_deref() == Some("error") => Some(request_error(
            "error",
            chunk.message.as_deref().unwrap_or_default(),
        )),
        _ => None,
    };
    Ok(said)
}

/// The error in the body of a response that is not a success; `None` if it holds none.
pub(super) fn error_in(body: &[u8]) -> Option<RequestError> {
    read(body).ok().and_then(|said| said.error)
}

/// `{"message","type","code"}`, or a plain text, or whatever it is.
fn error_from(error: &serde_json::Value) -> RequestError {
    let text = |key: &str| {
        error.get(key).and_then(|value| match value {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let kind = text("type")
        .or_else(|| text("code"))
        .unwrap_or_else(|| "error".to_owned());
    let message = text("message")
        .or_else(|| error.as_str().map(str::to_owned))
        .unwrap_or_else(|| error.to_string());
    request_error(&kind, &message)
}

/// An error of bounded size.
pub(super) fn request_error(kind: &str, message: &str) -> RequestError {
    RequestError {
        kind: plain(cut(kind, 100)).into(),
        message: plain(cut(message, MAX_MESSAGE)).into(),
    }
}

/// `text` without what could steer a terminal or fake a line of a log: control characters and
/// marks of writing direction become spaces.
pub(super) fn plain(text: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(harmful, " ")
}

/// At most `limit` bytes of `text`, cut between two characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &Said) {
        assert_eq!(&read(json.as_bytes()).expect("a chunk"), expected, "{json}");
    }

    fn token() -> Said {
        Said {
            token: true,
            output: true,
            ..Said::default()
        }
    }

    #[test]
    fn frames_without_text_carry_no_token() {
        for json in [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":null}}]}"#,
            r#"{"choices":[{"index":0,"finish_reason":""}]}"#,
            r#"{"choices":[],"usage":null}"#,
            r#"{"choices":[],"prompt_filter_results":[]}"#,
            "{}",
        ] {
            check(json, &Said::default());
        }
    }

    #[test]
    fn any_channel_can_carry_the_first_token() {
        check(
            r#"{"choices":[{"delta":{"content":"a","tool_calls":null}}]}"#,
            &token(),
        );
        check(
            r#"{"choices":[{"delta":{"role":"assistant","content":"\u00e9\n"}}]}"#,
            &token(),
        );
        check(r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, &token());
        check(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}"#,
            &token(),
        );
        for name in ["reasoning", "reasoning_content"] {
            check(
                &format!(r#"{{"choices":[{{"delta":{{"{name}":"hm"}}}}]}}"#),
                &Said {
                    token: true,
                    ..Said::default()
                },
            );
        }
    }

    #[test]
    fn usage_and_finish_reason_may_share_a_frame() {
        check(
            r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":22,"completion_tokens":12,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":8}}}"#,
            &Said {
                finish: Some("length".into()),
                usage: Some(Usage {
                    input: Some(22),
                    output: Some(12),
                    reasoning: None,
                    cached: Some(8),
                }),
                ..Said::default()
            },
        );
    }

    #[test]
    fn errors_are_found_in_every_shape() {
        for (json, kind, message) in [
            (
                r#"{"error":{"message":"late","type":"TimeoutError","code":504}}"#,
                "TimeoutError",
                "late",
            ),
            (r#"{"error":{"message":"late","code":504}}"#, "504", "late"),
            (
                r#"{"error":"overloaded","error_type":"overloaded"}"#,
                "error",
                "overloaded",
            ),
            (
                r#"{"object":"error","message":"no","code":400}"#,
                "error",
                "no",
            ),
            (r#"{"detail":"Not Found"}"#, "error", "Not Found"),
        ] {
            let error = error_in(json.as_bytes()).expect("an error");
            assert_eq!((&*error.kind, &*error.message), (kind, message), "{json}");
        }
        assert_eq!(error_in(b"<html>"), None);
    }

    #[test]
    fn a_whole_response_is_read_like_a_chunk() {
        check(
            r#"{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
            &Said {
                token: true,
                output: true,
                finish: Some("stop".into()),
                usage: Some(Usage {
                    input: Some(1),
                    output: Some(2),
                    ..Usage::default()
                }),
                error: None,
            },
        );
    }

    #[test]
    fn the_body_asks_for_usage_and_for_an_exact_length() {
        let prompt = Prompt {
            text: "a \"b\"".into(),
            input_tokens: 2,
            output_tokens: Some(8),
        };
        let json: serde_json::Value =
            serde_json::from_slice(&body("m", &prompt, true)).expect("JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "model": "m", "messages": [{"role": "user", "content": "a \"b\""}], "stream": true,
                "stream_options": {"include_usage": true},
                "max_tokens": 8, "min_tokens": 8, "ignore_eos": true,
            })
        );
        let prompt = Prompt {
            output_tokens: None,
            ..prompt
        };
        let json: serde_json::Value =
            serde_json::from_slice(&body("", &prompt, false)).expect("JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "messages": [{"role": "user", "content": "a \"b\""}], "stream": false,
            })
        );
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let error = request_error("k", &"é".repeat(400));
        assert_eq!(error.message.chars().count(), 250);
    }
}
