//! Cohere chat v2: what is asked, and what each event says.
//!
//! An event and a whole answer hold a message of the same shape, except that a whole one has
//! arrays where an event has single objects. Citations are no tokens. Counts may be written
//! with a fraction; `tokens` are what the model saw, `billed_units` what is paid for. There is
//! no way to ask for an exact length.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::{ChatPart, Messages, messages};
use super::count::Count;
use super::lenient::Maybe;
use super::several::Several;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault, request_error};
use crate::client::framing::Event;

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    messages: Messages<'a, ChatPart<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

pub(super) fn path(_ask: &Ask<'_>) -> String {
    "/v2/chat".to_owned()
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        messages: messages(ask.prompt, true, ChatPart::image, ChatPart::text),
        stream: ask.streaming,
        max_tokens: ask.prompt.output_tokens,
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    /// Of an event.
    #[serde(borrow)]
    delta: Option<Answer<'a>>,
    /// Of a whole answer.
    #[serde(borrow, default)]
    message: Maybe<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    usage: Option<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
struct Answer<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    usage: Option<RawUsage>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Several<Content<'a>>,
    #[serde(borrow)]
    tool_plan: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Several<ToolCall<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
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
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawUsage {
    tokens: Option<Tokens>,
    billed_units: Option<Tokens>,
    #[serde(default)]
    cached_tokens: Count,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    let tells = incoming.error.is_some() || incoming.detail.is_some();
    fault::note(event, tells, said)?;
    let ends = |kind: &[u8]| kind == b"message-end";
    said.done = ends(event.name) || incoming.kind.is_some_and(|kind| ends(kind.0.as_bytes()));
    let whole = Answer {
        message: incoming.message.get(),
        finish_reason: incoming.finish_reason,
        usage: incoming.usage,
        error: None,
    };
    incoming.delta.unwrap_or_default().say(said);
    whole.say(said);
    Ok(())
}

impl<'a> Answer<'a> {
    fn say(self, said: &mut Said<'a>) {
        if let Some(message) = self.message {
            message.say(said);
        }
        if let Some(usage) = self.usage {
            said.usage = Some(usage.into());
        }
        if let Some(reason) = self.finish_reason {
            let failed = matches!(&*reason.0, "ERROR" | "TIMEOUT");
            if failed || self.error.is_some() {
                let spelled = format!("finish reason `{}`", reason.0);
                let message = self.error.map_or(spelled.into(), |error| error.0);
                said.error = Some(request_error(&reason.0, &message));
            }
            said.finish(&reason.0);
        }
    }
}

impl<'a> Message<'a> {
    fn say(self, said: &mut Said<'a>) {
        if let Some(plan) = self.tool_plan {
            // What the model thinks before it calls a tool.
            said.say(0, Channel::Reasoning, plan.0);
        }
        for content in self.content {
            for (channel, text) in [
                (Channel::Reasoning, content.thinking),
                (Channel::Output, content.text),
            ] {
                if let Some(text) = text {
                    said.say(0, channel, text.0);
                }
            }
        }
        let functions = self.tool_calls.into_iter().filter_map(|call| call.function);
        for function in functions {
            for text in [function.name, function.arguments].into_iter().flatten() {
                said.say(0, Channel::Tool, text.0);
            }
        }
    }
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        let (seen, billed) = (
            raw.tokens.unwrap_or_default(),
            raw.billed_units.unwrap_or_default(),
        );
        Self::of(
            seen.input_tokens.or(billed.input_tokens),
            seen.output_tokens.or(billed.output_tokens),
            Count::default(),
            raw.cached_tokens,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use crate::measurement::{Api, Outcome, RequestRecord};

    const START: &str = r#"{"id":"x","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#;
    const OPEN: &str = r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#;
    const TEXT: &str =
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}"#;
    const THOUGHT: &str =
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}"#;
    const CLOSE: &str = r#"{"type":"content-end","index":0}"#;
    const END: &str = r#"{"id":"x","type":"message-end","delta":{"finish_reason":"MAX_TOKENS","usage":{"billed_units":{"input_tokens":3.0,"output_tokens":4.0},"tokens":{"input_tokens":71.0,"output_tokens":4.0},"cached_tokens":16}}}"#;

    fn stream(events: &[&str]) -> RequestRecord {
        let event = |json: &&str| format!("event: x\ndata: {json}\n\n");
        let body: String = events.iter().map(event).collect();
        replay(Api::Cohere, true, &body)
    }

    #[test]
    fn the_body_is_a_chat() {
        assert_eq!(
            asked(Api::Cohere, true, Some(8)),
            (
                "/v2/chat".to_owned(),
                r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":8}"#.to_owned()
            )
        );
    }

    #[test]
    fn a_stream_has_its_tokens_usage_and_reason() {
        let record = stream(&[START, OPEN, THOUGHT, CLOSE, OPEN, TEXT, TEXT, CLOSE, END]);
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 3);
        assert!(record.timeline.first_output > record.timeline.first_token);
        assert_eq!(record.finish_reason.as_deref(), Some("MAX_TOKENS"));
        let tokens = record.tokens;
        assert_eq!((tokens.input, tokens.output), (Some(71), Some(4)));
        assert_eq!(tokens.cached, Some(16));
    }

    #[test]
    fn billed_units_stand_in_for_tokens() {
        let end = r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":4}}}}"#;
        let record = stream(&[TEXT, end]);
        assert_eq!(
            (record.tokens.input, record.tokens.output),
            (Some(3), Some(4))
        );
    }

    #[test]
    fn plans_and_tool_calls_are_tokens_and_citations_are_not() {
        let record = stream(&[
            START,
            r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"f0","type":"function","function":{"name":"f","arguments":""}}}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\n"}}}}}"#,
            r#"{"type":"tool-call-end","index":0}"#,
            r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":1,"end":2,"text":"x"}}}}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}"#,
        ]);
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 3);
    }

    #[test]
    fn an_end_by_error_is_an_error() {
        for (end, message) in [
            (
                r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"gone"}}"#,
                "gone",
            ),
            (
                r#"{"type":"message-end","delta":{"finish_reason":"ERROR"}}"#,
                "finish reason `ERROR`",
            ),
        ] {
            let record = stream(&[TEXT, end]);
            assert_eq!(record.outcome, Outcome::StreamError);
            let error = record.error.expect("an error");
            assert_eq!((&*error.kind, &*error.message), ("ERROR", message));
        }
    }

    #[test]
    fn a_stream_without_its_end_is_cut() {
        assert_eq!(stream(&[START, TEXT]).outcome, Outcome::StreamCut);
    }

    #[test]
    fn a_whole_answer_is_read() {
        let record = replay(
            Api::Cohere,
            false,
            r#"{"id":"x","finish_reason":"COMPLETE","message":{"role":"assistant","content":[
                {"type":"thinking","thinking":"hm"},{"type":"text","text":"Hi"}],
                "tool_calls":[{"id":"f0","function":{"name":"f","arguments":"{}"}}]},
                "usage":{"tokens":{"input_tokens":71,"output_tokens":4}}}"#,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.finish_reason.as_deref(), Some("COMPLETE"));
        assert_eq!(record.tokens.output, Some(4));
    }
}
