//! How well the bytes of responses could be timed, and what was odd about them: counts over
//! many records.
//!
//! Only records that reached a response head count. Chunks are those that carry tokens.

use crate::measurement::{ClockSource, Note, Outcome, RequestRecord, TokenSource};

/// Counts of one stream, or of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireTotals {
    chunks: u64,
    merged: u64,
    clocks: [u64; ClockSource::ALL.len()],
    notes: [u64; Note::ALL.len()],
    output_requested: u64,
    output_delivered: u64,
    certificate_expiry: Option<i64>,
}

impl WireTotals {
    /// Adds one record.
    pub fn observe(&mut self, record: &RequestRecord) {
        self.certificate_expiry = record.certificate_expiry.or(self.certificate_expiry);
        if record.http_status.is_none() {
            return;
        }
        self.chunks += u64::try_from(record.chunks.len()).unwrap_or(u64::MAX);
        self.merged += u64::try_from(record.chunks.merged()).unwrap_or(u64::MAX);
        for (count, clock) in self.clocks.iter_mut().zip(ClockSource::ALL) {
            *count += u64::from(record.clock == clock);
        }
        for (count, note) in self.notes.iter_mut().zip(Note::ALL) {
            *count += u64::from(record.notes.has(note));
        }
        let counted = !matches!(record.tokens.source, None | Some(TokenSource::Chunks));
        // Who has been asked a question stops when it is answered: the number is a limit only.
        if record.outcome == Outcome::Ok
            && counted
            && record.answer.is_none()
            && let Some((asked, came)) = record.tokens.requested_output.zip(record.tokens.output)
        {
            self.output_requested += u64::from(asked);
            self.output_delivered += u64::from(came);
        }
    }

    /// Token-bearing chunks whose instant is their own.
    #[must_use]
    pub const fn exact(&self) -> u64 {
        self.chunks - self.merged
    }

    /// Token-bearing chunks whose instant is that of later bytes.
    #[must_use]
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    /// Records by the clock of their instants.
    pub fn clocks(&self) -> impl Iterator<Item = (ClockSource, u64)> + '_ {
        ClockSource::ALL.into_iter().zip(self.clocks)
    }

    /// Records by what was odd about the response; one may count under several.
    pub fn notes(&self) -> impl Iterator<Item = (Note, u64)> + '_ {
        Note::ALL.into_iter().zip(self.notes)
    }

    /// Output tokens asked for and output tokens that came, of `ok` requests for which both are
    /// known.
    #[must_use]
    pub const fn output(&self) -> (u64, u64) {
        (self.output_requested, self.output_delivered)
    }

    /// When the certificate of the last new TLS connection expires, in seconds of Unix time.
    #[must_use]
    pub const fn certificate_expiry(&self) -> Option<i64> {
        self.certificate_expiry
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aggregate::fixture::{failed, ok, stream};

    #[test]
    fn records_with_a_response_are_counted_by_clock_chunks_and_notes() {
        let stream = stream(0);
        let mut totals = WireTotals::default();
        let mut record = ok(&stream, 0, &[10, 20, 20]).record;
        record.clock = ClockSource::Kernel;
        record.chunks.merge_last(Duration::from_micros(7));
        record.notes.add(Note::AfterEnd);
        record.notes.add(Note::Compressed);
        record.tokens.requested_output = Some(5);
        record.certificate_expiry = Some(1_800_000_000);
        totals.observe(&record);
        totals.observe(&ok(&stream, 0, &[10]).record);
        totals.observe(&failed(&stream, 0, Outcome::Connect, None).record);
        assert_eq!((totals.exact(), totals.merged()), (3, 1));
        let clocks: Vec<_> = totals.clocks().collect();
        assert_eq!(
            clocks,
            [
                (ClockSource::Kernel, 1),
                (ClockSource::Read, 0),
                (ClockSource::User, 1)
            ]
        );
        let noted: Vec<_> = totals.notes().filter(|(_, count)| *count > 0).collect();
        assert_eq!(noted, [(Note::AfterEnd, 1), (Note::Compressed, 1)]);
        assert_eq!(totals.output(), (5, 3), "the second asked for no number");
        assert_eq!(totals.certificate_expiry(), Some(1_800_000_000));
    }
}
