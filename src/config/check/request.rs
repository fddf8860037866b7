//! What requests of a target look like, and what counts their tokens.

use figment::value::Value;
use serde_json_path::JsonPath;

use super::super::diagnostic::{Problem, quoted};
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::secret::read_text;
use super::super::{LengthField, RequestConfig, TokenizerConfig};
use super::network::file;
use crate::measurement::Api;

/// Largest body or template, bytes.
const LARGEST_BODY: u64 = 1024 * 1024;

/// Reads `request`; `None` if a body that must be there is not.
pub(super) fn request<'a>(
    reader: &mut Reader<'a>,
    target: &Section<'a>,
    api: Api,
) -> Option<RequestConfig> {
    let free = matches!(api, Api::Raw | Api::Template);
    let default = RequestConfig::default();
    let Some(section) = reader.subsection(target, "request", &keys::REQUEST) else {
        if free && target.get("request").is_none() {
            reader.missing(target, ("request.body", keys::REQUEST.wanted("body")));
        }
        return (!free).then_some(default);
    };
    if free {
        reader.require(&section, "body");
        refuse(
            reader,
            &section,
            ("extra", "a body of your own says all that is sent"),
        );
    } else {
        only_free(reader, &section);
    }
    if api != Api::Chat {
        refuse(
            reader,
            &section,
            ("length", "only `api: chat` has two names for it"),
        );
    }
    let flag = |reader: &mut Reader<'a>, key, default| {
        reader
            .optional(&section, key, |given| given.flag())
            .unwrap_or(default)
    };
    let length = |given: Given<'_>| {
        let known = [
            ("max_tokens", LengthField::MaxTokens),
            ("max_completion_tokens", LengthField::MaxCompletionTokens),
        ];
        given.word(&known, &[])
    };
    let body = reader.optional(&section, "body", body);
    if free && body.is_none() {
        return None;
    }
    Some(RequestConfig {
        path: reader.optional(&section, "path", path),
        usage: flag(reader, "usage", default.usage),
        length: reader
            .optional(&section, "length", length)
            .unwrap_or_default(),
        exact_length: flag(reader, "exact_length", default.exact_length),
        extra: reader
            .optional(&section, "extra", extra)
            .unwrap_or_default(),
        body,
        text: reader.optional(&section, "text", text_path),
    })
}

/// `body` and `text` are for a body of the operator's own.
fn only_free<'a>(reader: &mut Reader<'a>, section: &Section<'a>) {
    for key in ["body", "text"] {
        refuse(
            reader,
            section,
            (key, "only `api: raw` and `api: template` take it"),
        );
    }
}

/// Notes `key` if it was set, since another key rules it out.
fn refuse<'a>(reader: &mut Reader<'a>, section: &Section<'a>, (key, hint): (&str, &str)) {
    if let Some(node) = section.get(key) {
        reader.refuse(&node, &Refusal::new(Problem::Conflict).hint(hint));
    }
}

fn path(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(Problem::NotUnderstood).hint("it begins with `/` and is visible ASCII"))
    }
}

/// The text of the file that the value names.
fn body(given: Given<'_>) -> Result<String, Refusal> {
    let path = given.text()?;
    read_text(path, LARGEST_BODY).map_err(|why| {
        Refusal::new(Problem::Unreadable)
            .wanted(format!("a text file at {}", quoted(path)))
            .hint(why)
    })
}

fn extra(given: Given<'_>) -> Result<serde_json::Map<String, serde_json::Value>, Refusal> {
    if !matches!(given.value, Value::Dict(..)) {
        return Err(Refusal::new(Problem::WrongType));
    }
    match serde_json::to_value(given.value) {
        Ok(serde_json::Value::Object(map)) => Ok(map),
        _ => Err(Refusal::new(Problem::NotUnderstood).hint("it cannot be written as JSON")),
    }
}

fn text_path(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    match JsonPath::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Refusal::new(Problem::NotUnderstood).hint(format!(
            "{} at character {}",
            error.message(),
            error.position()
        ))),
    }
}

/// Reads `tokenizer`.
pub(super) fn tokenizer<'a>(
    reader: &mut Reader<'a>,
    target: &Section<'a>,
) -> Option<TokenizerConfig> {
    let node = target.get("tokenizer")?;
    if node.value.as_dict().is_none() {
        let words = reader.optional(target, "tokenizer", |given| {
            given.word(&[("words", ())], &["gguf"])
        });
        return words.map(|()| TokenizerConfig::Words);
    }
    let section = reader.section(node, &keys::TOKENIZER)?;
    match (section.get("json"), section.get("tiktoken")) {
        (Some(_), Some(node)) => {
            let refusal = Refusal::new(Problem::Conflict).wanted("`json` or `tiktoken`, not both");
            reader.refuse(&node, &refusal);
            None
        }
        (None, Some(_)) => file(reader, &section, "tiktoken").map(TokenizerConfig::Tiktoken),
        (_, None) => {
            reader.require(&section, "json");
            file(reader, &section, "json").map(TokenizerConfig::Json)
        }
    }
}
