//! The KV cache: blocks of a fixed number of tokens, and a prefix cache made of those that are
//! free and still full of something.
//!
//! Works as vLLM's does. A sequence holds the blocks of its tokens, some of them shared with
//! others that begin alike. A block can be found from the moment it is set aside for tokens that
//! fill it. When a sequence lets go of its blocks the last one becomes free first, so that the end
//! of a prompt is evicted before its beginning.
//!
//! Invariant: every block is held or free. Costs are in blocks, not in tokens.
//!
//! Not here: who may run, and who must give way (that is the engine).

mod chain;
mod pool;
#[cfg(test)]
mod tests;

pub(super) use self::chain::Chain;
use self::pool::{BlockId, Pool};

/// All blocks and who finds what in them.
#[derive(Debug)]
pub(super) struct KvCache {
    pool: Pool,
    block_tokens: u32,
    /// Whether a block that is full can be found.
    reuses: bool,
}

/// The blocks of one sequence, in order. They have to be given back.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub(super) struct Held {
    blocks: Vec<BlockId>,
    /// Leading ones whose contents are known to the cache.
    labelled: usize,
}

impl KvCache {
    /// `blocks` empty blocks of `block_tokens` tokens each, at least one of each.
    pub(super) fn new(blocks: u32, block_tokens: u32, reuses: bool) -> Self {
        Self {
            pool: Pool::new(blocks.max(1)),
            block_tokens: block_tokens.max(1),
            reuses,
        }
    }

    /// Share of the blocks that are held, in [0, 1].
    pub(super) fn usage(&self) -> f64 {
        (f64::from(self.pool.held()) / f64::from(self.blocks())).min(1.0)
    }

    /// Blocks that may be held, at least one.
    pub(super) fn blocks(&self) -> u32 {
        (self.pool.capacity() - self.pool.withheld()).max(1)
    }

    /// Lets only this share of all blocks be held from now on.
    pub(super) fn shrink(&mut self, share: f64) {
        let all = f64::from(self.pool.capacity());
        self.pool
            .withhold(whole_blocks(all - (all * share).max(1.0)));
    }

    /// Whether sequences hold more than they may.
    pub(super) fn is_overfull(&self) -> bool {
        self.pool.held() > self.blocks()
    }

    /// Whether full blocks can be found from now on; if not, all that could be is forgotten.
    pub(super) fn set_reuse(&mut self, reuses: bool) {
        if self.reuses && !reuses {
            self.pool.forget_all();
        }
        self.reuses = reuses;
    }

    /// No tokens yet, for a sequence whose prompt has this salt.
    pub(super) fn chain(&self, salt: Option<u64>) -> Chain {
        Chain::new(self.block_tokens, salt)
    }

    /// Sets blocks aside for all tokens of `chain`, and says how many of those tokens were found;
    /// `None`, and nothing changes, if there are not enough free blocks.
    pub(super) fn admit(&mut self, chain: &Chain) -> Option<(Held, u32)> {
        let found = self.find(chain);
        let idle = found.iter().filter(|id| self.pool.is_idle(**id)).count();
        let fresh = chain.blocks() - found.len();
        if idle + fresh > self.pool.free() as usize {
            return None;
        }
        for id in &found {
            self.pool.hold(*id);
        }
        let cached = found.len() * self.block_tokens as usize;
        let mut held = Held {
            labelled: found.len(),
            blocks: found,
        };
        for _ in 0..fresh {
            held.blocks.extend(self.pool.take());
        }
        self.label(&mut held, chain);
        Some((held, u32::try_from(cached).unwrap_or(u32::MAX)))
    }

    /// Sees to it that `held` has blocks for all tokens of `chain`, which has grown by one;
    /// `false`, and nothing changes, if no block is free.
    pub(super) fn grow(&mut self, held: &mut Held, chain: &Chain) -> bool {
        if held.blocks.len() < chain.blocks() {
            match self.pool.take() {
                Some(id) => held.blocks.push(id),
                None => return false,
            }
        }
        self.label(held, chain);
        true
    }

    /// Takes back the blocks of a sequence, the last one first.
    pub(super) fn release(&mut self, held: Held) {
        for id in held.blocks.into_iter().rev() {
            self.pool.release(id);
        }
    }

    /// Forgets all that could be found. Does nothing while a sequence holds blocks, as vLLM does.
    pub(super) fn reset_prefixes(&mut self) -> bool {
        let unused = self.pool.held() == 0;
        if unused {
            self.pool.forget_all();
        }
        unused
    }

    /// The leading blocks of `chain` that are there.
    fn find(&self, chain: &Chain) -> Vec<BlockId> {
        if !self.reuses {
            return Vec::new();
        }
        let hashes = chain.reusable().iter();
        hashes.map_while(|hash| self.pool.find(*hash)).collect()
    }

    /// Lets the full blocks of `held` be found.
    fn label(&mut self, held: &mut Held, chain: &Chain) {
        if !self.reuses {
            return;
        }
        let full = chain.full();
        let new = held.blocks.iter().zip(full).skip(held.labelled);
        for (id, hash) in new {
            self.pool.label(*id, *hash);
        }
        held.labelled = full.len();
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float is clamped to the range of the number"
)]
const fn whole_blocks(blocks: f64) -> u32 {
    blocks as u32
}
