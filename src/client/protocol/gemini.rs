//! `generateContent` and `streamGenerateContent` of Gemini.
//!
//! Events are asked for (`alt=sse`); a gateway that drops the query answers with one JSON
//! array. Counts are on every event, all so far: the last ones stand. Thoughts are counted
//! apart from the answer, so the output is their sum. Nothing follows the finish reason but
//! the end of the body. There is no way to ask for an exact length.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asked::{data_of, texts, told};
use super::count::Count;
use super::segment::segment;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::load::workload::{Media, Prompt, Verbatim};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [AskedPart<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<AskedPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum AskedPart<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: Cow<'a, str>,
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        file_uri: &'a str,
    },
}

impl<'a> AskedPart<'a> {
    fn of(media: &'a Media) -> Self {
        match media {
            Media::Audio { format, data } => Self::InlineData {
                mime_type: format!("audio/{format}").into(),
                data,
            },
            Media::Image(url) | Media::Video(url) => match data_of(url) {
                Some((mime_type, data)) => Self::InlineData {
                    mime_type: mime_type.into(),
                    data,
                },
                None => Self::FileData { file_uri: url },
            },
        }
    }
}

fn turn<'a>(role: &str, text: Cow<'a, str>) -> Content<'a> {
    Content {
        role: if role == "assistant" { "model" } else { "user" },
        parts: vec![AskedPart::Text(text)],
    }
}

/// The turns of `prompt`; instructions stand elsewhere. Messages of a data set are sent as their
/// texts.
fn contents(prompt: &Prompt) -> Vec<Content<'_>> {
    if let Some(Verbatim::Messages(json)) = &prompt.verbatim {
        let told = told(json).into_iter();
        return told.map(|(role, text)| turn(&role, text.into())).collect();
    }
    let mut all: Vec<Content<'_>> = texts(prompt)
        .map(|(role, text)| turn(role, text.into()))
        .collect();
    if let Some(last) = all.last_mut() {
        last.parts.extend(prompt.media.iter().map(AskedPart::of));
    }
    all
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u32,
}

pub(super) fn path(ask: &Ask<'_>) -> String {
    let (kind, name) = match ask.model.split_once('/') {
        Some((kind @ ("models" | "tunedModels"), name)) => (kind, name),
        _ => ("models", ask.model),
    };
    let verb = if ask.streaming {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    format!("/v1beta/{kind}/{}:{verb}", segment(name))
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        system_instruction: ask.prompt.system.as_deref().map(|text| Instruction {
            parts: [AskedPart::Text(text.into())],
        }),
        contents: contents(ask.prompt),
        generation_config: ask
            .prompt
            .output_tokens
            .map(|max_output_tokens| GenerationConfig { max_output_tokens }),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Incoming<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    usage_metadata: Option<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow)]
    content: Option<Parts<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow)]
    executable_code: Option<Code<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Code<'a> {
    #[serde(borrow)]
    code: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Text<'a>>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct RawUsage {
    #[serde(rename = "promptTokenCount")]
    prompt: Count,
    #[serde(rename = "candidatesTokenCount")]
    candidates: Count,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: Count,
    #[serde(rename = "cachedContentTokenCount")]
    cached: Count,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    let tells = incoming.error.is_some() || incoming.detail.is_some();
    fault::note(event, tells, said)?;
    for candidate in incoming.candidates.into_iter().flatten() {
        let choice = candidate.index.value.unwrap_or(0);
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            part.say(choice, said);
        }
        let reason = candidate.finish_reason;
        if let Some(reason) = reason.filter(|reason| reason.0 != "FINISH_REASON_UNSPECIFIED") {
            said.finish(&reason.0);
        }
    }
    // A prompt that is refused has no candidates: the reason is all there is.
    let blocked = incoming.prompt_feedback.and_then(|it| it.block_reason);
    if let Some(reason) = blocked {
        said.finish(&reason.0);
    }
    said.usage = incoming.usage_metadata.map(Usage::from);
    Ok(())
}

impl<'a> Part<'a> {
    fn say(self, choice: u32, said: &mut Said<'a>) {
        let channel = match self.thought {
            Some(true) => Channel::Reasoning,
            _ => Channel::Output,
        };
        if let Some(text) = self.text {
            said.say(choice, channel, text.0);
        }
        if let Some(call) = self.function_call {
            if let Some(name) = call.name {
                said.say(choice, Channel::Tool, name.0);
            }
            if let Some(args) = call.args {
                said.say(choice, Channel::Tool, args.get());
            }
        }
        if let Some(code) = self.executable_code.and_then(|code| code.code) {
            said.say(choice, Channel::Tool, code.0);
        }
    }
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        Self::of(
            raw.prompt,
            raw.candidates.plus(raw.thoughts),
            raw.thoughts,
            raw.cached,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use super::*;
    use crate::load::workload::Prompt;
    use crate::measurement::{Api, Note, Outcome};

    const THOUGHT: &str = r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":6,"thoughtsTokenCount":12,"totalTokenCount":18}}"#;
    const TEXT: &str = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":6,"candidatesTokenCount":2,"thoughtsTokenCount":12,"totalTokenCount":20}}"#;
    const LAST: &str = r#"{"candidates":[{"content":{"parts":[{"text":" all"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":6,"candidatesTokenCount":5,"thoughtsTokenCount":12,"cachedContentTokenCount":4,"totalTokenCount":23},"modelVersion":"m"}"#;

    fn sse(events: &[&str]) -> String {
        let event = |json: &&str| format!("data: {json}\r\n\r\n");
        events.iter().map(event).collect()
    }

    #[test]
    fn the_model_is_in_the_path() {
        assert_eq!(
            asked(Api::Gemini, true, Some(8)),
            (
                "/v1beta/models/m:streamGenerateContent?alt=sse".to_owned(),
                r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":8}}"#.to_owned()
            )
        );
        assert_eq!(
            asked(Api::Gemini, false, None),
            (
                "/v1beta/models/m:generateContent".to_owned(),
                r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#.to_owned()
            )
        );
        let prompt = Prompt {
            text: "hi".to_owned(),
            input_tokens: Some(1),
            output_tokens: None,
            ..Prompt::default()
        };
        for (model, expected) in [
            ("models/g-2", "/v1beta/models/g-2:generateContent"),
            ("tunedModels/x", "/v1beta/tunedModels/x:generateContent"),
            ("a/b:c", "/v1beta/models/a%2Fb%3Ac:generateContent"),
        ] {
            let ask = Ask {
                model,
                prompt: &prompt,
                streaming: false,
                style: &crate::config::RequestConfig::default(),
            };
            assert_eq!(path(&ask), expected);
        }
    }

    #[test]
    fn events_and_arrays_are_the_same_stream() {
        let array = format!("[{THOUGHT}\r\n,\r\n{TEXT},\r\n{LAST}\r\n]\r\n");
        for body in [sse(&[THOUGHT, TEXT, LAST]), array] {
            let record = replay(Api::Gemini, true, &body);
            assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
            assert_eq!(record.chunks.len(), 3);
            assert!(record.timeline.first_output > record.timeline.first_token);
            assert_eq!(record.finish_reason.as_deref(), Some("STOP"));
            let tokens = record.tokens;
            assert_eq!((tokens.input, tokens.output), (Some(6), Some(17)));
            assert_eq!((tokens.reasoning, tokens.cached), (Some(12), Some(4)));
            assert_eq!(tokens.in_first_chunk, Some(12));
        }
    }

    #[test]
    fn a_stream_without_a_finish_reason_is_cut() {
        let array = format!("[{TEXT},\r\n");
        let half = format!("[{TEXT},\r\n{{\"candidates\":[{{\"con");
        for (body, expected) in [
            (sse(&[TEXT]), Outcome::StreamCut),
            (array, Outcome::StreamCut),
            (half, Outcome::StreamCut),
        ] {
            assert_eq!(replay(Api::Gemini, true, &body).outcome, expected, "{body}");
        }
    }

    #[test]
    fn an_empty_array_is_an_empty_answer() {
        for body in ["[]", " [\r\n]\r\n", "[ , ]"] {
            let record = replay(Api::Gemini, true, body);
            assert_eq!(record.outcome, Outcome::Empty, "{body}");
            assert_eq!(record.error, None);
        }
        for body in ["[", "[ "] {
            let record = replay(Api::Gemini, true, body);
            assert_eq!(record.outcome, Outcome::StreamCut, "{body}");
        }
    }

    #[test]
    fn what_follows_the_array_is_noted() {
        for (tail, noted) in [("\r\n", false), ("\n{}", true), ("]", true)] {
            let record = replay(Api::Gemini, true, &format!("[{TEXT},{LAST}]{tail}"));
            assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
            assert_eq!(record.notes.has(Note::AfterEnd), noted, "{tail:?}");
        }
    }

    #[test]
    fn function_calls_and_code_are_tokens() {
        let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"executableCode":{"language":"PYTHON","code":"1"}}]},"finishReason":"STOP"}]}"#;
        let record = replay(Api::Gemini, true, &sse(&[call]));
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 1));
    }

    #[test]
    fn a_signature_or_an_unspecified_reason_says_nothing() {
        let signature = r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"x"}]},"finishReason":"FINISH_REASON_UNSPECIFIED"}]}"#;
        let record = replay(Api::Gemini, true, &sse(&[signature]));
        assert_eq!(
            (record.outcome, record.chunks.len()),
            (Outcome::StreamCut, 0)
        );
    }

    #[test]
    fn a_refused_prompt_is_an_empty_answer_with_a_reason() {
        let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":6,"totalTokenCount":6}}"#;
        let record = replay(Api::Gemini, true, &sse(&[blocked]));
        assert_eq!(record.outcome, Outcome::Empty);
        assert_eq!(record.finish_reason.as_deref(), Some("SAFETY"));
    }

    #[test]
    fn errors_inside_a_success_are_errors() {
        let error = r#"{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}"#;
        for body in [
            sse(&[error]),
            sse(&[TEXT, error]),
            format!("[{error}]"),
            format!("[{TEXT},{error}]"),
        ] {
            let record = replay(Api::Gemini, true, &body);
            assert_eq!(record.outcome, Outcome::StreamError, "{body}");
            let error = record.error.expect("an error");
            assert_eq!(
                (&*error.kind, &*error.message),
                ("RESOURCE_EXHAUSTED", "Quota")
            );
        }
    }

    #[test]
    fn a_whole_answer_is_read() {
        let record = replay(Api::Gemini, false, LAST);
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.tokens.output, Some(17));
    }
}
