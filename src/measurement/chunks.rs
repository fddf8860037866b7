//! The token-bearing chunks of one response, as they came.
//!
//! A chunk is not a token: it may carry several. The instant is that of the socket read that
//! completed it, so chunks of one read share an instant and a read number.

use std::time::Duration;

use crate::clock::MonoTime;

/// One chunk that carried at least one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// When the read that completed it brought its last byte: the kernel's stamp, or when the
    /// read returned.
    pub at: MonoTime,
    /// Number of that read on its connection.
    pub read: u32,
    /// The chunk may have arrived up to this many microseconds before `at`, since more bytes
    /// followed it in the same read. Zero: exact.
    pub spread_us: u32,
}

impl Chunk {
    /// A chunk that was the last of its read.
    #[must_use]
    pub const fn exact(at: MonoTime, read: u32) -> Self {
        Self {
            at,
            read,
            spread_us: 0,
        }
    }

    /// Whether its instant is that of a later byte.
    #[must_use]
    pub const fn is_merged(self) -> bool {
        self.spread_us > 0
    }
}

/// All token-bearing chunks of a response, in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Chunks(Vec<Chunk>);

impl Chunks {
    /// Room for `capacity` chunks, so that the measured path need not allocate.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Appends the chunk that came last.
    pub fn push(&mut self, chunk: Chunk) {
        self.0.push(chunk);
    }

    /// More bytes followed the last chunk in its read: it may have come up to `spread` earlier.
    pub fn merge_last(&mut self, spread: Duration) {
        if let Some(last) = self.0.last_mut() {
            let micros = u32::try_from(spread.as_micros()).unwrap_or(u32::MAX);
            last.spread_us = micros.max(1);
        }
    }

    /// How many share their instant with later bytes.
    #[must_use]
    pub fn merged(&self) -> usize {
        self.0.iter().filter(|chunk| chunk.is_merged()).count()
    }

    /// The chunks in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Chunk] {
        &self.0
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no chunk came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Times between successive chunks; zero for two chunks of one read.
    pub fn gaps(&self) -> impl Iterator<Item = Duration> + '_ {
        self.0.windows(2).map(|pair| pair[1].at.since(pair[0].at))
    }
}
