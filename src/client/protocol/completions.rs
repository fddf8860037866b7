//! `OpenAI` completions: what is asked. What each event says is read as in [`chat`], from which
//! it differs in the place of the text only.
//!
//! `echo` is never asked for, so the first text is the first token.

use serde::Serialize;

use super::asked::flat;
use super::chat::How;
use super::{Ask, Said, chat};
use crate::client::framing::Event;
use crate::config::LengthField;

const PATH: &str = "/v1/completions";

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_salt: Option<&'a str>,
    #[serde(flatten)]
    how: How,
}

pub(super) fn path(_ask: &Ask<'_>) -> String {
    PATH.to_owned()
}

/// The request body. The length has one name only in this API.
pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        model: ask.model,
        prompt: &flat(ask.prompt),
        cache_salt: ask.prompt.cache_salt.as_deref(),
        how: How::of(ask, LengthField::MaxTokens),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    chat::read(event, said)
}
