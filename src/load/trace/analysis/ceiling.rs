//! How much of the prompts a prefix cache could serve at most.
//!
//! As an inference server's cache does, only the blocks at the beginning of a prompt count, up to
//! the first that is not there; only whole blocks are kept; and the last token is always
//! computed. Requests take no time here, and blocks that were generated are not kept, since a
//! trace has ids of prompts only. So it is a ceiling for what a server can reach with these
//! prompts, and what it reaches if answers are not reused and nothing runs at once. In a cache
//! with a limit, parts of blocks and answers take room all the same, as they do in a server.
//!
//! Beyond the limit of the set a part of all blocks stands for the whole. Ids are chained: a
//! block that was seen has had everything before it seen too, so the leading blocks of a prompt
//! that were seen are all of its blocks that were seen, and a part of the blocks shows a part of
//! the hits. The error comes from a jackknife over 64 groups of blocks.

use serde::Serialize;

use super::block_set::BlockSet;
use super::lru::Lru;
use crate::load::trace::hash::{self, Sampling};
use crate::load::trace::row::{BlockScope, TraceRow};

/// Size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSize {
    /// So many blocks.
    Blocks(u64),
    /// As many blocks as hold so many tokens.
    Tokens(u64),
}

/// A number with what it may be off by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Half the width of its 95 % interval; absent if it is exact.
    pub error: Option<f64>,
}

/// What a prefix cache could serve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// Blocks that the cache holds; absent if it has no limit.
    pub cache_blocks: Option<u64>,
    /// Ids of blocks in all rows.
    pub blocks: u64,
    /// Different blocks among them; absent for a cache with a limit.
    pub distinct_blocks: Option<Estimate>,
    /// Prompt tokens that it serves as a share of all prompt tokens of rows with ids: what a
    /// server reports as cached tokens. Whole blocks only, and never the last token.
    pub token_share: Option<Estimate>,
    /// Leading blocks that were seen as a share of all blocks, part blocks included, as `AIPerf`
    /// counts; absent for a cache with a limit.
    pub block_share: Option<Estimate>,
    /// Mean over rows of each row's share of blocks; absent if sampled, and with a limit.
    pub mean_block_share: Option<f64>,
    /// One in how many blocks was looked at; 1 if all were.
    pub sampled_one_in: u64,
}

const GROUPS: usize = 64;

/// References to blocks and what they hit: those that were all counted, and those of a sample by
/// groups of blocks.
#[derive(Debug)]
struct Counts {
    all: Tally,
    groups: [Tally; GROUPS],
    blocks: u64,
    input_tokens: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    references: f64,
    hits: f64,
    tokens: f64,
}

impl Counts {
    fn new() -> Self {
        Self {
            all: Tally::default(),
            groups: [Tally::default(); GROUPS],
            blocks: 0,
            input_tokens: 0,
        }
    }

    fn row(&mut self, row: &TraceRow) {
        self.blocks += row.blocks.len() as u64;
        let of_blocks = || row.blocks.len() as u64 * u64::from(row.block_tokens);
        self.input_tokens += row.input_tokens.map_or_else(of_blocks, u64::from);
    }

    /// Where a reference to the block is counted.
    fn tally(&mut self, hash: u64, sampling: Sampling) -> &mut Tally {
        if sampling.halvings == 0 {
            &mut self.all
        } else {
            &mut self.groups[(hash::mix(hash) >> 34) as usize & (GROUPS - 1)]
        }
    }

    /// Hits of `of` per reference, with the error if a part stands for the whole.
    fn per_reference(&self, of: impl Fn(&Tally) -> f64, sampled: bool) -> Option<Estimate> {
        let tallies = || self.groups.iter().chain(std::iter::once(&self.all));
        let references: f64 = tallies().map(|tally| tally.references).sum();
        let hits: f64 = tallies().map(&of).sum();
        if references <= 0.0 {
            return None;
        }
        let value = hits / references;
        let without = |group: &Tally| {
            let rest = references - group.references;
            if rest > 0.0 {
                (hits - of(group)) / rest
            } else {
                value
            }
        };
        let count = GROUPS as f64;
        let mean = self.groups.iter().map(without).sum::<f64>() / count;
        let squares: f64 = self
            .groups
            .iter()
            .map(|group| (without(group) - mean).powi(2))
            .sum();
        // 2.0: the 97.5 % point of Student's t with 63 degrees of freedom.
        let error = 2.0 * (squares * (count - 1.0) / count).sqrt();
        Some(Estimate {
            value,
            error: sampled.then_some(error),
        })
    }

    /// Tokens that are served as a share of all tokens of prompts with ids.
    fn token_share(&self, sampled: bool) -> Option<Estimate> {
        let scale = self.blocks as f64 / self.input_tokens as f64;
        self.per_reference(|tally| tally.tokens, sampled)
            .map(|share| Estimate {
                value: (share.value * scale).min(1.0),
                error: share.error.map(|error| error * scale),
            })
    }
}

/// A hash of a block that is its own in the scope of its row.
fn block_hash(id: u64, row: &TraceRow) -> u64 {
    match (row.scope, &row.session) {
        // Each session has its own stretch of all numbers, which are far too many to overlap.
        (BlockScope::Session, Some(session)) => {
            hash::near(id.wrapping_add(hash::of(session.as_bytes())))
        }
        _ => hash::near(id),
    }
}

/// A cache that keeps everything.
#[derive(Debug)]
pub(super) struct InfiniteCache {
    seen: BlockSet,
    counts: Counts,
    shares: f64,
    rows: u64,
    hashes: Vec<u64>,
}

/// Blocks whose places are read at once: about as many as a core can wait for.
const AT_ONCE: usize = 16;

impl InfiniteCache {
    pub(super) fn new(exact: usize) -> Self {
        Self {
            seen: BlockSet::new(exact),
            counts: Counts::new(),
            shares: 0.0,
            rows: 0,
            hashes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &TraceRow) {
        if row.blocks.is_empty() {
            return;
        }
        self.counts.row(row);
        self.rows += 1;
        self.hashes.clear();
        self.hashes
            .extend(row.blocks.iter().map(|id| block_hash(*id, row)));
        let cacheable = row.cacheable_blocks();
        let tokens = f64::from(row.block_tokens);
        let mut leading = true;
        let mut hits = 0_u64;
        for (chunk, hashes) in self.hashes.chunks(AT_ONCE).enumerate() {
            let mut first = [0; AT_ONCE];
            for (slot, hash) in first.iter_mut().zip(hashes) {
                *slot = self.seen.first_slot(*hash);
            }
            for (place, (first, hash)) in first.iter().zip(hashes).enumerate() {
                let sampling = self.seen.sampling();
                if !sampling.keeps(*hash) {
                    continue;
                }
                let seen = (*first == *hash && *hash != 0) || !self.seen.insert(*hash);
                leading &= seen;
                let weight = sampling.weight();
                let tally = self.counts.tally(*hash, sampling);
                tally.references += weight;
                if leading {
                    hits += 1;
                    tally.hits += weight;
                    if chunk * AT_ONCE + place < cacheable {
                        tally.tokens += weight * tokens;
                    }
                }
            }
        }
        self.shares += hits as f64 / row.blocks.len() as f64;
    }

    pub(super) fn finish(self) -> Option<Ceiling> {
        if self.rows == 0 {
            return None;
        }
        let sampling = self.seen.sampling();
        let sampled = sampling != Sampling::default();
        let kept = self.seen.len() as f64;
        let part = 1.0 / sampling.weight();
        Some(Ceiling {
            cache_blocks: None,
            blocks: self.counts.blocks,
            distinct_blocks: Some(Estimate {
                value: kept / part,
                error: sampled.then(|| 1.96 * (kept * (1.0 - part)).sqrt() / part),
            }),
            token_share: self.counts.token_share(sampled),
            block_share: self.counts.per_reference(|tally| tally.hits, sampled),
            mean_block_share: (!sampled).then(|| self.shares / self.rows as f64),
            sampled_one_in: 1 << sampling.halvings,
        })
    }
}

/// Most blocks of a cache that are followed one by one; a larger cache is followed in a sample of
/// its blocks that is that much smaller. 32 MB.
const FOLLOWED: u64 = 1 << 20;

/// A cache of a given size, which gives up what was not used for longest.
///
/// The blocks of a request are used from its last to its first, as servers free them, so that its
/// answer goes before its prompt, and the end of that before its beginning.
#[derive(Debug)]
pub(super) struct LruCache {
    size: CacheSize,
    state: Option<Following>,
    counts: Counts,
    /// Blocks of the row, and where they were found.
    found: Vec<(u64, Option<u32>)>,
    /// Blocks so far that nothing can be served from.
    of_no_use: u64,
}

#[derive(Debug)]
struct Following {
    blocks: u64,
    lru: Lru,
    sampling: Sampling,
}

impl LruCache {
    pub(super) fn new(size: CacheSize) -> Self {
        Self {
            size,
            state: None,
            counts: Counts::new(),
            found: Vec::new(),
            of_no_use: 0,
        }
    }

    pub(super) fn add(&mut self, row: &TraceRow) {
        if row.blocks.is_empty() || row.block_tokens == 0 {
            return;
        }
        let size = self.size;
        let following = self
            .state
            .get_or_insert_with(|| Following::new(size, row.block_tokens));
        let (lru, sampling) = (&mut following.lru, following.sampling);
        self.counts.row(row);
        let weight = sampling.weight();
        let tokens = weight * f64::from(row.block_tokens);
        let cacheable = row.cacheable_blocks();
        let (whole, all) = blocks_used(row);
        let mut leading = true;
        self.found.clear();
        for (place, id) in row.blocks.iter().enumerate() {
            let hash = block_hash(*id, row);
            if !sampling.keeps(hash) {
                continue;
            }
            let node = lru.find(hash);
            leading &= node.is_some();
            let tally = self.counts.tally(hash, sampling);
            tally.references += weight;
            if leading && place < cacheable {
                tally.tokens += tokens;
            }
            if place < whole {
                self.found.push((hash, node));
            }
        }
        for _ in whole..all {
            let hash = hash::of(&self.of_no_use.to_le_bytes());
            self.of_no_use += 1;
            if sampling.keeps(hash) {
                lru.touch(hash, None);
            }
        }
        for (hash, node) in self.found.iter().rev() {
            lru.touch(*hash, *node);
        }
    }

    pub(super) fn finish(self) -> Option<Ceiling> {
        let following = self.state?;
        let sampled = following.sampling != Sampling::default();
        Some(Ceiling {
            cache_blocks: Some(following.blocks),
            blocks: self.counts.blocks,
            distinct_blocks: None,
            token_share: self.counts.token_share(sampled),
            block_share: None,
            mean_block_share: None,
            sampled_one_in: 1 << following.sampling.halvings,
        })
    }
}

/// Blocks with ids that hold nothing but tokens of the prompt of `row`, and all blocks that it
/// takes with its answer.
fn blocks_used(row: &TraceRow) -> (usize, usize) {
    let block = row.block_tokens as usize;
    let of_ids = row.blocks.len() * block;
    let input = row.input_tokens.map_or(of_ids, |tokens| tokens as usize);
    let output = row.output_tokens.map_or(1, |tokens| tokens as usize);
    // The last token of an answer is never computed on.
    let tokens = input + output.max(1) - 1;
    let whole = (input / block).min(row.blocks.len());
    (whole, tokens.div_ceil(block))
}

impl Following {
    fn new(size: CacheSize, block_tokens: u32) -> Self {
        let blocks = match size {
            CacheSize::Blocks(blocks) => blocks,
            CacheSize::Tokens(tokens) => tokens / u64::from(block_tokens),
        }
        .max(1);
        let mut halvings = 0;
        while blocks >> halvings > FOLLOWED && halvings < Sampling::MOST {
            halvings += 1;
        }
        let most = usize::try_from((blocks >> halvings).min(FOLLOWED)).expect("about a million");
        Self {
            blocks,
            lru: Lru::new(most),
            sampling: Sampling { halvings },
        }
    }
}
