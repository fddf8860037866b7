//! The unit of a baseline: one (target, endpoint, probe, cache mode, connection policy).

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A protocol an inference server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `OpenAI` chat completions.
    Chat,
}

impl Api {
    /// The name in configuration, records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
        }
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

/// Which connection a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPolicy {
    /// An idle one if there is one.
    Pooled,
    /// Always a new one.
    New,
}

impl ConnectionPolicy {
    /// The name in configuration, records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::New => "new",
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
