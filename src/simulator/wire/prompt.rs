//! The tokens of a prompt: what a chat template, or its absence, makes of a request.
//!
//! Whatever comes first in the conversation comes first in the tokens, so that requests which
//! begin alike share a prefix.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::simulator::tokens::{stand_in, token, tokenize};

/// Tokens of a picture, a sound or a video, whatever is in it.
pub(super) const MEDIA_TOKENS: u32 = 256;

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    role: String,
    content: Option<Value>,
}

impl Message {
    /// What it says, if it is one text.
    pub(super) fn text(&self) -> Option<&str> {
        self.content.as_ref()?.as_str()
    }
}

/// The prompt of a conversation: the tools as they are written, then for each message the
/// template's tokens and its content.
pub(super) fn of_chat(
    messages: &[Message],
    tools: Option<&RawValue>,
    template_tokens: u32,
) -> Vec<u64> {
    let mut tokens = Vec::new();
    if let Some(tools) = tools {
        tokenize(tools.get(), &mut tokens);
    }
    for message in messages {
        stand_in(&message.role, template_tokens, &mut tokens);
        match &message.content {
            Some(Value::String(text)) => tokenize(text, &mut tokens),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| add(part, &mut tokens)),
            _ => {}
        }
    }
    tokens
}

/// The prompt of a completion: one text, or token ids as they are. `None` if it is neither.
pub(super) fn of_completion(prompt: &Value) -> Option<Vec<u64>> {
    match prompt {
        Value::String(text) => {
            let mut tokens = Vec::new();
            tokenize(text, &mut tokens);
            Some(tokens)
        }
        Value::Array(parts) => match parts.as_slice() {
            [text @ Value::String(_)] => of_completion(text),
            [] => None,
            ids => ids.iter().map(Value::as_u64).collect(),
        },
        _ => None,
    }
}

/// Puts the tokens of one part of a message behind the others.
fn add(part: &Value, tokens: &mut Vec<u64>) {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        tokenize(text, tokens);
    }
    let media = [
        ("image_url", "url"),
        ("video_url", "url"),
        ("audio_url", "url"),
        ("input_audio", "data"),
    ];
    for (kind, field) in media {
        let shown = part.get(kind).and_then(|media| media.get(field));
        if let Some(shown) = shown.and_then(Value::as_str) {
            stand_in(shown, MEDIA_TOKENS, tokens);
        }
    }
}

/// What keeps prompts with other salts apart.
pub(super) fn salt(cache_salt: &str) -> u64 {
    token(cache_salt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(messages: &str, template_tokens: u32) -> Vec<u64> {
        let messages: Vec<Message> = serde_json::from_str(messages).expect("messages");
        of_chat(&messages, None, template_tokens)
    }

    fn text(text: &str) -> Vec<u64> {
        let mut tokens = Vec::new();
        tokenize(text, &mut tokens);
        tokens
    }

    #[test]
    fn without_a_template_the_contents_follow_each_other() {
        let messages = r#"[{"role":"system","content":"be brief"},{"role":"user","content":"hello, you"},{"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":"one two"},{"type":"text","text":"three"}]}]"#;
        assert_eq!(chat(messages, 0), text("be brief hello, you one two three"));
    }

    #[test]
    fn a_template_has_its_tokens_before_each_message_by_role() {
        let user = chat(r#"[{"role":"user","content":"hi"}]"#, 4);
        let system = chat(r#"[{"role":"system","content":"hi"}]"#, 4);
        assert_eq!((user.len(), system.len()), (5, 5));
        assert_ne!(user[..4], system[..4]);
        assert_eq!(user[4], system[4]);
        let longer = chat(
            r#"[{"role":"user","content":"hi"},{"role":"user","content":"there"}]"#,
            4,
        );
        assert_eq!(longer[..5], user);
        assert_eq!(longer[5..9], user[..4]);
        assert_eq!(longer.len(), 10);
    }

    #[test]
    fn media_have_a_fixed_number_of_tokens_by_what_they_are() {
        let image = |url: &str| {
            chat(
                &format!(
                    r#"[{{"role":"user","content":[{{"type":"text","text":"see"}},{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]"#
                ),
                0,
            )
        };
        let cat = image("data:image/png;base64,AAAA");
        assert_eq!(cat.len(), 257);
        assert_eq!(cat, image("data:image/png;base64,AAAA"));
        assert_ne!(cat[1..], image("data:image/png;base64,AAAB")[1..]);
        let sound = chat(
            r#"[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}]}]"#,
            0,
        );
        assert_eq!(sound.len(), 256);
    }

    #[test]
    fn tools_come_first() {
        let tools: Box<RawValue> = serde_json::from_str(r#"[{"name": "f"}]"#).expect("raw");
        let messages: Vec<Message> =
            serde_json::from_str(r#"[{"role":"user","content":"hi"}]"#).expect("messages");
        assert_eq!(
            of_chat(&messages, Some(&tools), 0),
            text(r#"[{"name": "f"}] hi"#)
        );
    }

    #[test]
    fn a_completion_takes_text_or_token_ids() {
        let prompt = |json: &str| of_completion(&serde_json::from_str(json).expect("JSON"));
        assert_eq!(prompt(r#""one two""#), Some(text("one two")));
        assert_eq!(prompt(r#"["one two"]"#), Some(text("one two")));
        assert_eq!(prompt("[5, 6]"), Some(vec![5, 6]));
        for bad in [r#"["a","b"]"#, "[]", "7", "[1, -2]", "null"] {
            assert_eq!(prompt(bad), None, "{bad}");
        }
    }
}
