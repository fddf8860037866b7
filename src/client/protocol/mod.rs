//! The protocols: what is asked, and what each event says. One file each, one arm each here.
//!
//! A protocol knows nothing of time, connections or outcomes; it reads one event at a time.

mod asked;
mod chat;
mod cohere;
mod completions;
mod count;
mod embeddings;
mod fault;
mod free;
mod gemini;
mod kserve;
mod lenient;
mod llamacpp;
mod messages;
mod ollama;
#[cfg(test)]
mod replay;
mod rerank;
mod responses;
mod said;
mod scan;
mod segment;
mod several;
mod tally;
mod text;
mod tgi;
mod triton;
mod usage;

pub(super) use said::{Channel, Piece, Said, Usage, error_from, error_in, request_error};
pub(super) use scan::Shape;

use self::free::Free;
use super::framing::{Event, Framing};
use crate::config::RequestConfig;
use crate::load::workload::{Prompt, Verbatim};
use crate::measurement::{Api, RequestError};

/// The protocol of one target.
#[derive(Debug)]
pub struct Protocol {
    api: Api,
    style: RequestConfig,
    free: Option<Free>,
}

/// Why a protocol cannot be spoken as the operator asks.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// `raw` and `template` send the operator's body.
    #[error("no `body` is given")]
    NoBody,
    /// The template or the path to the text is wrong.
    #[error("{0}")]
    Invalid(String),
}

/// One request to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    /// Empty: unknown, and left out.
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    pub(super) streaming: bool,
    pub(super) style: &'a RequestConfig,
}

impl Protocol {
    /// `api`, spoken as `style` says.
    ///
    /// # Errors
    ///
    /// If `raw` or `template` lacks its body, or that or the path to the text is wrong.
    pub fn new(api: Api, style: RequestConfig) -> Result<Self, ProtocolError> {
        let free = match api {
            Api::Raw | Api::Template => Some(Free::new(api, &style)?),
            _ => None,
        };
        Ok(Self { api, style, free })
    }

    /// Which protocol it is.
    #[must_use]
    pub const fn api(&self) -> Api {
        self.api
    }

    pub(super) fn ask<'a>(
        &'a self,
        model: &'a str,
        prompt: &'a Prompt,
        streaming: bool,
    ) -> Ask<'a> {
        Ask {
            model,
            prompt,
            streaming,
            style: &self.style,
        }
    }

    /// Path and query below the address.
    pub(super) fn path(&self, ask: &Ask<'_>) -> String {
        if let Some(path) = &self.style.path {
            return path.clone();
        }
        match self.api {
            Api::Chat => chat::PATH.to_owned(),
            Api::Completions => completions::path(ask),
            Api::Responses => responses::path(ask),
            Api::Messages => messages::path(ask),
            Api::Tgi => tgi::path(ask),
            Api::Llamacpp => llamacpp::path(ask),
            Api::Ollama | Api::OllamaGenerate => ollama::path(self.api, ask),
            Api::Triton => triton::path(ask),
            Api::Kserve => kserve::path(ask),
            Api::Gemini => gemini::path(ask),
            Api::Cohere => cohere::path(ask),
            Api::Embeddings | Api::ChatEmbeddings | Api::NimEmbeddings | Api::TeiEmbed => {
                embeddings::path(self.api, ask)
            }
            Api::Rerank | Api::CohereRerank | Api::TeiRerank | Api::NimRerank => {
                rerank::path(self.api, ask)
            }
            Api::Raw | Api::Template => free::PATH.to_owned(),
        }
    }

    /// The request body, with the operator's further fields laid over it, then the prompt's own. A
    /// body of a data set is sent as it is.
    ///
    /// # Errors
    ///
    /// If a template that could be rendered at load cannot be rendered for this request.
    pub(super) fn body(&self, ask: &Ask<'_>) -> Result<Vec<u8>, ProtocolError> {
        if let Some(Verbatim::Body(json)) = &ask.prompt.verbatim {
            let names_model = !self.api.names_model_in_path();
            return Ok(asked::payload(json, ask, names_model));
        }
        let body = match self.api {
            Api::Chat => chat::body(ask),
            Api::Completions => completions::body(ask),
            Api::Responses => responses::body(ask),
            Api::Messages => messages::body(ask),
            Api::Tgi => tgi::body(ask),
            Api::Llamacpp => llamacpp::body(ask),
            Api::Ollama | Api::OllamaGenerate => ollama::body(self.api, ask),
            Api::Triton => triton::body(ask),
            Api::Kserve => kserve::body(ask),
            Api::Gemini => gemini::body(ask),
            Api::Cohere => cohere::body(ask),
            Api::Embeddings | Api::ChatEmbeddings | Api::NimEmbeddings | Api::TeiEmbed => {
                embeddings::body(self.api, ask)
            }
            Api::Rerank | Api::CohereRerank | Api::TeiRerank | Api::NimRerank => {
                rerank::body(self.api, ask)
            }
            Api::Raw | Api::Template => return self.free().body(ask),
        };
        let mut body = body;
        for fields in [Some(&self.style.extra), ask.prompt.extra.as_deref()] {
            if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
                body = with_fields(body, fields);
            }
        }
        Ok(body)
    }

    /// Whether a stream was asked for usage, or sends it unasked by rights.
    pub(super) fn asks_usage(&self) -> bool {
        if !matches!(self.api, Api::Chat | Api::Completions) {
            return true;
        }
        match self.style.extra.get("stream_options") {
            Some(options) => options.get("include_usage") == Some(&true.into()),
            None => self.style.usage,
        }
    }

    /// Whether the answer was asked to be exactly as long as said.
    pub(super) const fn asks_exact_length(&self) -> bool {
        self.api.takes_exact_length() && self.style.exact_length
    }

    /// Headers that the protocol wants beside the usual ones: name and value.
    pub(super) const fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.api {
            Api::Messages => &[("anthropic-version", "2023-06-01")],
            _ => &[],
        }
    }

    /// How a stream is cut that begins with a brace or a bracket.
    pub(super) const fn framing(&self) -> Framing {
        match self.api {
            Api::Ollama | Api::OllamaGenerate => Framing::Lines,
            Api::Gemini => Framing::Array,
            _ => Framing::Sse,
        }
    }

    /// Whether an answer may be text that is neither JSON nor a stream of events.
    pub(super) const fn takes_text(&self) -> bool {
        self.free.is_some()
    }

    /// Whether nothing but the end of the body marks the end of a stream: neither a last event
    /// nor a finish reason is owed. What an unknown server sends last, we cannot know.
    pub(super) const fn ends_with_body(&self) -> bool {
        self.free.is_some() || matches!(self.api, Api::Triton | Api::Kserve)
    }

    /// Reads one event of a stream, or a whole response.
    ///
    /// # Errors
    ///
    /// If its data is not JSON of this protocol's shape.
    pub(super) fn read<'a>(
        &self,
        event: Event<'a>,
        said: &mut Said<'a>,
    ) -> Result<(), serde_json::Error> {
        match self.api {
            Api::Chat => chat::read(event, said),
            Api::Completions => completions::read(event, said),
            Api::Responses => responses::read(event, said),
            Api::Messages => messages::read(event, said),
            Api::Tgi => tgi::read(event, said),
            Api::Llamacpp => llamacpp::read(event, said),
            Api::Ollama | Api::OllamaGenerate => ollama::read(self.api, event, said),
            Api::Triton => triton::read(event, said),
            Api::Kserve => kserve::read(event, said),
            Api::Gemini => gemini::read(event, said),
            Api::Cohere => cohere::read(event, said),
            Api::Embeddings | Api::ChatEmbeddings | Api::NimEmbeddings | Api::TeiEmbed => {
                embeddings::read(self.api, event, said)
            }
            Api::Rerank | Api::CohereRerank | Api::TeiRerank | Api::NimRerank => {
                rerank::read(self.api, event, said)
            }
            Api::Raw | Api::Template => self.free().read(event, said),
        }
    }

    fn free(&self) -> &Free {
        self.free
            .as_ref()
            .expect("made with every protocol that has a body of the operator's")
    }
}

/// `body`, if it is a JSON object, with `fields` in place of those of the same name or beside them.
fn with_fields(body: Vec<u8>, fields: &serde_json::Map<String, serde_json::Value>) -> Vec<u8> {
    type Object = serde_json::Map<String, serde_json::Value>;
    let Ok(mut object) = serde_json::from_slice::<Object>(&body) else {
        return body;
    };
    object.extend(fields.clone());
    serde_json::to_vec(&object).expect("what was JSON can be written as JSON")
}

/// The error in the body of a response that is not a success; `None` if it holds none.
pub(super) fn error_in_body(body: &[u8]) -> Option<RequestError> {
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    // Gemini streams an array where it is not asked for events, errors included.
    let json = json.get(0).unwrap_or(&json);
    let flat = || json.get("message").map(|_| error_from(json, None));
    error_in(json).or_else(flat)
}
