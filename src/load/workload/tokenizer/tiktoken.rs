//! Files of tiktoken ranks: a line is a token in base64, a space and its rank.
//!
//! The file holds no word of how texts are split before their bytes are merged; that goes with
//! the name of the encoding. Special tokens are not in the file either: their spellings are
//! counted as the plain text they are.

use base64_line::decode;
use tokenizers::utils::SysRegex;

use super::merge::{self, Ranks};
use super::{TokenizerError, told};

/// How a text is split into pieces that are tokenized each for itself, by the encoding's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// `r50k_base`, `p50k_base` and GPT-2.
    R50k,
    /// `cl100k_base`: GPT-4 and many models after it.
    Cl100k,
    /// `o200k_base`: GPT-4o and after.
    O200k,
}

impl Pattern {
    /// The pattern that goes with a file of this name; that of `cl100k_base` if it says nothing.
    #[must_use]
    pub fn of_file(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if name.contains("o200k") {
            Self::O200k
        } else if ["p50k", "r50k", "gpt2"]
            .iter()
            .any(|old| name.contains(old))
        {
            Self::R50k
        } else {
            Self::Cl100k
        }
    }

    /// As tiktoken's `openai_public.py` (0.12) gives it, without possessive quantifiers, which
    /// change the speed and not the pieces.
    const fn regex(self) -> &'static str {
        match self {
            Self::R50k => {
                r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
            }
            Self::Cl100k => concat!(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
                r"|[^\r\n\p{L}\p{N}]?\p{L}+",
                r"|\p{N}{1,3}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
            Self::O200k => concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|\p{N}{1,3}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
        }
    }
}

/// Ranks, and the pattern that splits texts.
pub(super) struct Tiktoken {
    ranks: Ranks,
    split: SysRegex,
}

impl Tiktoken {
    pub(super) fn new(bytes: &[u8], pattern: Pattern) -> Result<Self, TokenizerError> {
        let mut ranks = Ranks::new();
        for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let text = text.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let (token, rank) =
                entry(text).map_err(|wrong| TokenizerError::Ranks { line, wrong })?;
            if ranks.insert(token, rank).is_some() {
                let wrong = "a token that came before".to_owned();
                return Err(TokenizerError::Ranks { line, wrong });
            }
        }
        if let Some(byte) = (0..=u8::MAX).find(|byte| !ranks.contains_key(&[*byte][..])) {
            return Err(TokenizerError::NoByte(byte));
        }
        let split = SysRegex::new(pattern.regex())
            .expect("the patterns are constants, and a test reads each");
        Ok(Self { ranks, split })
    }

    pub(super) fn count(&self, text: &str) -> Result<u32, TokenizerError> {
        let mut tokens = 0;
        let mut done = 0;
        for (start, end) in self.split.find_iter(text) {
            // The patterns leave nothing out.
            tokens += self.piece(&text[done..start]) + self.piece(&text[start..end]);
            done = end;
        }
        if done < text.len() {
            let message = format!("the pattern gave up at byte {done} of {}", text.len());
            return Err(TokenizerError::Text(message));
        }
        Ok(told(tokens))
    }

    fn piece(&self, piece: &str) -> usize {
        merge::count(piece.as_bytes(), &self.ranks)
    }
}

/// One line, without its end.
fn entry(line: &[u8]) -> Result<(Box<[u8]>, u32), String> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(token), Some(rank), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!("`{}`", shown(line)));
    };
    let bytes = decode(token).ok_or_else(|| format!("`{}` is no base64", shown(token)))?;
    let rank = std::str::from_utf8(rank)
        .ok()
        .and_then(|rank| rank.parse().ok())
        .ok_or_else(|| format!("the rank is `{}`", shown(rank)))?;
    Ok((bytes.into(), rank))
}

/// The beginning of what stands in a line, for a message.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(60).collect()
}

/// Base64 of one token, with its padding (RFC 4648).
mod base64_line {
    /// The bytes that `text` stands for; `None` if it is empty or no base64.
    pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
        if text.is_empty() || !text.len().is_multiple_of(4) {
            return None;
        }
        let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
        let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
        for (place, group) in text.chunks(4).enumerate() {
            let is_last = place + 1 == text.len() / 4;
            let mut bits = 0_u32;
            for (digit, byte) in group.iter().enumerate() {
                let is_padding = is_last && digit >= 4 - padding.min(2);
                bits = bits << 6 | if is_padding { 0 } else { value(*byte)? };
            }
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        bytes.truncate(bytes.len() - padding);
        (padding <= 2).then_some(bytes)
    }

    fn value(digit: u8) -> Option<u32> {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        Some(u32::from(value))
    }
}
