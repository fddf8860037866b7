//! What one event, or one whole response, says, whatever the protocol.

use std::borrow::Cow;

use crate::measurement::{RequestError, TokenSource, plain};

/// Longest finish reason that is kept.
const MAX_REASON: usize = 100;
/// Longest error message that is kept.
const MAX_MESSAGE: usize = 500;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Channel {
    /// The answer.
    Output,
    /// Thoughts before it.
    Reasoning,
    /// Name or arguments of a tool call.
    Tool,
    /// A refusal.
    Refusal,
}

/// A piece of text; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct Piece<'a> {
    /// Which of several answers it belongs to.
    pub(in crate::client) choice: u32,
    pub(in crate::client) channel: Channel,
    pub(in crate::client) text: Cow<'a, str>,
}

/// What one event, or one whole response, says.
#[derive(Debug, Default, PartialEq)]
pub(in crate::client) struct Said<'a> {
    /// The first piece stands apart: nearly every event has one at most.
    first: Option<Piece<'a>>,
    more: Vec<Piece<'a>>,
    /// It carried a token that shows no text, as an end-of-sequence token does.
    pub(in crate::client) hidden_token: bool,
    /// Tokens in this event, where it lists them, and by what.
    pub(in crate::client) listed: Option<(u32, TokenSource)>,
    /// Finish reason, as spelled; an empty one is none. The last of several.
    pub(in crate::client) finish: Option<Box<str>>,
    /// How many finish reasons there were.
    pub(in crate::client) finishes: u32,
    /// Usage, if there was any.
    pub(in crate::client) usage: Option<Usage>,
    /// An error in place of an answer.
    pub(in crate::client) error: Option<RequestError>,
    /// It is the protocol's last event.
    pub(in crate::client) done: bool,
    /// Vectors or ranks in it.
    pub(in crate::client) answers: u32,
}

/// Token counts as the server reported them: `None` where it said nothing or what cannot be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::client) struct Usage {
    pub(in crate::client) input: Option<u32>,
    pub(in crate::client) output: Option<u32>,
    pub(in crate::client) reasoning: Option<u32>,
    pub(in crate::client) cached: Option<u32>,
    /// A count was negative, not whole, or larger than can be.
    pub(in crate::client) bad: bool,
}

impl<'a> Said<'a> {
    /// Adds a piece of text, if it is not empty.
    pub(in crate::client) fn say(
        &mut self,
        choice: u32,
        channel: Channel,
        text: impl Into<Cow<'a, str>>,
    ) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        let piece = Piece {
            choice,
            channel,
            text,
        };
        if self.first.is_none() {
            self.first = Some(piece);
        } else {
            self.more.push(piece);
        }
    }

    /// Its pieces, in order.
    pub(in crate::client) fn pieces(&self) -> impl Iterator<Item = &Piece<'a>> {
        self.first.iter().chain(&self.more)
    }

    /// Whether it carried at least one token of any channel.
    pub(in crate::client) const fn has_token(&self) -> bool {
        self.first.is_some() || self.hidden_token
    }

    /// Notes a finish reason; an empty one is none.
    pub(in crate::client) fn finish(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.finish = Some(plain(cut(reason, MAX_REASON)).into());
            self.finishes += 1;
        }
    }

    /// Whether all it says is one piece of text.
    pub(in crate::client) const fn is_one_piece(&self) -> bool {
        self.first.is_some()
            && self.more.is_empty()
            && !self.hidden_token
            && self.listed.is_none()
            && self.finish.is_none()
            && self.usage.is_none()
            && self.error.is_none()
            && !self.done
            && self.answers == 0
    }
}

/// The error in a JSON value, in whichever of the known shapes: `{"error":{"message","type",
/// "code"}}`, `{"error":"…","error_type":"…"}`, `{"object":"error","message"}`,
/// `{"type":"error","error":{…}}`, `{"detail":…}`.
pub(in crate::client) fn error_in(json: &serde_json::Value) -> Option<RequestError> {
    // Some servers send the field always, empty where there is no error.
    let empty = |value: &serde_json::Value| {
        value.is_null() || *value == false || value.as_str().is_some_and(str::is_empty)
    };
    let given = |key: &str| json.get(key).filter(|value| !empty(value));
    if let Some(error) = given("error") {
        let kind = given("error_type").and_then(serde_json::Value::as_str);
        return Some(error_from(error, kind));
    }
    if let Some(detail) = given("detail") {
        return Some(error_from(detail, None));
    }
    let is_error = given("object").and_then(serde_json::Value::as_str) == Some("error");
    is_error.then(|| error_from(json, None))
}

/// `{"message","type","code"}`, or a plain text, or whatever it is.
pub(in crate::client) fn error_from(error: &serde_json::Value, kind: Option<&str>) -> RequestError {
    let text = |key: &str| {
        error.get(key).and_then(|value| match value {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    let kind = kind
        .map(str::to_owned)
        .or_else(|| text("type"))
        .or_else(|| error.get("status")?.as_str().map(str::to_owned))
        .or_else(|| text("code"))
        .or_else(|| text("http_status_code"))
        .unwrap_or_else(|| "error".to_owned());
    let message = text("message")
        .or_else(|| error.as_str().map(str::to_owned))
        .unwrap_or_else(|| error.to_string());
    request_error(&kind, &message)
}

/// An error of bounded size.
pub(in crate::client) fn request_error(kind: &str, message: &str) -> RequestError {
    RequestError {
        kind: plain(cut(kind, 100)).into(),
        message: plain(cut(message, MAX_MESSAGE)).into(),
    }
}

/// At most `limit` bytes of `text`, cut between two characters.
pub(in crate::client) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let error = request_error("k", &"é".repeat(400));
        assert_eq!(error.message.chars().count(), 250);
    }
}
