//! What requests of a target look like, and what counts their tokens.

use figment::value::{Num, Value};
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
    match wrong_path(text) {
        None => Ok(text.to_owned()),
        Some(why) => Err(Refusal::new(Problem::NotUnderstood).hint(why)),
    }
}

/// Why `text` is no path and query of a request; `None` if it is one.
#[must_use]
pub fn wrong_path(text: &str) -> Option<String> {
    /// What RFC 3986 wants written as `%` and two digits; `#` would cut the path off.
    const ENCODED: &str = "\"#<>\\^`{|}";
    if !text.starts_with('/') || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("it begins with `/` and is visible ASCII".to_owned());
    }
    let bad = text.chars().find(|c| ENCODED.contains(*c))?;
    let code = u32::from(bad);
    Some(format!(
        "the character {bad} is written `%{code:02X}` in a path"
    ))
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
    if !is_finite(given.value) {
        return Err(Refusal::new(Problem::NotUnderstood)
            .hint("JSON has no number that is infinite or none"));
    }
    match serde_json::to_value(given.value) {
        Ok(serde_json::Value::Object(map)) if map.contains_key("stream") => {
            Err(Refusal::new(Problem::Conflict)
                .hint("leave `stream` out: `streaming` of the probe says it"))
        }
        Ok(serde_json::Value::Object(map)) => Ok(map),
        _ => Err(Refusal::new(Problem::NotUnderstood).hint("it cannot be written as JSON")),
    }
}

/// Whether no number in `value` is infinite or not a number.
fn is_finite(value: &Value) -> bool {
    match value {
        Value::Num(_, Num::F64(number)) => number.is_finite(),
        Value::Num(_, Num::F32(number)) => number.is_finite(),
        Value::Dict(_, dict) => dict.values().all(is_finite),
        Value::Array(_, items) => items.iter().all(is_finite),
        _ => true,
    }
}

/// A path that takes one look at each value of an answer, or few: it is followed where requests
/// are timed. Each `..` goes through all below, and each comma doubles what follows it.
fn is_cheap(path: &str) -> bool {
    /// Longest path.
    const LONGEST: usize = 300;
    const MOST_COMMAS: usize = 4;
    let mut bare = String::new();
    let mut quote = None;
    let mut escaped = false;
    for c in path.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => bare.push(c),
        }
    }
    path.len() <= LONGEST
        && bare.matches("..").count() <= 1
        && bare.matches(',').count() <= MOST_COMMAS
        && bare.matches('?').count() <= 1
}

fn text_path(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    match JsonPath::parse(text) {
        Ok(_) if !is_cheap(text) => Err(Refusal::new(Problem::OutOfRange).hint(
            "it may take too long where requests are timed: at most one `..`, one `?`, four commas and 300 characters",
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_request_cannot_carry_is_refused() {
        for good in ["/", "/v1/chat", "/a?b=c&d=%20", "/a:b@c/~x"] {
            assert_eq!(wrong_path(good), None, "{good}");
        }
        for (bad, why) in [
            ("/v1#frag", "the character # is written `%23` in a path"),
            ("/a{b}", "the character { is written `%7B` in a path"),
            ("/a\\b", "the character \\ is written `%5C` in a path"),
            ("v1", "it begins with `/` and is visible ASCII"),
            ("/a b", "it begins with `/` and is visible ASCII"),
            ("/a\u{7f}", "it begins with `/` and is visible ASCII"),
            ("/a\nb", "it begins with `/` and is visible ASCII"),
        ] {
            assert_eq!(wrong_path(bad).as_deref(), Some(why), "{bad:?}");
        }
    }

    #[test]
    fn paths_whose_cost_multiplies_are_told_from_plain_ones() {
        for (path, cheap) in [
            ("$.choices[*].text", true),
            ("$..text", true),
            ("$..[?@.type == 'text'].text", true),
            ("$['a..b']['c..d,,,,,'].x", true),
            ("$[0,1,2]", true),
            ("$..[?@..a]", false),
            ("$..*..*", false),
            ("$[*,*][*,*][*,*][*,*][*,*]", false),
            ("$[?@[?@.a]]", false),
        ] {
            assert!(JsonPath::parse(path).is_ok(), "{path}");
            assert_eq!(is_cheap(path), cheap, "{path}");
        }
        assert!(!is_cheap(&format!("${}", ".a".repeat(200))));
    }
}
