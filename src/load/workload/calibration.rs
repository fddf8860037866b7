//! How many tokens a word has for one server, found from what it counted in two prompts.
//!
//! A server counts what it wraps around a prompt too. Two prompts of different length tell that
//! apart: the longer one has as many tokens more as its further words have.

use super::Prompt;

/// Words of the two prompts that a server is asked to count.
///
/// A text of a thousand words has the mixture of words that others have, within a few percent.
pub(super) const WORDS: [u32; 2] = [32, 1_056];
/// Tokens of a word that a tokenizer of text can have.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.2..=20.0;

/// How a server counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Tokens of one word, on average.
    pub tokens_per_word: f64,
    /// Tokens around the user's message.
    pub around: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            tokens_per_word: 1.0,
            around: 0.0,
        }
    }
}

impl Calibration {
    /// What `counted`, the tokens of the two `prompts` as the server counted them, says.
    ///
    /// # Errors
    ///
    /// If no tokenizer of text counts like that; in words.
    pub fn found(prompts: &[Prompt; 2], counted: [u32; 2]) -> Result<Self, String> {
        let words = |prompt: &Prompt| f64::from(prompt.input_tokens.unwrap_or_default());
        let [less, more] = counted.map(f64::from);
        let [few, many] = [words(&prompts[0]), words(&prompts[1])];
        let tokens_per_word = (more - less) / (many - few);
        if !POSSIBLE.contains(&tokens_per_word) {
            return Err(format!(
                "it counted {less} tokens for {few} words and {more} for {many}"
            ));
        }
        Ok(Self {
            tokens_per_word,
            around: (less - tokens_per_word * few).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(counted: [u32; 2]) -> Result<Calibration, String> {
        let prompts = WORDS.map(|words| Prompt {
            input_tokens: Some(words),
            ..Prompt::default()
        });
        Calibration::found(&prompts, counted)
    }

    #[test]
    fn what_stands_around_a_prompt_is_no_part_of_a_word() {
        let found = found([40 + 12, 1_320 + 12]).expect("possible");
        assert!((found.tokens_per_word - 1.25).abs() < 1e-12);
        assert!((found.around - 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_count_that_does_not_grow_says_nothing() {
        for counted in [[100, 100], [100, 20], [0, 0], [1, 4_000_000]] {
            found(counted).expect_err("impossible");
        }
    }
}
