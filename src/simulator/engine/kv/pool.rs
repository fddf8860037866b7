//! Blocks of the KV cache: who holds them, which are free, what is still in them.
//!
//! A block that nobody holds keeps what is in it until it is wanted for something else. Free
//! blocks are taken in the order in which they became free, those that were never used first;
//! that order is the order of eviction. A block that is found again by its hash is taken out of
//! the middle. As in vLLM, equal blocks that were computed twice are both kept, and the older one
//! is found first.
//!
//! Blocks come into being when they are first taken, so a large pool that is not used is small.

use std::collections::HashMap;

/// Number of a block.
pub(super) type BlockId = u32;

/// No block.
const NONE: BlockId = BlockId::MAX;

/// All blocks.
#[derive(Debug)]
pub(super) struct Pool {
    capacity: u32,
    /// Of these, how many must stay free for now.
    withheld: u32,
    /// Those that were ever taken.
    blocks: Vec<Block>,
    /// Of those, how many nobody holds.
    idle: u32,
    /// The idle one that is taken first, and the one that is taken last.
    first: BlockId,
    last: BlockId,
    /// The oldest block with each hash.
    known: HashMap<u64, BlockId>,
}

#[derive(Debug)]
struct Block {
    holders: u32,
    /// What is in it, once it is full.
    hash: Option<u64>,
    /// Neighbours among the idle blocks.
    before: BlockId,
    after: BlockId,
    /// Neighbours among the blocks with the same hash.
    older: BlockId,
    younger: BlockId,
}

impl Pool {
    /// So many blocks, all free and empty. `u32::MAX` are one too many to be numbered, and far
    /// more than could ever be taken.
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity,
            withheld: 0,
            blocks: Vec::new(),
            idle: 0,
            first: NONE,
            last: NONE,
            known: HashMap::new(),
        }
    }

    /// How many blocks there are.
    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many blocks can be taken.
    pub(super) fn free(&self) -> u32 {
        (self.capacity - self.held()).saturating_sub(self.withheld)
    }

    /// How many blocks somebody holds.
    pub(super) fn held(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(NONE) - self.idle
    }

    /// How many blocks must stay free.
    pub(super) const fn withheld(&self) -> u32 {
        self.withheld
    }

    /// Lets so many blocks stay free, or all that are not held if those are fewer.
    pub(super) const fn withhold(&mut self, blocks: u32) {
        self.withheld = blocks;
    }

    /// The block that has this in it.
    pub(super) fn find(&self, hash: u64) -> Option<BlockId> {
        self.known.get(&hash).copied()
    }

    /// Whether nobody holds `id`.
    pub(super) fn is_idle(&self, id: BlockId) -> bool {
        self.block(id).holders == 0
    }

    /// One more holds `id`.
    pub(super) fn hold(&mut self, id: BlockId) {
        if self.is_idle(id) {
            self.unlink(id);
        }
        self.block_mut(id).holders += 1;
    }

    /// Takes a free block for one holder; what was in it is forgotten. `None` if none is free.
    pub(super) fn take(&mut self) -> Option<BlockId> {
        if self.free() == 0 {
            return None;
        }
        let fresh = u32::try_from(self.blocks.len()).unwrap_or(NONE);
        if fresh < self.capacity {
            self.blocks.push(Block {
                holders: 1,
                hash: None,
                before: NONE,
                after: NONE,
                older: NONE,
                younger: NONE,
            });
            return Some(fresh);
        }
        let id = Some(self.first).filter(|first| *first != NONE)?;
        self.unlink(id);
        self.forget(id);
        self.block_mut(id).holders = 1;
        Some(id)
    }

    /// One less holds `id`; it is free once nobody does, and then the last to be taken.
    pub(super) fn release(&mut self, id: BlockId) {
        let block = self.block_mut(id);
        block.holders -= 1;
        if block.holders == 0 {
            self.link_last(id);
        }
    }

    /// `id` is full and has this in it from now on.
    pub(super) fn label(&mut self, id: BlockId, hash: u64) {
        let oldest = *self.known.entry(hash).or_insert(id);
        let block = self.block_mut(id);
        debug_assert!(block.hash.is_none(), "a full block does not change");
        block.hash = Some(hash);
        if oldest != id {
            // Second, so that the oldest stays in front; the order of the others is of no account.
            let second = self.block(oldest).younger;
            self.join_twins(oldest, id);
            self.join_twins(id, second);
        }
    }

    /// Forgets what is in the blocks.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
        for block in &mut self.blocks {
            (block.hash, block.older, block.younger) = (None, NONE, NONE);
        }
    }

    fn forget(&mut self, id: BlockId) {
        let block = self.block_mut(id);
        let Some(hash) = block.hash.take() else {
            return;
        };
        let (older, younger) = (block.older, block.younger);
        (block.older, block.younger) = (NONE, NONE);
        if older != NONE {
            self.join_twins(older, younger);
        } else if younger != NONE {
            self.block_mut(younger).older = NONE;
            self.known.insert(hash, younger);
        } else {
            self.known.remove(&hash);
        }
    }

    fn join_twins(&mut self, older: BlockId, younger: BlockId) {
        self.block_mut(older).younger = younger;
        if younger != NONE {
            self.block_mut(younger).older = older;
        }
    }

    fn link_last(&mut self, id: BlockId) {
        let before = std::mem::replace(&mut self.last, id);
        let block = self.block_mut(id);
        (block.before, block.after) = (before, NONE);
        if before == NONE {
            self.first = id;
        } else {
            self.block_mut(before).after = id;
        }
        self.idle += 1;
    }

    fn unlink(&mut self, id: BlockId) {
        let block = self.block(id);
        let (before, after) = (block.before, block.after);
        if before == NONE {
            self.first = after;
        } else {
            self.block_mut(before).after = after;
        }
        if after == NONE {
            self.last = before;
        } else {
            self.block_mut(after).before = before;
        }
        self.idle -= 1;
    }

    fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id as usize]
    }

    fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id as usize]
    }
}
