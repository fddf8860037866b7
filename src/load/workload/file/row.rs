//! The prompt of a row of a trace: what was sent, where the file keeps it, or a text of the same
//! length that shares as much with the others as the blocks of the row say.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

use super::super::words::WORDS;
use super::super::{Prompt, Sources, Verbatim};
use super::Step;
use super::blocks::append_block;
use crate::load::trace::{Body, TraceRow};

/// Words at the start of a text that make it unlike any other.
const NONCE_WORDS: u32 = 6;
/// Longest prompt, as for those of our own making.
const MOST_TOKENS: u32 = 1_000_000;

/// Makes the prompts of rows.
#[derive(Debug)]
pub struct RowTexts {
    seed: u64,
    sources: Sources,
    output_tokens: Option<u32>,
}

impl RowTexts {
    /// Texts of blocks come from `seed`, others from `sources`; `output_tokens` are asked for
    /// where a row does not say.
    #[must_use]
    pub const fn new(seed: u64, sources: Sources, output_tokens: Option<u32>) -> Self {
        Self {
            seed,
            sources,
            output_tokens,
        }
    }

    /// The turn of `row`, whose ids are those of the file.
    ///
    /// # Errors
    ///
    /// If it says neither what was sent nor how much, in words.
    pub fn step(&mut self, row: &mut TraceRow) -> Result<Step, String> {
        let mut prompt = Prompt {
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens.or(self.output_tokens),
            ..Prompt::default()
        };
        match row.body.take() {
            Some(Body::Text(text)) => prompt.text = text,
            Some(Body::Messages(json)) => {
                prompt.verbatim = Some(Verbatim::Messages(Arc::from(json)));
            }
            Some(Body::Payload(json)) => prompt.verbatim = Some(Verbatim::Body(Arc::from(json))),
            None => {
                let tokens = length(row)?;
                prompt.text = self.text(row, tokens);
                prompt.input_tokens = Some(tokens);
            }
        }
        Ok(Step::first(prompt))
    }

    /// `tokens` words: those of the blocks, and what no block covers is new.
    fn text(&mut self, row: &TraceRow, tokens: u32) -> String {
        let mut text = String::new();
        let mut left = tokens;
        for id in &row.blocks {
            let part = left.min(row.block_tokens);
            append_block(&mut text, (self.seed, *id), part);
            left -= part;
        }
        let nonce = left.min(NONCE_WORDS);
        append(&mut text, nonce, &mut self.sources.fresh);
        append(&mut text, left - nonce, &mut self.sources.seeded);
        text
    }
}

fn append(text: &mut String, words: u32, random: &mut StdRng) {
    for _ in 0..words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(WORDS[random.random_range(0..WORDS.len())]);
    }
}

/// How long the prompt of `row` is.
fn length(row: &TraceRow) -> Result<u32, String> {
    let blocks = u32::try_from(row.blocks.len()).unwrap_or(u32::MAX);
    let tokens = match row.input_tokens {
        Some(tokens) => tokens,
        None if blocks > 0 => blocks.saturating_mul(row.block_tokens),
        None => {
            return Err(
                "input_length: `(nothing)`\n  wanted: a length, blocks, or what was sent"
                    .to_owned(),
            );
        }
    };
    match tokens {
        0 => Err("input_length: `0`\n  wanted: at least one token".to_owned()),
        1..=MOST_TOKENS => Ok(tokens),
        _ => Err(format!(
            "input_length: `{tokens}`\n  wanted: at most {MOST_TOKENS} tokens"
        )),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn texts(fresh: u64) -> RowTexts {
        let sources = Sources {
            seeded: StdRng::seed_from_u64(1),
            fresh: StdRng::seed_from_u64(fresh),
        };
        RowTexts::new(7, sources, Some(9))
    }

    fn row(input_tokens: Option<u32>, blocks: &[u64]) -> TraceRow {
        TraceRow {
            input_tokens,
            blocks: blocks.to_vec(),
            block_tokens: 16,
            ..TraceRow::default()
        }
    }

    fn words(texts: &mut RowTexts, mut row: TraceRow) -> Vec<String> {
        let step = texts.step(&mut row).expect("it has a length");
        step.prompt.text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rows_share_as_many_words_as_they_have_leading_ids_in_common() {
        let mut texts = texts(2);
        let one = words(&mut texts, row(Some(40), &[1, 2, 3]));
        let other = words(&mut texts, row(Some(48), &[1, 2, 4]));
        assert_eq!((one.len(), other.len()), (40, 48));
        assert_eq!(one[..32], other[..32]);
        assert_ne!(one[32..36], other[32..36]);
        let longer = words(&mut texts, row(Some(50), &[1, 2, 3, 5]));
        assert_eq!(one, longer[..40], "the last partial block begins the whole");
    }

    #[test]
    fn what_no_block_covers_is_new_each_time() {
        let mut texts = texts(2);
        let one = words(&mut texts, row(Some(40), &[1]));
        let other = words(&mut texts, row(Some(40), &[1]));
        assert_eq!(one[..16], other[..16]);
        assert_ne!(one[16..22], other[16..22]);
        let cold = words(&mut texts, row(Some(40), &[]));
        let colder = words(&mut texts, row(Some(40), &[]));
        assert_ne!(cold[..6], colder[..6]);
        assert_eq!(cold.len(), 40);
        assert_eq!(words(&mut texts, row(None, &[1, 2])).len(), 32);
    }

    #[test]
    fn what_was_sent_is_sent_again() {
        let mut texts = texts(2);
        let mut sent = row(Some(3), &[]);
        sent.body = Some(Body::Text("as it was".to_owned()));
        sent.output_tokens = Some(4);
        let prompt = texts.step(&mut sent).expect("good").prompt;
        assert_eq!(prompt.text, "as it was");
        assert_eq!(
            (prompt.input_tokens, prompt.output_tokens),
            (Some(3), Some(4))
        );
        let error = texts
            .step(&mut row(None, &[]))
            .expect_err("nothing is known");
        assert!(error.starts_with("input_length: `(nothing)`"), "{error}");
    }
}
