//! Texts of rows that have as many tokens by the model's tokenizer as the rows say.
//!
//! Each block is measured where it stands, at the beginning of a prompt or after a word, and ends
//! with a word, so that blocks add up and a block is the same text in every prompt. What a row
//! ends with, a part of a block or what no block covers, is made to fit the whole. Whole blocks
//! are remembered, since most prompts begin with what others began with.

use std::collections::HashMap;
use std::sync::Arc;

use rand::Rng;

use super::super::{Measure, Seeds, Sources, Tokenizer, Writer, Written};
use crate::config::TextStyle;
use crate::load::trace::TraceRow;

/// Bytes of blocks that are remembered.
const MOST_KEPT: usize = 32 << 20;

/// Writes texts of rows.
#[derive(Debug)]
pub(super) struct CountedTexts {
    seed: u64,
    writer: Writer,
    kept: HashMap<Block, String>,
    /// Their bytes.
    weight: usize,
}

/// A whole block where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Block {
    id: u64,
    tokens: u32,
    /// Whether a prompt begins with it.
    is_first: bool,
}

impl CountedTexts {
    pub(super) fn new(seed: u64, tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            seed,
            // Words alone: marks would only make the ends of blocks harder to fit.
            writer: Writer::new(TextStyle::default(), Measure::Exact(tokenizer)),
            kept: HashMap::new(),
            weight: 0,
        }
    }

    /// The text of `row`, of `tokens`, and what it came to.
    pub(super) fn text(
        &mut self,
        (row, tokens): (&TraceRow, u32),
        sources: &mut Sources,
    ) -> Written {
        let mut before = Written {
            text: String::new(),
            tokens: None,
        };
        let mut left = tokens;
        let mut ids = row.blocks.iter().copied();
        let cut = loop {
            match ids.next() {
                Some(id) if left >= row.block_tokens => {
                    let block = Block {
                        id,
                        tokens: row.block_tokens,
                        is_first: before.text.is_empty(),
                    };
                    self.append(&mut before.text, block);
                    left -= row.block_tokens;
                }
                cut => break cut,
            }
        };
        let end = match cut {
            _ if left == 0 => return self.writer.given(before.text),
            Some(id) => self.writer.end_with_block(&before, (self.seed, id), tokens),
            None => {
                let seeds = Seeds {
                    text: sources.seeded.next_u64(),
                    fresh: Some(sources.fresh.next_u64()),
                };
                self.writer.continue_text(&before, tokens, seeds)
            }
        };
        Written {
            text: before.text + &end.text,
            tokens: end.tokens,
        }
    }

    fn append(&mut self, text: &mut String, block: Block) {
        if let Some(kept) = self.kept.get(&block) {
            text.push_str(kept);
            return;
        }
        let of = (self.seed, block.id);
        let written = if block.is_first {
            let nothing = Written {
                text: String::new(),
                tokens: Some(0),
            };
            self.writer.end_with_block(&nothing, of, block.tokens)
        } else {
            self.writer.block(of, block.tokens)
        };
        text.push_str(&written.text);
        if self.weight > MOST_KEPT {
            self.kept.clear();
            self.weight = 0;
        }
        self.weight += written.text.len() + size_of::<(Block, String)>();
        self.kept.insert(block, written.text);
    }
}
