//! Anthropic messages: what is asked, and what each event says.
//!
//! The prompt is counted at the start, in three parts (new, read from the cache, written to
//! it), the answer on each `message_delta`, cumulatively; the count of about 1 with which the
//! answer begins is no count. Signatures and citations are no tokens, the name of a tool is.
//! There is no way to ask for an exact length.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asked::{Messages, data_of, messages};
use super::count::Count;
use super::lenient::{Many, Maybe};
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::load::workload::Media;

/// The API insists on a limit; this one stands where none is asked for.
const DEFAULT_MAX_TOKENS: u32 = 1024;

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Messages<'a, AskedPart<'a>>,
    stream: bool,
}

/// A part of a message: sounds and videos are not known here.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AskedPart<'a> {
    Text { text: &'a str },
    Image { source: Picture<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Picture<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

impl<'a> AskedPart<'a> {
    const fn text(text: &'a str) -> Self {
        Self::Text { text }
    }

    fn of(media: &'a Media) -> Option<Self> {
        let Media::Image(url) = media else {
            return None;
        };
        let source = match data_of(url) {
            Some((media_type, data)) => Picture::Base64 { media_type, data },
            None => Picture::Url { url },
        };
        Some(Self::Image { source })
    }
}

pub(super) fn path(_ask: &Ask<'_>) -> String {
    "/v1/messages".to_owned()
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        max_tokens: ask.prompt.output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        system: ask.prompt.system.as_deref(),
        messages: messages(ask.prompt, false, AskedPart::of, AskedPart::text),
        stream: ask.streaming,
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

/// An event of any type, or a whole answer: they share no field with two meanings.
#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    /// `message_start`.
    #[serde(default)]
    message: Maybe<Start>,
    /// `content_block_start`.
    #[serde(borrow, default)]
    content_block: Maybe<Block<'a>>,
    /// `content_block_delta` and `message_delta`.
    #[serde(borrow, default)]
    delta: Maybe<Block<'a>>,
    /// A whole answer.
    #[serde(borrow)]
    content: Option<Many<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    usage: Option<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    /// Name of a tool.
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// Arguments of a tool; an empty object where they are yet to come.
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
struct RawUsage {
    #[serde(rename = "input_tokens")]
    new: Count,
    #[serde(rename = "cache_creation_input_tokens")]
    written: Count,
    #[serde(rename = "cache_read_input_tokens")]
    cached: Count,
    #[serde(rename = "output_tokens")]
    output: Count,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    fault::note(
        event,
        incoming.error.is_some() || incoming.detail.is_some(),
        said,
    )?;
    let whole = incoming.content.is_some();
    let blocks = [incoming.content_block, incoming.delta];
    for block in blocks.into_iter().filter_map(Maybe::get) {
        block.say(whole, said);
    }
    for block in incoming.content.into_iter().flat_map(Many::objects) {
        block.say(whole, said);
    }
    if let Some(reason) = incoming.stop_reason {
        said.finish(&reason.0);
    }
    let at_start = incoming.message.get().and_then(|start| start.usage);
    if let Some(usage) = at_start {
        said.usage = Some(usage.before_the_answer());
    }
    if let Some(usage) = incoming.usage {
        said.usage = Some(usage.with_the_answer());
    }
    let stops = |kind: &[u8]| kind == b"message_stop";
    said.done = stops(event.name) || incoming.kind.is_some_and(|kind| stops(kind.0.as_bytes()));
    Ok(())
}

impl<'a> Block<'a> {
    fn say(self, whole: bool, said: &mut Said<'a>) {
        let input = self.input.filter(|_| whole).map(RawValue::get);
        for (channel, text) in [
            (Channel::Reasoning, self.thinking.map(|text| text.0)),
            (Channel::Output, self.text.map(|text| text.0)),
            (Channel::Tool, self.name.map(|text| text.0)),
            (Channel::Tool, self.partial_json.map(|text| text.0)),
            (Channel::Tool, input.map(Into::into)),
        ] {
            if let Some(text) = text {
                said.say(0, channel, text);
            }
        }
        if let Some(reason) = self.stop_reason {
            said.finish(&reason.0);
        }
    }
}

impl RawUsage {
    fn before_the_answer(self) -> Usage {
        let input = self.new.plus(self.cached).plus(self.written);
        // No prompt has no tokens: some servers begin with a zero and count at the end.
        let input = input.positive();
        let none = Count::default();
        Usage::of(input, none, none, self.cached)
    }

    fn with_the_answer(self) -> Usage {
        let none = Count::default();
        let answer = Usage::of(none, self.output, none, none);
        answer.over(Some(self.before_the_answer()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use crate::measurement::{Api, Outcome, RequestRecord, TokenSource};

    const START: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":5,"cache_read_input_tokens":20,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

"#;
    const END: &str = r#"event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

"#;

    fn delta(delta: &str) -> String {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{delta}}}\n\n"
        )
    }

    fn stream(deltas: &[&str], end: &str) -> RequestRecord {
        let deltas: String = deltas.iter().map(|json| delta(json)).collect();
        replay(Api::Messages, true, &format!("{START}{deltas}{end}"))
    }

    #[test]
    fn the_body_always_has_a_limit() {
        assert_eq!(
            asked(Api::Messages, true, Some(8)),
            (
                "/v1/messages".to_owned(),
                r#"{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"hi"}],"stream":true}"#.to_owned()
            )
        );
        let (_, body) = asked(Api::Messages, false, None);
        assert!(body.contains(r#""max_tokens":1024"#), "{body}");
        assert!(body.contains(r#""stream":false"#), "{body}");
    }

    #[test]
    fn a_stream_has_its_tokens_usage_and_reason() {
        let record = stream(
            &[
                r#"{"type":"text_delta","text":"Hi"}"#,
                r#"{"type":"text_delta","text":""}"#,
                r#"{"type":"text_delta","text":" é\n"}"#,
            ],
            END,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 2);
        assert_eq!(record.finish_reason.as_deref(), Some("max_tokens"));
        let tokens = record.tokens;
        assert_eq!((tokens.input, tokens.output), (Some(34), Some(7)));
        assert_eq!((tokens.cached, tokens.reasoning), (Some(20), None));
        assert_eq!(tokens.source, Some(TokenSource::Usage));
        assert_eq!(tokens.in_first_chunk, None);
    }

    #[test]
    fn thoughts_come_before_output_and_a_signature_is_no_token() {
        let thought = r#"{"type":"thinking_delta","thinking":"hm"}"#;
        let signature = r#"{"type":"signature_delta","signature":"EqQB"}"#;
        let record = stream(&[thought, signature], END);
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 1));
        assert_eq!(record.timeline.first_output, None);
        let record = stream(&[signature], END);
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Empty, 0));
    }

    #[test]
    fn tool_calls_are_tokens() {
        let start = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\
             \"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\
             \"input\":{}}}\n\n";
        let part = delta(r#"{"type":"input_json_delta","partial_json":"{\"a\":"}"#);
        let empty = delta(r#"{"type":"input_json_delta","partial_json":""}"#);
        let body = format!("{START}{start}{empty}{part}{END}");
        let record = replay(Api::Messages, true, &body);
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 2));
        assert!(record.timeline.first_output.is_some());
    }

    #[test]
    fn errors_inside_a_success_are_errors() {
        let error = "event: error\ndata: {\"type\":\"error\",\"error\":\
             {\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let text = r#"{"type":"text_delta","text":"Hi"}"#;
        for record in [stream(&[], error), stream(&[text], error)] {
            assert_eq!(record.outcome, Outcome::StreamError);
            let error = record.error.expect("an error");
            assert_eq!(
                (&*error.kind, &*error.message),
                ("overloaded_error", "Overloaded")
            );
        }
        let record = stream(&[text], "event: error\ndata: gone\n\n");
        assert_eq!(record.outcome, Outcome::StreamError);
        assert_eq!(&*record.error.expect("an error").message, "gone");
    }

    #[test]
    fn a_stream_without_a_stop_reason_is_cut() {
        let record = stream(&[r#"{"type":"text_delta","text":"Hi"}"#], "");
        assert_eq!(record.outcome, Outcome::StreamCut);
    }

    #[test]
    fn usage_at_the_end_outdoes_that_of_the_start() {
        let end = END.replace(
            r#"{"output_tokens":7}"#,
            r#"{"input_tokens":40,"cache_read_input_tokens":2,"output_tokens":8}"#,
        );
        let record = stream(&[r#"{"type":"text_delta","text":"Hi"}"#], &end);
        let tokens = record.tokens;
        assert_eq!(
            (tokens.input, tokens.output, tokens.cached),
            (Some(42), Some(8), Some(2))
        );
    }

    #[test]
    fn a_whole_answer_is_read() {
        let record = replay(
            Api::Messages,
            false,
            r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
                {"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Hi"},
                {"type":"tool_use","id":"t","name":"f","input":{"a":1}}],
                "stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":12}}"#,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.finish_reason.as_deref(), Some("tool_use"));
        assert_eq!(
            (record.tokens.input, record.tokens.output),
            (Some(9), Some(12))
        );
    }
}
