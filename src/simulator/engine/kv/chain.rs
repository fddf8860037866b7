//! The tokens of one sequence as a prefix cache sees them: one hash for each full block, which
//! stands for the block and everything before it.

use crate::simulator::tokens::mix;

/// The beginning of a chain without a salt.
const START: u64 = 0x746f_6b65_6e73;

/// A sequence's tokens, as hashes of its full blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::simulator::engine) struct Chain {
    block_tokens: u32,
    tokens: u32,
    /// Of all tokens so far.
    hash: u64,
    /// `hash` as it was at the end of each full block.
    full: Vec<u64>,
}

impl Chain {
    /// No tokens yet; chains with different salts have nothing in common.
    pub(in crate::simulator::engine) fn new(block_tokens: u32, salt: Option<u64>) -> Self {
        Self {
            block_tokens: block_tokens.max(1),
            tokens: 0,
            hash: salt.map_or(START, |salt| mix(START ^ salt)),
            full: Vec::new(),
        }
    }

    /// Puts a token behind the others.
    pub(in crate::simulator::engine) fn push(&mut self, token: u64) {
        self.hash = mix(self.hash ^ token);
        self.tokens += 1;
        if self.tokens.is_multiple_of(self.block_tokens) {
            self.full.push(self.hash);
        }
    }

    /// How many tokens it has.
    pub(in crate::simulator::engine) const fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Blocks that hold its tokens, the last of which may not be full.
    pub(super) const fn blocks(&self) -> usize {
        self.tokens.div_ceil(self.block_tokens) as usize
    }

    /// Hash of each full block.
    pub(super) fn full(&self) -> &[u64] {
        &self.full
    }

    /// Hashes of those blocks that may come from a cache: full ones, but never with the last
    /// token, which has to be computed to know what follows it.
    pub(super) fn reusable(&self) -> &[u64] {
        let most = self.tokens.saturating_sub(1) / self.block_tokens;
        &self.full[..most as usize]
    }
}
