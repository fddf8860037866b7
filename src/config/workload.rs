//! What a probe sends.

use crate::measurement::CacheMode;

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadConfig {
    /// Where prompts come from.
    pub source: PromptSource,
    /// Whether prompts are meant to hit the prefix cache.
    pub cache: CacheMode,
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptSource {
    /// Texts of our own making, by token count.
    Synthetic(Synthetic),
}

/// Texts of our own making, by token count.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// Prompt tokens, at least 1.
    pub input_tokens: u32,
    /// Output tokens, at least 1; `None`: as many as the server likes.
    pub output_tokens: Option<u32>,
}

/// What texts of our own making are like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextStyle {
    /// Plain words without any order.
    #[default]
    Words,
    /// Sentences and paragraphs.
    Prose,
    /// Functions of a small programming language.
    Code,
    /// Two people who talk.
    Dialogue,
}

impl TextStyle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Words, Self::Prose, Self::Code, Self::Dialogue];

    /// As it is written in files and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Prose => "prose",
            Self::Code => "code",
            Self::Dialogue => "dialogue",
        }
    }

    /// The style of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }
}

impl WorkloadConfig {
    /// Prompts of `input_tokens`, with answers of `output_tokens`, and nothing else about them.
    #[must_use]
    pub const fn synthetic(
        input_tokens: u32,
        output_tokens: Option<u32>,
        cache: CacheMode,
    ) -> Self {
        Self {
            source: PromptSource::Synthetic(Synthetic {
                input_tokens,
                output_tokens,
            }),
            cache,
        }
    }

    /// Mean prompt and output tokens of a request, as far as they are known in advance.
    #[must_use]
    pub fn mean_tokens(&self) -> (Option<f64>, Option<f64>) {
        match &self.source {
            PromptSource::Synthetic(synthetic) => (
                Some(f64::from(synthetic.input_tokens)),
                synthetic.output_tokens.map(f64::from),
            ),
        }
    }
}
