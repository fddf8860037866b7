//! The bodies of answers: event-stream frames and JSON as vLLM writes them.
//!
//! Frames are written by hand into a buffer that is kept: the shape never changes, and only the
//! model's name needs escaping, once.

use std::fmt::{Arguments, Write as _};

use serde_json::{Value, json};

use super::chat::{Ask, MAX_MODEL_LEN, Refusal};
use crate::simulator::engine::{Finish, mix};

/// What the model says, word by word.
const WORDS: [&str; 32] = [
    "the", "river", "keeps", "its", "own", "time", "and", "small", "birds", "wake", "before",
    "light", "when", "wind", "turns", "over", "quiet", "stones", "near", "old", "walls", "where",
    "rain", "once", "stood", "all", "night", "while", "lamps", "burned", "low", "again",
];

/// What the frames of one answer have in common.
#[derive(Debug)]
pub(super) struct Frames {
    id: String,
    created: u64,
    /// The model's name as a JSON text.
    model: String,
    seed: u64,
    prompt_tokens: u32,
    continuous_usage: bool,
    frame: String,
}

impl Frames {
    /// `id` names the completion, `created` is in Unix seconds, `job` seeds the words.
    pub(super) fn new(id: String, created: u64, model: &str, job: u64) -> Self {
        Self {
            id,
            created,
            model: Value::from(model).to_string(),
            seed: job,
            prompt_tokens: 0,
            continuous_usage: false,
            frame: String::with_capacity(384),
        }
    }

    /// Takes over what the request asked of the frames.
    pub(super) fn for_ask(mut self, ask: &Ask) -> Self {
        self.prompt_tokens = ask.prompt_tokens;
        self.continuous_usage = ask.continuous_usage;
        self
    }

    /// The frame that carries the role and no token.
    pub(super) fn role(&mut self) -> &str {
        let choice = r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}"#;
        self.chunk(format_args!("{choice}"), self.usage_so_far(0))
    }

    /// The frame of token number `index`, from 0.
    pub(super) fn token(&mut self, index: u32) -> &str {
        let (space, word) = word(self.seed, index);
        let choice = format_args!(
            r#"{{"index":0,"delta":{{"content":"{space}{word}"}},"logprobs":null,"finish_reason":null}}"#
        );
        self.chunk(choice, self.usage_so_far(index + 1))
    }

    /// The frame that says why the answer ended after `tokens` tokens.
    pub(super) fn finish(&mut self, finish: Finish, tokens: u32) -> &str {
        let reason = reason(finish);
        let choice = format_args!(
            r#"{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"{reason}","stop_reason":null}}"#
        );
        self.chunk(choice, self.usage_so_far(tokens))
    }

    /// The frame without choices that carries the usage.
    pub(super) fn usage(&mut self, tokens: u32) -> &str {
        self.chunk(format_args!(""), Some(tokens))
    }

    /// The whole answer as one JSON object.
    pub(super) fn whole(&self, finish: Finish, tokens: u32) -> String {
        let mut content = String::new();
        for index in 0..tokens {
            let (space, word) = word(self.seed, index);
            content.push_str(space);
            content.push_str(word);
        }
        let (id, created, model) = (&self.id, self.created, &self.model);
        let reason = reason(finish);
        let usage = usage(self.prompt_tokens, tokens);
        format!(
            r#"{{"id":"{id}","object":"chat.completion","created":{created},"model":{model},"choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"logprobs":null,"finish_reason":"{reason}","stop_reason":null}}],"usage":{usage}}}"#
        )
    }

    fn usage_so_far(&self, tokens: u32) -> Option<u32> {
        self.continuous_usage.then_some(tokens)
    }

    fn chunk(&mut self, choice: Arguments<'_>, used: Option<u32>) -> &str {
        const NEVER: &str = "writing to a `String` cannot fail";
        let frame = &mut self.frame;
        frame.clear();
        let (id, created, model) = (&self.id, self.created, &self.model);
        write!(
            frame,
            r#"data: {{"id":"{id}","object":"chat.completion.chunk","created":{created},"model":{model},"choices":[{choice}]"#
        )
        .expect(NEVER);
        if let Some(tokens) = used {
            let usage = usage(self.prompt_tokens, tokens);
            write!(frame, r#","usage":{usage}"#).expect(NEVER);
        }
        frame.push_str("}\n\n");
        frame
    }
}

/// A usage object; no prefix cache is modelled, so no prompt token ever came from one.
fn usage(prompt: u32, tokens: u32) -> String {
    let total = prompt + tokens;
    format!(
        r#"{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{tokens},"prompt_tokens_details":{{"cached_tokens":0}}}}"#
    )
}

/// The word of token `index` and what separates it from the one before.
fn word(seed: u64, index: u32) -> (&'static str, &'static str) {
    let choice = mix(seed ^ mix(u64::from(index))) % 32;
    let word = WORDS[usize::try_from(choice).unwrap_or(0)];
    (if index == 0 { "" } else { " " }, word)
}

const fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
    }
}

/// vLLM's error object.
pub(super) fn error(refusal: &Refusal) -> String {
    let kind = match refusal.status {
        404 => "NotFoundError",
        400..500 => "BadRequestError",
        _ => "InternalServerError",
    };
    json!({"error": {
        "message": refusal.message,
        "type": kind,
        "param": refusal.param,
        "code": refusal.status,
    }})
    .to_string()
}

/// The list of the one model.
pub(super) fn models(model: &str, created: u64) -> String {
    json!({"object": "list", "data": [{
        "id": model,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": model,
        "parent": null,
        "max_model_len": MAX_MODEL_LEN,
        "permission": [],
    }]})
    .to_string()
}
