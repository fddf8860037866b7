//! What a probe sends.

use std::time::Duration;

use super::{Lengths, PromptFile, SizePairs};
use crate::measurement::{CacheMode, KnownKind};

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadConfig {
    /// Where prompts come from.
    pub source: PromptSource,
    /// Which cache modes there are requests of.
    pub cache: CacheModes,
    /// Whether each cold prompt has a `cache_salt` of its own, and all warm ones of a run the same.
    pub cache_salt: bool,
}

/// Which cache modes there are requests of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheModes {
    /// One.
    Only(CacheMode),
    /// Both: each cold prompt is followed by a warm one to the same address, equal but for its
    /// end.
    Paired,
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptSource {
    /// Texts of our own making, by token count.
    Synthetic(Box<Synthetic>),
    /// Questions of which the answer is known.
    Known(KnownAnswers),
    /// A data set or a trace.
    File(PromptFile),
}

/// Questions of which the answer is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAnswers {
    /// Which there are, each equally often; at least one.
    pub kinds: Vec<KnownKind>,
    /// Most output tokens.
    pub output_tokens: u32,
}

impl Default for KnownAnswers {
    /// All of them, with room for a sentence around the answer.
    fn default() -> Self {
        Self {
            kinds: KnownKind::ALL.to_vec(),
            output_tokens: 64,
        }
    }
}

/// Texts of our own making, by token count.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// Tokens of the user's message, and of the answer.
    pub sizes: Sizes,
    /// What the text is like.
    pub style: TextStyle,
    /// How its tokens are counted.
    pub count: Counting,
    /// Instructions that all prompts share, before everything else.
    pub system: Option<SystemPrompt>,
    /// Beginnings of the user's message, one of which each prompt has.
    pub prefixes: Option<PrefixPool>,
    /// Tokens of a text of each session's own, before the user's message.
    pub context_tokens: Option<u32>,
    /// Pictures beside the text.
    pub images: Option<Images>,
    /// Sounds beside the text.
    pub audio: Option<Audio>,
    /// Tools that the model may call, so many; 0: none.
    pub tools: u32,
}

/// Tokens of the user's message and of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// Each by itself.
    Apart {
        /// Of the message.
        input: Lengths,
        /// Of the answer; `None`: as many as the server likes.
        output: Option<Lengths>,
    },
    /// Both together.
    Pairs(SizePairs),
}

impl Sizes {
    /// No user's message has more tokens.
    #[must_use]
    pub fn most_input(&self) -> u32 {
        match self {
            Self::Apart { input, .. } => input.most(),
            Self::Pairs(pairs) => {
                let most = pairs.pairs().iter().map(|pair| pair.input.most());
                most.max().unwrap_or(1)
            }
        }
    }
}

/// How the tokens of a text are counted before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// With the target's tokenizer if it has one in a file, else by words.
    #[default]
    Auto,
    /// A word or a mark is a token.
    Words,
    /// With the target's tokenizer, exactly.
    Tokenizer,
    /// By words, with the tokens of a word as the server counted them in a few requests at the
    /// start.
    Server,
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

/// Instructions that all prompts share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemPrompt {
    /// Made, of so many tokens.
    Tokens(u32),
    /// Given.
    Text(String),
}

/// Beginnings of the user's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixPool {
    /// How many there are, at least 1.
    pub count: u32,
    /// Tokens of each, at least 1.
    pub tokens: u32,
}

/// Pictures beside the text of each prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Images {
    /// How many, at least 1.
    pub count: u32,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
}

/// Sounds beside the text of each prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audio {
    /// How many, at least 1.
    pub count: u32,
    /// Length of each.
    pub length: Duration,
}

impl Synthetic {
    /// Texts of these sizes and nothing else.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            style: TextStyle::default(),
            count: Counting::default(),
            system: None,
            prefixes: None,
            context_tokens: None,
            images: None,
            audio: None,
            tools: 0,
        }
    }

    /// Tokens before the user's message that are the same for many prompts, as far as they are
    /// known.
    #[must_use]
    pub fn shared_tokens(&self) -> u32 {
        let system = match self.system {
            Some(SystemPrompt::Tokens(tokens)) => tokens,
            _ => 0,
        };
        let prefix = self.prefixes.map_or(0, |pool| pool.tokens);
        system
            .saturating_add(prefix)
            .saturating_add(self.context_tokens.unwrap_or(0))
    }
}

impl WorkloadConfig {
    /// Prompts of `input_tokens`, with answers of `output_tokens`, and nothing else about them.
    #[must_use]
    pub fn synthetic(input_tokens: u32, output_tokens: Option<u32>, cache: CacheMode) -> Self {
        let sizes = Sizes::Apart {
            input: Lengths::Fixed(input_tokens),
            output: output_tokens.map(Lengths::Fixed),
        };
        Self {
            source: PromptSource::Synthetic(Box::new(Synthetic::new(sizes))),
            cache: CacheModes::Only(cache),
            cache_salt: false,
        }
    }

    /// Whether a prompt depends on the session that it is for.
    #[must_use]
    pub const fn has_contexts(&self) -> bool {
        match &self.source {
            PromptSource::Synthetic(synthetic) => synthetic.context_tokens.is_some(),
            PromptSource::File(_) | PromptSource::Known(_) => false,
        }
    }

    /// The file that prompts come from, if one does.
    #[must_use]
    pub const fn file(&self) -> Option<&PromptFile> {
        match &self.source {
            PromptSource::File(file) => Some(file),
            PromptSource::Synthetic(_) | PromptSource::Known(_) => None,
        }
    }

    /// Whether the answers are known.
    #[must_use]
    pub const fn knows_answers(&self) -> bool {
        matches!(self.source, PromptSource::Known(_))
    }

    /// Mean prompt and output tokens of a request, as far as they are known in advance.
    #[must_use]
    pub fn mean_tokens(&self) -> (Option<f64>, Option<f64>) {
        let PromptSource::Synthetic(synthetic) = &self.source else {
            return (None, None);
        };
        let (input, output) = match &synthetic.sizes {
            Sizes::Apart { input, output } => (input.mean(), output.as_ref().map(Lengths::mean)),
            Sizes::Pairs(pairs) => {
                let (input, output) = pairs.mean();
                (input, Some(output))
            }
        };
        (Some(input + f64::from(synthetic.shared_tokens())), output)
    }
}

impl CacheModes {
    /// Every mode that there are requests of.
    #[must_use]
    pub const fn all(self) -> &'static [CacheMode] {
        match self {
            Self::Only(CacheMode::Cold) => &[CacheMode::Cold],
            Self::Only(CacheMode::Warm) => &[CacheMode::Warm],
            Self::Paired => &[CacheMode::Cold, CacheMode::Warm],
        }
    }
}
