//! What a chat completion request asks for.
//!
//! Reads the body, checks it as vLLM does where a client could notice, and turns it into a job.

use serde::Deserialize;
use serde_json::Value;

/// Output tokens when the request names none.
const DEFAULT_OUTPUT_TOKENS: u32 = 64;
/// Most prompt and output tokens of one request.
pub(super) const MAX_MODEL_LEN: u32 = 131_072;

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Usage so far on every frame.
    pub(super) continuous_usage: bool,
    pub(super) prompt_tokens: u32,
    pub(super) min_tokens: u32,
    pub(super) max_tokens: u32,
}

/// A refusal in vLLM's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

#[derive(Debug, Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    min_tokens: Option<i64>,
    ignore_eos: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Reads and checks `body` for the model called `served`.
pub(super) fn parse(body: &[u8], served: &str) -> Result<Ask, Refusal> {
    let body: Body =
        serde_json::from_slice(body).map_err(|error| bad(format!("bad body: {error}"), None))?;
    if let Some(model) = body.model.as_deref().filter(|model| *model != served) {
        return Err(Refusal {
            status: 404,
            message: format!("The model `{model}` does not exist."),
            param: Some("model"),
        });
    }
    let messages = body
        .messages
        .filter(|messages| !messages.is_empty())
        .ok_or_else(|| {
            bad(
                "`messages` is missing or empty".to_owned(),
                Some("messages"),
            )
        })?;
    let asked = body.max_completion_tokens.or(body.max_tokens);
    let max_tokens = match asked {
        Some(asked) => count(asked, "max_tokens", 1)?,
        None => DEFAULT_OUTPUT_TOKENS,
    };
    let least = count(body.min_tokens.unwrap_or(0), "min_tokens", 0)?;
    if least > max_tokens {
        let message = format!("`min_tokens` is {least}; wanted at most {max_tokens}");
        return Err(bad(message, Some("min_tokens")));
    }
    let prompt_tokens = prompt_tokens(&messages);
    if prompt_tokens.saturating_add(max_tokens) > MAX_MODEL_LEN {
        let message = format!(
            "This model's maximum context length is {MAX_MODEL_LEN} tokens; the request asks for \
             {max_tokens} output tokens after {prompt_tokens} input tokens"
        );
        return Err(bad(message, Some("input_tokens")));
    }
    let options = body.stream_options.unwrap_or_default();
    let fixed = body.ignore_eos.unwrap_or(false);
    Ok(Ask {
        stream: body.stream.unwrap_or(false),
        include_usage: options.include_usage.unwrap_or(false),
        continuous_usage: options.continuous_usage_stats.unwrap_or(false),
        prompt_tokens,
        min_tokens: if fixed { max_tokens } else { least },
        max_tokens,
    })
}

fn count(value: i64, name: &'static str, least: u32) -> Result<u32, Refusal> {
    u32::try_from(value)
        .ok()
        .filter(|value| (least..=MAX_MODEL_LEN).contains(value))
        .ok_or_else(|| {
            let message = format!("`{name}` is {value}; wanted {least} to {MAX_MODEL_LEN}");
            bad(message, Some(name))
        })
}

const fn bad(message: String, param: Option<&'static str>) -> Refusal {
    Refusal {
        status: 400,
        message,
        param,
    }
}

/// 1.3 tokens a word over the text of all messages, rounded up.
fn prompt_tokens(messages: &[Message]) -> u32 {
    let words: usize = messages
        .iter()
        .filter_map(|message| message.content.as_ref())
        .map(words)
        .sum();
    u32::try_from((words * 13).div_ceil(10)).unwrap_or(u32::MAX)
}

/// Words of a text, or of the texts in a list of parts.
fn words(content: &Value) -> usize {
    match content {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .map(|text| text.split_whitespace().count())
            .sum(),
        _ => 0,
    }
}
