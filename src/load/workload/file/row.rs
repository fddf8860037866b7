//! The prompt of a row of a trace: what was sent, where the file keeps it, or a text of the same
//! length that shares as much with the others as the blocks of the row say.

use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

use super::super::words::WORDS;
use super::super::{Measure, Prompt, Sources, Verbatim, Written};
use super::Step;
use super::blocks::append_block;
use super::counted::CountedTexts;
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
    /// Where a word is not taken for a token.
    counted: Option<CountedTexts>,
}

impl RowTexts {
    /// Texts of blocks come from `seed`, others from `sources`; both have their length by
    /// `measure`. `output_tokens` are asked for where a row does not say.
    #[must_use]
    pub fn new(
        seed: u64,
        sources: Sources,
        (measure, output_tokens): (Measure, Option<u32>),
    ) -> Self {
        let counted = match measure {
            Measure::Units { .. } => None,
            Measure::Exact(tokenizer) => Some(CountedTexts::new(seed, tokenizer)),
        };
        Self {
            seed,
            sources,
            output_tokens,
            counted,
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
                let written = match &mut self.counted {
                    Some(counted) => counted.text((row, tokens), &mut self.sources),
                    None => self.words(row, tokens),
                };
                prompt.text = written.text;
                prompt.input_tokens = written.tokens;
            }
        }
        Ok(Step::first(prompt))
    }

    /// `tokens` words: those of the blocks, and what no block covers is new.
    fn words(&mut self, row: &TraceRow, tokens: u32) -> Written {
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
        Written {
            text,
            tokens: Some(tokens),
        }
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
    use crate::load::workload::Tokenizer;

    fn texts(fresh: u64) -> RowTexts {
        by(Measure::default(), fresh)
    }

    fn by(measure: Measure, fresh: u64) -> RowTexts {
        let sources = Sources {
            seeded: StdRng::seed_from_u64(1),
            fresh: StdRng::seed_from_u64(fresh),
        };
        RowTexts::new(7, sources, (measure, Some(9)))
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

    /// Some letters and `the`; what it does not know is no token at all.
    const TINY: &[u8] = include_bytes!("../../../../tests/fixtures/tokenizer/tiny.json");

    #[test]
    fn a_tokenizer_makes_prompts_exact_and_keeps_what_they_share() {
        let tokenizer = Arc::new(Tokenizer::json(TINY).expect("the fixture is valid"));
        let mut texts = by(Measure::Exact(Arc::clone(&tokenizer)), 2);
        let mut text = |input, blocks: &[u64]| {
            let step = texts.step(&mut row(input, blocks)).expect("a length");
            assert_eq!(step.prompt.input_tokens, input, "{blocks:?}");
            assert_eq!(
                tokenizer.count(&step.prompt.text),
                Ok(input.expect("given"))
            );
            step.prompt.text
        };
        let one = text(Some(48), &[1, 2, 3]);
        let other = text(Some(48), &[1, 2, 4]);
        assert_ne!(one, other);
        let shared = common(&one, &other);
        assert_eq!(tokenizer.count(shared), Ok(32), "{shared}");
        let longer = text(Some(60), &[1, 2, 3, 5]);
        assert!(longer.starts_with(&format!("{one} ")), "{one}\n{longer}");
        // Cut short, the third block is the same but for how it ends.
        let cut = text(Some(42), &[1, 2, 3]);
        let shared = tokenizer.count(common(&one, &cut)).expect("a text");
        assert!((40..=42).contains(&shared), "{shared}\n{one}\n{cut}");
        let uncovered = [text(Some(40), &[1]), text(Some(40), &[1])];
        let shared = common(&uncovered[0], &uncovered[1]);
        assert_eq!(tokenizer.count(shared), Ok(16), "{shared}");
        text(Some(1), &[9]);
        text(Some(200), &[]);
        // The first block of one prompt is a later one of another.
        text(Some(48), &[3, 2, 1]);
    }

    /// The whole words with which both begin.
    fn common<'t>(one: &'t str, other: &str) -> &'t str {
        let same = one.bytes().zip(other.bytes());
        let length = same.take_while(|(one, other)| one == other).count();
        one[..length]
            .rsplit_once(' ')
            .map_or("", |(words, _)| words)
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
