//! What one request sends, whatever the protocol.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::measurement::Wanted;

/// One prompt, and how long it and its answer are meant to be.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// The user's message.
    pub text: String,
    /// Instructions before everything else.
    pub system: Option<Arc<str>>,
    /// The turns of its conversation before it, oldest first.
    pub history: Vec<Message>,
    /// What the user's message shows or plays beside its text.
    pub media: Vec<Media>,
    /// Tools that the model may call: a JSON array as `OpenAI` chat has it.
    pub tools: Option<Arc<RawValue>>,
    /// What a data set sends instead of all of these.
    pub verbatim: Option<Verbatim>,
    /// Further fields of the request body, a JSON object.
    pub extra: Option<Arc<serde_json::Map<String, serde_json::Value>>>,
    /// Keeps prompts with other salts out of the server's prefix cache, where it knows
    /// `cache_salt`.
    pub cache_salt: Option<Arc<str>>,
    /// What its answer has to be, where that is known.
    pub wanted: Option<Wanted>,
    /// Tokens at its beginning that earlier prompts of its stream began with too; `None`: not
    /// known.
    pub shared_tokens: Option<u32>,
    /// Tokens that the whole prompt is meant to have; `None`: not known.
    pub input_tokens: Option<u32>,
    /// Output tokens to ask for; `None`: as many as the server likes.
    pub output_tokens: Option<u32>,
    /// The body of its request, where that was written before it is due. Who changes anything else
    /// here clears it.
    pub written: Option<WrittenBody>,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub struct WrittenBody {
    /// The model that it asks; another one takes another body.
    pub model: Box<str>,
    /// What is sent.
    pub bytes: Bytes,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// What it says.
    pub text: Arc<str>,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name that `OpenAI` gave it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// What a message shows or plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    /// A picture: its URL, which may hold it (`data:image/png;base64,…`).
    Image(Arc<str>),
    /// A sound.
    Audio {
        /// `wav` or `mp3`.
        format: &'static str,
        /// Base64.
        data: Arc<str>,
    },
    /// A video: its URL, which may hold it.
    Video(Arc<str>),
}

/// What a data set sends as it is.
#[derive(Debug, Clone)]
pub enum Verbatim {
    /// All messages: a JSON array.
    Messages(Arc<RawValue>),
    /// The whole request body: a JSON object.
    Body(Arc<RawValue>),
}

impl Prompt {
    /// All of its text as one, for protocols without messages.
    #[must_use]
    pub fn whole(&self) -> Cow<'_, str> {
        if self.system.is_none() && self.history.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let history = self.history.iter().map(|message| &*message.text);
        let parts = self.system.as_deref().into_iter().chain(history);
        let parts: Vec<&str> = parts.chain([self.text.as_str()]).collect();
        Cow::Owned(parts.join("\n\n"))
    }
}
