//! The unit of a baseline: one (target, endpoint, probe, cache mode, connection policy).

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A protocol an inference server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// `OpenAI` chat completions.
    Chat,
    /// `OpenAI` completions.
    Completions,
    /// `OpenAI` responses.
    Responses,
    /// Anthropic messages.
    Messages,
    /// `/generate` and `/generate_stream` of text-generation-inference.
    Tgi,
    /// `/completion` of llama.cpp.
    Llamacpp,
    /// `/api/chat` of Ollama.
    Ollama,
    /// `/api/generate` of Ollama.
    OllamaGenerate,
    /// The generate extension of Triton.
    Triton,
    /// Open inference v2: `infer`.
    Kserve,
    /// `generateContent` of Gemini.
    Gemini,
    /// Cohere chat v2.
    Cohere,
    /// `OpenAI` embeddings.
    Embeddings,
    /// Embeddings of chat messages, as vLLM takes them.
    ChatEmbeddings,
    /// Embeddings as NIM takes them.
    NimEmbeddings,
    /// `/embed` of text-embeddings-inference.
    TeiEmbed,
    /// `/v1/rerank`, as Jina and vLLM speak it.
    Rerank,
    /// `/v2/rerank` of Cohere.
    CohereRerank,
    /// `/rerank` of text-embeddings-inference.
    TeiRerank,
    /// `/v1/ranking` of NIM.
    NimRerank,
    /// A body sent as it is.
    Raw,
    /// A body made from a template.
    Template,
}

impl Api {
    /// Every protocol, in the order in which lists show them.
    pub const ALL: [Self; 22] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Messages,
        Self::Tgi,
        Self::Llamacpp,
        Self::Ollama,
        Self::OllamaGenerate,
        Self::Triton,
        Self::Kserve,
        Self::Gemini,
        Self::Cohere,
        Self::Embeddings,
        Self::ChatEmbeddings,
        Self::NimEmbeddings,
        Self::TeiEmbed,
        Self::Rerank,
        Self::CohereRerank,
        Self::TeiRerank,
        Self::NimRerank,
        Self::Raw,
        Self::Template,
    ];

    /// The name in configuration, records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Tgi => "tgi",
            Self::Llamacpp => "llamacpp",
            Self::Ollama => "ollama",
            Self::OllamaGenerate => "ollama_generate",
            Self::Triton => "triton",
            Self::Kserve => "kserve",
            Self::Gemini => "gemini",
            Self::Cohere => "cohere",
            Self::Embeddings => "embeddings",
            Self::ChatEmbeddings => "chat_embeddings",
            Self::NimEmbeddings => "nim_embeddings",
            Self::TeiEmbed => "tei_embed",
            Self::Rerank => "rerank",
            Self::CohereRerank => "cohere_rerank",
            Self::TeiRerank => "tei_rerank",
            Self::NimRerank => "nim_rerank",
            Self::Raw => "raw",
            Self::Template => "template",
        }
    }

    /// The protocol of this name: our own, or the one `aiperf profile --endpoint-type` uses.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "huggingface_generate" => Self::Tgi,
            "cohere_rankings" => Self::CohereRerank,
            "hf_tei_rankings" => Self::TeiRerank,
            "nim_rankings" => Self::NimRerank,
            _ => Self::ALL.into_iter().find(|api| api.name() == name)?,
        })
    }

    /// Name of the header that carries the API key; the value of `authorization` is a bearer
    /// token.
    #[must_use]
    pub const fn key_header(self) -> &'static str {
        match self {
            Self::Messages => "x-api-key",
            Self::Gemini => "x-goog-api-key",
            _ => "authorization",
        }
    }

    /// Whether the model's name is part of the path.
    #[must_use]
    pub const fn names_model_in_path(self) -> bool {
        matches!(self, Self::Gemini | Self::Triton | Self::Kserve)
    }

    /// Whether its request can ask for an answer of exactly so many tokens.
    #[must_use]
    pub const fn takes_exact_length(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Completions | Self::Llamacpp | Self::Triton | Self::Kserve
        )
    }

    /// Whether its answer can be an event stream.
    #[must_use]
    pub const fn can_stream(self) -> bool {
        !matches!(
            self,
            Self::Kserve
                | Self::Embeddings
                | Self::ChatEmbeddings
                | Self::NimEmbeddings
                | Self::TeiEmbed
                | Self::Rerank
                | Self::CohereRerank
                | Self::TeiRerank
                | Self::NimRerank
        )
    }

    /// Whether its answer is made of tokens; else it is vectors or ranks.
    #[must_use]
    pub const fn makes_tokens(self) -> bool {
        self.can_stream() || matches!(self, Self::Kserve)
    }
}

impl Serialize for Api {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Whether prompts are meant to hit the server's prefix cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Differs from every earlier prompt at position 0.
    Cold,
    /// All but the last tokens are always the same.
    Warm,
}

impl CacheMode {
    /// The name in configuration, records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

/// What the length is that an answer is asked to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthMode {
    /// The server is asked to go on to it, whatever the model would do.
    Exact,
    /// A limit: an answer may be shorter.
    Advisory,
}

impl LengthMode {
    /// The name in records and attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Advisory => "advisory",
        }
    }
}

/// Which connection a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPolicy {
    /// An idle one if there is one.
    Pooled,
    /// Always a new one.
    New,
    /// The one of its session; a session's first request opens it.
    PerSession,
}

impl ConnectionPolicy {
    /// The name in configuration, records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::New => "new",
            Self::PerSession => "per_session",
        }
    }
}

/// Position of a stream in the list of all streams of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// One comparable sequence of requests, known before any of them is due.
#[derive(Debug)]
pub struct Stream {
    /// Its position in the run's list of streams.
    pub id: StreamId,
    /// Position of its target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target.
    pub target: Box<str>,
    /// URL of the endpoint, without path.
    pub endpoint: Box<str>,
    /// Name of the probe.
    pub probe: Box<str>,
    /// Protocol.
    pub api: Api,
    /// Cache mode.
    pub cache: CacheMode,
    /// Connection policy.
    pub connection: ConnectionPolicy,
    /// What the length of an answer is, where one is asked for.
    pub length: LengthMode,
    /// Whether an event stream is asked for.
    pub streaming: bool,
    /// Whether arrivals wait for their predecessors: then response time cannot show omission.
    pub closed_loop: bool,
    /// The model's name, set once, when it is known: at start, or when a server that was not
    /// reachable then has told which one it serves.
    pub model: OnceLock<Box<str>>,
}

impl Stream {
    /// The model's name, or an empty text while it is not known.
    #[must_use]
    pub fn model(&self) -> &str {
        self.model.get().map_or("", |name| name)
    }
}
