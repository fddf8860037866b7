//! The bodies of answers: event-stream frames and JSON as vLLM writes them.
//!
//! Frames are written by hand into a buffer that is kept: the shape never changes, and only the
//! model's name needs escaping, once.

use std::fmt::{Arguments, Write as _};

use serde_json::{Value, json};

use super::ask::{Api, Ask, Refusal, Served};
use crate::simulator::engine::Finish;
use crate::simulator::tokens;

/// What the frames of one answer have in common.
#[derive(Debug)]
pub(super) struct Frames {
    id: String,
    created: u64,
    /// The model's name as a JSON text.
    model: String,
    api: Api,
    seed: u64,
    /// The first words, where they are not any.
    answer: Vec<String>,
    prompt_tokens: u32,
    /// Prompt tokens that came from the prefix cache; known once the prompt is admitted.
    pub(super) cached_tokens: u32,
    continuous_usage: bool,
    frame: String,
}

impl Frames {
    /// For the answer to `ask` by `model`. `id` names it, after what its protocol puts before,
    /// `created` is in Unix seconds, `job` seeds the words.
    pub(super) fn new(ask: &Ask, model: &str, (id, created, job): (&str, u64, u64)) -> Self {
        let prefix = match ask.api {
            Api::Chat => "chatcmpl",
            Api::Completions => "cmpl",
        };
        Self {
            id: format!("{prefix}-{id}"),
            created,
            model: Value::from(model).to_string(),
            api: ask.api,
            seed: job,
            answer: ask.answer.clone(),
            prompt_tokens: ask.prompt_tokens,
            cached_tokens: 0,
            continuous_usage: ask.continuous_usage,
            frame: String::with_capacity(384),
        }
    }

    /// The frame that carries the role and no token.
    pub(super) fn role(&mut self) -> &str {
        let choice = r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}"#;
        self.chunk(format_args!("{choice}"), self.usage_so_far(0))
    }

    /// The frame of token number `index`, from 0. The last one of a completion says why it is
    /// the last; a chat has a frame of its own for that.
    pub(super) fn token(&mut self, index: u32, finish: Option<Finish>) -> &str {
        let used = self.usage_so_far(index + 1);
        let (space, word) = self.word(index);
        let word = word.to_owned();
        match self.api {
            Api::Chat => self.chunk(
                format_args!(
                    r#"{{"index":0,"delta":{{"content":"{space}{word}"}},"logprobs":null,"finish_reason":null}}"#
                ),
                used,
            ),
            Api::Completions => {
                let reason = finish.map_or("null", quoted_reason);
                self.chunk(
                    format_args!(
                        r#"{{"index":0,"text":"{space}{word}","logprobs":null,"finish_reason":{reason},"stop_reason":null}}"#
                    ),
                    used,
                )
            }
        }
    }

    /// The frame of a chat that says why the answer ended after `tokens` tokens.
    pub(super) fn finish(&mut self, finish: Finish, tokens: u32) -> &str {
        let reason = quoted_reason(finish);
        let choice = format_args!(
            r#"{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":{reason},"stop_reason":null}}"#
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
            let (space, word) = self.word(index);
            content.push_str(space);
            content.push_str(word);
        }
        let (id, created, model) = (&self.id, self.created, &self.model);
        let reason = quoted_reason(finish);
        let usage = self.usage_of(tokens);
        let (object, said) = match self.api {
            Api::Chat => (
                "chat.completion",
                format!(r#""message":{{"role":"assistant","content":"{content}"}}"#),
            ),
            Api::Completions => ("text_completion", format!(r#""text":"{content}""#)),
        };
        format!(
            r#"{{"id":"{id}","object":"{object}","created":{created},"model":{model},"choices":[{{"index":0,{said},"logprobs":null,"finish_reason":{reason},"stop_reason":null}}],"usage":{usage}}}"#
        )
    }

    /// The word of token `index` and what separates it from what was before, which for a
    /// completion is the end of the prompt.
    fn word(&self, index: u32) -> (&'static str, &str) {
        let first = index == 0 && self.api == Api::Chat;
        let said = self.answer.get(index as usize).map(String::as_str);
        let word = said.unwrap_or_else(|| tokens::word(self.seed, index));
        (if first { "" } else { " " }, word)
    }

    /// A usage object.
    fn usage_of(&self, tokens: u32) -> String {
        let (prompt, cached) = (self.prompt_tokens, self.cached_tokens);
        let total = prompt + tokens;
        format!(
            r#"{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{tokens},"prompt_tokens_details":{{"cached_tokens":{cached}}}}}"#
        )
    }

    fn usage_so_far(&self, tokens: u32) -> Option<u32> {
        self.continuous_usage.then_some(tokens)
    }

    fn chunk(&mut self, choice: Arguments<'_>, used: Option<u32>) -> &str {
        const NEVER: &str = "writing to a `String` cannot fail";
        let usage = used.map(|tokens| self.usage_of(tokens));
        let object = match self.api {
            Api::Chat => "chat.completion.chunk",
            Api::Completions => "text_completion",
        };
        let frame = &mut self.frame;
        frame.clear();
        let (id, created, model) = (&self.id, self.created, &self.model);
        write!(
            frame,
            r#"data: {{"id":"{id}","object":"{object}","created":{created},"model":{model},"choices":[{choice}]"#
        )
        .expect(NEVER);
        if let Some(usage) = usage {
            write!(frame, r#","usage":{usage}"#).expect(NEVER);
        }
        frame.push_str("}\n\n");
        frame
    }
}

/// Why an answer ended, as a JSON text.
const fn quoted_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => r#""stop""#,
        Finish::Length => r#""length""#,
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
pub(super) fn models(served: &Served, created: u64) -> String {
    let model = &served.model;
    json!({"object": "list", "data": [{
        "id": model,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": model,
        "parent": null,
        "max_model_len": served.max_model_len,
        "permission": [],
    }]})
    .to_string()
}
