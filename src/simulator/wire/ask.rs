//! What a request for an answer asks for.
//!
//! Reads the body, checks it as vLLM does where a client could notice, and turns it into a job.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::prompt::{self, Message};
use crate::simulator::questions::answer;

/// Output tokens of a chat when the request names none.
const DEFAULT_CHAT_TOKENS: u32 = 64;
/// Output tokens of a completion when the request names none, as `OpenAI` has it.
const DEFAULT_COMPLETION_TOKENS: u32 = 16;
/// Most prompt and output tokens of one request, if the KV cache holds as many.
pub(super) const MAX_MODEL_LEN: u32 = 131_072;

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
}

/// What the server is, as far as requests are checked against it.
#[derive(Debug, Clone)]
pub(super) struct Served {
    /// Name of its one model.
    pub(super) model: String,
    /// Another name that requests may use: the one before a change.
    pub(super) also: Option<String>,
    /// Tokens that its chat template puts before each message.
    pub(super) template_tokens: u32,
    /// Most prompt and output tokens of one request.
    pub(super) max_model_len: u32,
}

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) api: Api,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Usage so far on every frame.
    pub(super) continuous_usage: bool,
    pub(super) prompt: Vec<u64>,
    /// As many as `prompt` has.
    pub(super) prompt_tokens: u32,
    /// Keeps the prompt apart from those with another in the prefix cache.
    pub(super) cache_salt: Option<u64>,
    /// What the model answers, token by token, if it knows the answer.
    pub(super) answer: Vec<String>,
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
    tools: Option<Box<RawValue>>,
    prompt: Option<Value>,
    cache_salt: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    min_tokens: Option<i64>,
    ignore_eos: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Reads and checks `body`, which came to `api`.
pub(super) fn parse(body: &[u8], api: Api, served: &Served) -> Result<Ask, Refusal> {
    let body: Body =
        serde_json::from_slice(body).map_err(|error| bad(format!("bad body: {error}"), None))?;
    let other = |model: &&str| **model != served.model && Some(*model) != served.also.as_deref();
    if let Some(model) = body.model.as_deref().filter(other) {
        return Err(Refusal {
            status: 404,
            message: format!("The model `{model}` does not exist."),
            param: Some("model"),
        });
    }
    let prompt = match api {
        Api::Chat => chat_prompt(&body, served)?,
        Api::Completions => completion_prompt(&body)?,
    };
    let (min_tokens, max_tokens) = output_tokens(&body, api)?;
    let prompt_tokens = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
    let most = served.max_model_len;
    if prompt_tokens.saturating_add(max_tokens) > most {
        let message = format!(
            "This model's maximum context length is {most} tokens; the request asks for \
             {max_tokens} output tokens after {prompt_tokens} input tokens"
        );
        return Err(bad(message, Some("input_tokens")));
    }
    let known = question(&body, api).and_then(answer);
    let options = body.stream_options.unwrap_or_default();
    Ok(Ask {
        api,
        stream: body.stream.unwrap_or(false),
        include_usage: options.include_usage.unwrap_or(false),
        continuous_usage: options.continuous_usage_stats.unwrap_or(false),
        prompt,
        prompt_tokens,
        cache_salt: salt(body.cache_salt.as_deref())?,
        answer: known.into_iter().collect(),
        min_tokens,
        max_tokens,
    })
}

/// What is asked in the end.
fn question(body: &Body, api: Api) -> Option<&str> {
    match api {
        Api::Chat => body.messages.as_ref()?.last()?.text(),
        Api::Completions => body.prompt.as_ref()?.as_str(),
    }
}

fn chat_prompt(body: &Body, served: &Served) -> Result<Vec<u64>, Refusal> {
    let messages = body.messages.as_deref().unwrap_or_default();
    if messages.is_empty() {
        let message = "`messages` is missing or empty".to_owned();
        return Err(bad(message, Some("messages")));
    }
    let tools = body.tools.as_deref();
    Ok(prompt::of_chat(messages, tools, served.template_tokens))
}

fn completion_prompt(body: &Body) -> Result<Vec<u64>, Refusal> {
    let prompt = body.prompt.as_ref().and_then(prompt::of_completion);
    prompt.ok_or_else(|| {
        let message = "`prompt` is missing; wanted one text or a list of token ids".to_owned();
        bad(message, Some("prompt"))
    })
}

/// Fewest and most output tokens.
fn output_tokens(body: &Body, api: Api) -> Result<(u32, u32), Refusal> {
    let (asked, default) = match api {
        Api::Chat => (
            body.max_completion_tokens.or(body.max_tokens),
            DEFAULT_CHAT_TOKENS,
        ),
        Api::Completions => (body.max_tokens, DEFAULT_COMPLETION_TOKENS),
    };
    let most = match asked {
        Some(asked) => count(asked, "max_tokens", 1)?,
        None => default,
    };
    let least = count(body.min_tokens.unwrap_or(0), "min_tokens", 0)?;
    if least > most {
        let message = format!("`min_tokens` is {least}; wanted at most {most}");
        return Err(bad(message, Some("min_tokens")));
    }
    let fixed = body.ignore_eos.unwrap_or(false);
    Ok((if fixed { most } else { least }, most))
}

fn salt(given: Option<&str>) -> Result<Option<u64>, Refusal> {
    match given {
        Some("") => {
            let message = "`cache_salt` is empty; wanted a text or nothing".to_owned();
            Err(bad(message, Some("cache_salt")))
        }
        given => Ok(given.map(prompt::salt)),
    }
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
