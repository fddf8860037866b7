//! Counts the tokens of a text where the server does not, by its tokenizer's file or by words.
//!
//! One count over the whole text: the sum of counts over its pieces is larger, since pieces cut
//! tokens apart. No special tokens are added: a server that begins a prompt with one does not
//! begin an answer with it. Bytes and texts come in as arguments; who reads the files, and when a
//! text is counted, is decided elsewhere, and never while a response is being timed.

mod json;
mod merge;
mod tiktoken;
mod words;

use std::fmt;

use self::json::Json;
use self::tiktoken::Tiktoken;
use crate::measurement::TokenSource;

pub use self::tiktoken::Pattern;

/// Why a tokenizer cannot be used, or a text cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// It is no `tokenizer.json`.
    #[error("no valid `tokenizer.json`: {0}")]
    Json(String),
    /// A line of a file of ranks is wrong.
    #[error("line {line}: {wrong}, wanted a token in base64, a space and its rank")]
    Ranks {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        wrong: String,
    },
    /// The file has no rank for a byte, so that there are texts without tokens.
    #[error("no rank for the byte {0:#04x}, wanted one for each of the 256")]
    NoByte(u8),
    /// A text could not be counted.
    #[error("the text cannot be tokenized: {0}")]
    Text(String),
}

/// Counts tokens. Can be shared by threads.
pub struct Tokenizer(Kind);

enum Kind {
    Json(Box<Json>),
    Tiktoken(Box<Tiktoken>),
    Words,
}

impl Tokenizer {
    /// The tokenizer in the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// If it is none, or of a kind that is not known.
    pub fn json(bytes: &[u8]) -> Result<Self, TokenizerError> {
        Json::new(bytes).map(|json| Self(Kind::Json(Box::new(json))))
    }

    /// The tokenizer in the bytes of a file of tiktoken ranks, which splits texts by `pattern`.
    ///
    /// # Errors
    ///
    /// If a line is wrong, or a byte has no rank.
    pub fn tiktoken(bytes: &[u8], pattern: Pattern) -> Result<Self, TokenizerError> {
        Tiktoken::new(bytes, pattern).map(|tiktoken| Self(Kind::Tiktoken(Box::new(tiktoken))))
    }

    /// An estimate from words and punctuation: see its formula in the source.
    #[must_use]
    pub const fn words() -> Self {
        Self(Kind::Words)
    }

    /// The number of tokens of `text`, no special ones added.
    ///
    /// # Errors
    ///
    /// If the tokenizer cannot express the text.
    pub fn count(&self, text: &str) -> Result<u32, TokenizerError> {
        match &self.0 {
            Kind::Json(json) => json.count(text),
            Kind::Tiktoken(tiktoken) => tiktoken.count(text),
            Kind::Words => Ok(words::count(text)),
        }
    }

    /// What its counts are to be called.
    #[must_use]
    pub const fn source(&self) -> TokenSource {
        match self.0 {
            Kind::Json(_) | Kind::Tiktoken(_) => TokenSource::Tokenizer,
            Kind::Words => TokenSource::Words,
        }
    }
}

impl fmt::Debug for Tokenizer {
    /// Without its vocabulary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Json(_) => "json",
            Kind::Tiktoken(_) => "tiktoken",
            Kind::Words => "words",
        };
        write!(f, "Tokenizer({kind})")
    }
}

/// A number of tokens, no more than can be told.
fn told(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
