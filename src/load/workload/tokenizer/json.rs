//! A `tokenizer.json`, by the library that its format comes from.
//!
//! What the file says about cutting and padding texts is for training and not for counting: it
//! is switched off, since else every long answer would have the same length.

use tokenizers::Tokenizer;

use super::{TokenizerError, told};

/// A tokenizer that adds, cuts and pads nothing.
pub(super) struct Json(Tokenizer);

impl Json {
    pub(super) fn new(bytes: &[u8]) -> Result<Self, TokenizerError> {
        let wrong = |error: tokenizers::Error| TokenizerError::Json(error.to_string());
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(wrong)?;
        tokenizer.with_truncation(None).map_err(wrong)?;
        tokenizer.with_padding(None);
        Ok(Self(tokenizer))
    }

    pub(super) fn count(&self, text: &str) -> Result<u32, TokenizerError> {
        let encoding = self
            .0
            .encode_fast(text, false)
            .map_err(|error| TokenizerError::Text(error.to_string()))?;
        Ok(told(encoding.len()))
    }
}
