//! What a probe sends.

use super::PromptFile;
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
    /// A data set or a trace.
    File(PromptFile),
}

/// Texts of our own making, by token count.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// Prompt tokens, at least 1.
    pub input_tokens: u32,
    /// Output tokens, at least 1; `None`: as many as the server likes.
    pub output_tokens: Option<u32>,
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

    /// The file that prompts come from, if one does.
    #[must_use]
    pub const fn file(&self) -> Option<&PromptFile> {
        match &self.source {
            PromptSource::File(file) => Some(file),
            PromptSource::Synthetic(_) => None,
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
            PromptSource::File(_) => (None, None),
        }
    }
}
