//! What a trace is like: lengths, arrivals, sessions, and how much of its prompts a prefix cache
//! could serve.
//!
//! Rows go in one by one, and everything is kept in bounded tables: lengths as counts per value,
//! arrivals as sums, blocks in a set that is exact up to ten million and hash-sampled beyond,
//! with the error it then has.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts of rows and tokens are far below 2^53, or are summed as whole numbers"
)]

mod arrivals;
mod block_set;
mod ceiling;
mod lengths;
mod lru;
mod sessions;

use serde::Serialize;

use self::arrivals::ArrivalCounter;
pub use self::arrivals::Arrivals;
pub(super) use self::block_set::BlockSet;
pub use self::ceiling::{CacheSize, Ceiling, Estimate};
use self::ceiling::{InfiniteCache, LruCache};
use self::lengths::LengthCounter;
pub use self::lengths::Lengths;
use self::sessions::SessionCounter;
pub use self::sessions::Sessions;
use super::format::Format;
use super::hash;
use super::row::TraceRow;

/// Most distinct blocks that are counted exactly: 134 MB.
const EXACT_BLOCKS: usize = 10_000_000;

/// Takes rows and says what they are like.
#[derive(Debug)]
pub struct Analyzer {
    rows: u64,
    failed: u64,
    input: LengthCounter,
    output: LengthCounter,
    arrivals: ArrivalCounter,
    sessions: SessionCounter,
    infinite: InfiniteCache,
    lru: Option<LruCache>,
}

/// What a trace is like.
#[derive(Debug, Clone, Serialize)]
pub struct Analysis {
    /// Rows that were read.
    pub rows: u64,
    /// Rows whose recorded request failed or was cancelled.
    pub failed: u64,
    /// Tokens of prompts; absent if no row says.
    pub input_tokens: Option<Lengths>,
    /// Tokens of answers; absent if no row says.
    pub output_tokens: Option<Lengths>,
    /// When requests came; absent with fewer than two times.
    pub arrivals: Option<Arrivals>,
    /// Conversations; absent if the file has none.
    pub sessions: Option<Sessions>,
    /// What a prefix cache without a limit could serve; absent without ids of blocks.
    pub infinite_cache: Option<Ceiling>,
    /// What a prefix cache of the size asked for could serve.
    pub lru_cache: Option<Ceiling>,
}

impl Analyzer {
    /// For a trace of this format; with `cache`, also what a cache of that size could serve.
    #[must_use]
    pub fn new(format: Format, cache: Option<CacheSize>) -> Self {
        Self {
            rows: 0,
            failed: 0,
            input: LengthCounter::default(),
            output: LengthCounter::default(),
            arrivals: ArrivalCounter::new(format.is_ordered()),
            sessions: SessionCounter::default(),
            infinite: InfiniteCache::new(EXACT_BLOCKS),
            lru: cache.map(LruCache::new),
        }
    }

    /// Takes one row.
    pub fn add(&mut self, row: &TraceRow) {
        self.rows += 1;
        self.failed += u64::from(row.failed);
        if let Some(tokens) = row.input_tokens {
            self.input.add(tokens);
        }
        if let Some(tokens) = row.output_tokens {
            self.output.add(tokens);
        }
        if let Some(at) = row.at {
            self.arrivals.add(at);
        }
        if let Some(session) = &row.session {
            self.sessions.add(hash::of(session.as_bytes()), row);
        }
        self.infinite.add(row);
        if let Some(lru) = &mut self.lru {
            lru.add(row);
        }
    }

    /// What the rows so far are like.
    #[must_use]
    pub fn finish(self) -> Analysis {
        Analysis {
            rows: self.rows,
            failed: self.failed,
            input_tokens: self.input.finish(),
            output_tokens: self.output.finish(),
            arrivals: self.arrivals.finish(),
            sessions: self.sessions.finish(),
            infinite_cache: self.infinite.finish(),
            lru_cache: self.lru.and_then(LruCache::finish),
        }
    }
}

#[cfg(test)]
mod tests;
