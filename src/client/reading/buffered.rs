//! Tells a stream that something between held back, a buffering proxy or a compressor, from one
//! that is fast.
//!
//! Then all tokens come in one burst at the end, and their instants say when the buffer was
//! let go, not when the server made them.

use std::collections::HashSet;
use std::time::Duration;

use crate::measurement::RequestRecord;

/// A shorter answer can be over before a pace shows.
const MIN_CHUNKS: usize = 8;
/// A buffer that holds less than this back cannot be told from a fast local server.
const MIN_WAIT: Duration = Duration::from_millis(50);
/// The burst is at most this share of the time before it.
const MAX_SHARE: u32 = 50;
/// No engine makes tokens of one answer at this pace: 10,000 a second is several times what the
/// fastest hardware does.
const MIN_PACE: Duration = Duration::from_micros(100);
/// A slow network draws a burst out, but it still comes in full packets of many chunks. Tokens
/// that are sent when they are made are read one or two at a time.
const MIN_CHUNKS_PER_READ: usize = 4;

/// Whether the tokens of `record` came in one burst after a long silence.
pub(super) fn is_buffered(record: &RequestRecord) -> bool {
    let chunks = record.chunks.as_slice();
    let (Some(first), Some(last), Some(start)) =
        (chunks.first(), chunks.last(), record.timeline.start)
    else {
        return false;
    };
    let wait = first.at.since(start);
    let burst = last.at.since(first.at);
    if chunks.len() < MIN_CHUNKS || wait <= MIN_WAIT || burst >= wait / MAX_SHARE {
        return false;
    }
    let gaps = u32::try_from(chunks.len() - 1).unwrap_or(u32::MAX);
    burst < MIN_PACE.saturating_mul(gaps) || {
        let reads: HashSet<u32> = chunks.iter().map(|chunk| chunk.read).collect();
        reads.len() * MIN_CHUNKS_PER_READ <= chunks.len()
    }
}
