//! What is sent: prompts of a known length, made of words of our own list.
//!
//! Token counts are estimates at a fixed 1.3 tokens a word; the record holds what was asked
//! for beside what the server counted. A cold prompt differs from every earlier one at
//! position 0, also from those of earlier runs with the same seed, since its first words come
//! from a source that is not seeded. A warm prompt is the same each time but for its end.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `load/workload` | `Workload`: gives `Prompt` | choose what is sent, with known token counts | know time or wire format |

mod file;
mod prompt;
mod tokenizer;
mod words;

use rand::RngExt;
use rand::rngs::StdRng;

use self::words::WORDS;
use crate::config::{PromptSource, Synthetic, WorkloadConfig};
use crate::measurement::CacheMode;

pub use self::file::{
    After, Carry, Entries, Gather, Joined, Pool, RowTexts, Script, Step, block_text,
};
pub use self::prompt::{Media, Message, Prompt, Role, Verbatim};
pub use self::tokenizer::{Pattern, Tokenizer, TokenizerError};

/// Tokens per word that prompts are sized by.
const TOKENS_PER_WORD: f64 = 1.3;
/// Words at the start of a cold prompt that make it unlike any other: 2^48 beginnings.
const NONCE_WORDS: usize = 6;
/// Tokens at the end of a warm prompt that change from request to request.
const WARM_TAIL_TOKENS: u32 = 16;

/// Where a workload's randomness comes from.
#[derive(Debug)]
pub struct Sources {
    /// Seeded: the words of every prompt.
    pub seeded: StdRng,
    /// Not seeded: the beginning of cold prompts.
    pub fresh: StdRng,
}

/// An endless supply of prompts.
#[derive(Debug)]
pub struct Workload {
    synthetic: Synthetic,
    cache: CacheMode,
    sources: Sources,
    /// The part of every warm prompt that stays the same.
    prefix: String,
    /// Words after the prefix or the nonce.
    tail_words: usize,
}

impl Workload {
    /// Prompts as `config` describes them.
    ///
    /// # Panics
    ///
    /// If they come from a file: those are read, and become [`Script`]s.
    #[must_use]
    pub fn new(config: &WorkloadConfig, mut sources: Sources) -> Self {
        let PromptSource::Synthetic(synthetic) = config.source.clone() else {
            unreachable!("the prompts of a file are read, not made");
        };
        let words = words_for(synthetic.input_tokens);
        let fixed = match config.cache {
            CacheMode::Cold => 0,
            CacheMode::Warm => words.saturating_sub(words_for(WARM_TAIL_TOKENS)),
        };
        let mut prefix = String::new();
        append_words(&mut prefix, fixed, &mut sources.seeded);
        Self {
            synthetic,
            cache: config.cache,
            sources,
            prefix,
            tail_words: words - fixed,
        }
    }

    /// The next prompt.
    pub fn prompt(&mut self) -> Prompt {
        let mut text = self.prefix.clone();
        let nonce = match self.cache {
            CacheMode::Cold => NONCE_WORDS.min(self.tail_words),
            CacheMode::Warm => 0,
        };
        append_words(&mut text, nonce, &mut self.sources.fresh);
        append_words(&mut text, self.tail_words - nonce, &mut self.sources.seeded);
        Prompt {
            text,
            input_tokens: Some(self.synthetic.input_tokens),
            output_tokens: self.synthetic.output_tokens,
            ..Prompt::default()
        }
    }
}

/// Words that make about `tokens` tokens, at least one.
fn words_for(tokens: u32) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rounded, positive number below 2^32"
    )]
    let words = (f64::from(tokens) / TOKENS_PER_WORD).round() as usize;
    words.max(1)
}

fn append_words(text: &mut String, count: usize, random: &mut StdRng) {
    for _ in 0..count {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn workload(input_tokens: u32, cache: CacheMode, fresh: u64) -> Workload {
        let config = WorkloadConfig::synthetic(input_tokens, Some(8), cache);
        let sources = Sources {
            seeded: StdRng::seed_from_u64(1),
            fresh: StdRng::seed_from_u64(fresh),
        };
        Workload::new(&config, sources)
    }

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    #[test]
    fn words_are_distinct() {
        let mut sorted = WORDS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 256);
    }

    #[test]
    fn length_follows_the_tokens_asked_for() {
        for (tokens, count) in [(1, 1), (13, 10), (128, 98), (4096, 3151)] {
            let prompt = workload(tokens, CacheMode::Cold, 2).prompt();
            assert_eq!(words(&prompt.text).len(), count, "{tokens} tokens");
            assert_eq!(prompt.input_tokens, Some(tokens));
        }
    }

    #[test]
    fn cold_prompts_differ_at_the_start_also_between_runs_of_one_seed() {
        let (one, other) = (
            workload(128, CacheMode::Cold, 10).prompt().text,
            workload(128, CacheMode::Cold, 11).prompt().text,
        );
        assert_ne!(words(&one)[..6], words(&other)[..6]);
        assert_eq!(
            words(&one)[6..],
            words(&other)[6..],
            "the seed decides the rest"
        );
    }

    #[test]
    fn warm_prompts_share_all_but_the_last_sixteen_tokens() {
        let mut warm = workload(128, CacheMode::Warm, 10);
        let (one, other) = (warm.prompt().text, warm.prompt().text);
        assert_eq!(words(&one)[..86], words(&other)[..86]);
        assert_ne!(words(&one)[86..], words(&other)[86..]);
        assert_eq!(words(&one).len(), 98);
    }
}
