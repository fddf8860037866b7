//! Recorded and synthetic traffic as rows: when each request came, how long it was, which blocks
//! of its prompt were shared, and to which session it belonged.
//!
//! Files are streamed: a reader holds one row at a time, a line has a longest length, and every
//! table of the analysis is bounded. Nothing here opens a file; readers take what the caller
//! opened.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `load/trace` | `TraceRow` | rows of recorded or synthetic traffic: time, lengths, block hashes, session; their formats | know prompts or wire formats |

#![expect(
    clippy::unnecessary_box_returns,
    reason = "what is wrong with a row is the rare half of a result that is returned for each"
)]

mod analysis;
mod detect;
mod error;
mod file_ids;
mod format;
mod hash;
mod lines;
mod number;
mod prompts;
mod reblock;
mod row;
mod rows;
mod sort;
mod source;
mod stamp;
mod synthesis;
mod traces;
mod values;
mod write;

pub use analysis::{Analysis, Analyzer, Arrivals, CacheSize, Ceiling, Estimate, Lengths, Sessions};
pub use detect::Detected;
pub use error::{Fault, RowError};
pub use file_ids::FileIds;
pub use format::{Clock, Format, Kind};
pub use prompts::{Content, Entries, Entry, Notes, Turn};
pub use row::{BlockScope, Body, TraceRow};
pub use rows::{Bodies, NotARowFormat, ReadOptions, Rows};
pub use sort::{SORTED_IN, Sorter, TooLate};
pub use source::{Encoding, Source};
pub use synthesis::{MOST_BLOCKS, SharedBlocks, Synthesis, Synthesizer, is_multiplier, is_speedup};
pub use write::{Losses, TraceWriter, WriteError};

/// Longest line of a file, or longest element of a JSON array, in bytes.
///
/// The longest rows seen in public traces are below 100 kB.
pub const LONGEST_LINE: usize = 16 << 20;

/// Longest agent session that is one JSON object, in bytes; those seen have a few MB.
pub const LONGEST_SESSION: usize = 64 << 20;

#[cfg(test)]
mod tests;
