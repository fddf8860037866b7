//! Which clock the tokens were read on, how late we read them, and which chunks share a read.
//!
//! The kernel names a read by the arrival of its last bytes. So a chunk behind which another
//! event ended in the same read came at some time up to its instant: it is merged. Our own clock
//! is late for every chunk alike, so there only tokens that share an instant are.

use std::time::Duration;

use crate::measurement::{ClockSource, Note, RequestRecord};
use crate::transport::{ReadMark, StampClock};

/// What the reads of token-bearing chunks had in common.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// The least exact clock a read was stamped by.
    clock: Option<ClockSource>,
    /// The lag of the read that brought the first token, and of the one that brought the last.
    lag: Option<(Option<Duration>, Option<Duration>)>,
}

impl Stamps {
    /// An event of any kind ended in `read`, after the chunks that `record` holds.
    pub(super) fn event(read: ReadMark, record: &mut RequestRecord) {
        if read.clock == StampClock::Kernel && shares_read(read, record) {
            record.chunks.merge_last(read.spread);
        }
    }

    /// A token-bearing chunk ended in `read`; it is not in `record` yet.
    pub(super) fn token(&mut self, read: ReadMark, record: &mut RequestRecord) {
        if shares_read(read, record) {
            record.chunks.merge_last(read.spread);
            if record.chunks.len() == 1 {
                record.notes.add(Note::FirstTokenMerged);
            }
        }
        if read.bad_stamp {
            record.notes.add(Note::BadStamp);
        }
        self.clock = Some(match (read.clock, self.clock) {
            (StampClock::User, _) | (_, Some(ClockSource::User)) => ClockSource::User,
            (StampClock::Read, _) | (_, Some(ClockSource::Read)) => ClockSource::Read,
            (StampClock::Kernel, _) => ClockSource::Kernel,
        });
        let kernel = read.clock == StampClock::Kernel;
        let lag = kernel.then(|| read.returned.since(read.at));
        self.lag.get_or_insert((lag, lag)).1 = lag;
    }

    /// The response ended: fills clock and lag of `record`.
    pub(super) fn finish(&self, record: &mut RequestRecord) {
        if let (Some(clock), Some((first, last))) = (self.clock, self.lag) {
            record.clock = clock;
            record.read_lag = first.max(last);
        }
    }
}

/// Whether the last chunk ended in the same read. Read number 0 is no number.
fn shares_read(read: ReadMark, record: &RequestRecord) -> bool {
    let last = record.chunks.as_slice().last();
    read.number != 0 && last.is_some_and(|chunk| chunk.read == read.number)
}
