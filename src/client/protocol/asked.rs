//! What a prompt asks, for the bodies of all protocols: its messages, what they show, and how a
//! body of a data set is sent.
//!
//! A protocol that has no place for something leaves it out: tools, where they have another form
//! there; sounds and videos, where only pictures are known. Pictures stand in the last message
//! only.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Ask;
use crate::load::workload::{Media, Prompt, Verbatim};

/// Instructions, as a role.
pub(super) const SYSTEM: &str = "system";

/// One message of those protocols that have a role and a content.
#[derive(Serialize)]
pub(super) struct Message<'a, P> {
    pub(super) role: &'static str,
    pub(super) content: Content<'a, P>,
}

/// What a message holds.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a, P> {
    Text(&'a str),
    Parts(Vec<P>),
}

/// All messages: those of a data set as they are, or ours.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Messages<'a, P> {
    Verbatim(&'a RawValue),
    Ours(Vec<Message<'a, P>>),
}

/// The texts of a prompt with their roles, oldest first.
pub(super) fn texts(prompt: &Prompt) -> impl Iterator<Item = (&'static str, &str)> {
    let history = prompt.history.iter();
    history
        .map(|message| (message.role.name(), &*message.text))
        .chain([("user", prompt.text.as_str())])
}

/// The messages of `prompt`; where instructions are one of them, with these first. `part` makes
/// a part of what the last one shows, `text` one of its text.
pub(super) fn messages<'a, P>(
    prompt: &'a Prompt,
    with_system: bool,
    part: impl Fn(&'a Media) -> Option<P>,
    text: impl Fn(&'a str) -> P,
) -> Messages<'a, P> {
    if let Some(Verbatim::Messages(json)) = &prompt.verbatim {
        return Messages::Verbatim(json);
    }
    let system = prompt.system.as_deref().filter(|_| with_system);
    let all = system
        .map(|text| (SYSTEM, text))
        .into_iter()
        .chain(texts(prompt));
    let mut all: Vec<Message<'a, P>> = all
        .map(|(role, text)| Message {
            role,
            content: Content::Text(text),
        })
        .collect();
    let mut parts: Vec<P> = prompt.media.iter().filter_map(part).collect();
    if let Some(last) = all.last_mut()
        && !parts.is_empty()
    {
        if !prompt.text.is_empty() {
            parts.insert(0, text(&prompt.text));
        }
        last.content = Content::Parts(parts);
    }
    Messages::Ours(all)
}

/// A part of a message as `OpenAI` chat has it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url<'a> },
    InputAudio { input_audio: Sound<'a> },
    VideoUrl { video_url: Url<'a> },
}

#[derive(Serialize)]
pub(super) struct Url<'a> {
    url: &'a str,
}

#[derive(Serialize)]
pub(super) struct Sound<'a> {
    data: &'a str,
    format: &'static str,
}

impl<'a> ChatPart<'a> {
    pub(super) const fn text(text: &'a str) -> Self {
        Self::Text { text }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "other protocols do not know all media"
    )]
    pub(super) fn of(media: &'a Media) -> Option<Self> {
        Some(match media {
            Media::Image(url) => Self::ImageUrl {
                image_url: Url { url },
            },
            Media::Video(url) => Self::VideoUrl {
                video_url: Url { url },
            },
            Media::Audio { format, data } => Self::InputAudio {
                input_audio: Sound { data, format },
            },
        })
    }

    /// The same, for protocols that know pictures only.
    pub(super) fn image(media: &'a Media) -> Option<Self> {
        matches!(media, Media::Image(_))
            .then(|| Self::of(media))
            .flatten()
    }
}

/// Media type and base64 of a `data:` URL.
pub(super) fn data_of(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// All text of a prompt as one, for protocols without messages.
pub(super) fn flat(prompt: &Prompt) -> Cow<'_, str> {
    let Some(Verbatim::Messages(json)) = &prompt.verbatim else {
        return prompt.whole();
    };
    let texts: Vec<String> = told(json).into_iter().map(|(_, text)| text).collect();
    Cow::Owned(texts.join("\n\n"))
}

/// Role and text of each message, instructions first.
pub(super) fn all(prompt: &Prompt) -> Vec<(String, String)> {
    if let Some(Verbatim::Messages(json)) = &prompt.verbatim {
        return told(json);
    }
    let system = prompt.system.as_deref().map(|text| (SYSTEM, text));
    let all = system.into_iter().chain(texts(prompt));
    all.map(|(role, text)| (role.to_owned(), text.to_owned()))
        .collect()
}

/// Role and text of each message of a data set.
pub(super) fn told(json: &RawValue) -> Vec<(String, String)> {
    let messages: Vec<serde_json::Value> = serde_json::from_str(json.get()).unwrap_or_default();
    let one = |message: &serde_json::Value| {
        let role = message.get("role").and_then(serde_json::Value::as_str);
        (
            role.unwrap_or("user").to_owned(),
            text_of(message.get("content")),
        )
    };
    messages.iter().map(one).collect()
}

fn text_of(content: Option<&serde_json::Value>) -> String {
    match content {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(serde_json::Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// A whole body of a data set as it is, with the model where it names none and one is known.
pub(super) fn payload(json: &RawValue, ask: &Ask<'_>, names_model: bool) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Named {
        model: Option<IgnoredAny>,
    }
    let text = json.get();
    let named = serde_json::from_str::<Named>(text).is_ok_and(|body| body.model.is_some());
    let Some(rest) = text
        .strip_prefix('{')
        .filter(|_| !named && names_model && !ask.model.is_empty())
    else {
        return text.as_bytes().to_vec();
    };
    let model = serde_json::to_string(ask.model).expect("a text always serialises");
    let comma = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    format!("{{\"model\":{model}{comma}{rest}").into_bytes()
}

#[cfg(test)]
mod tests;
