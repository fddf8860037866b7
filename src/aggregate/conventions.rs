//! What the OpenTelemetry conventions for `GenAI` clients define, by their definitions: they count
//! requests, not good answers, and chunks, not tokens.
//!
//! A request that never began (a refused one) was no operation, and one that was cancelled says
//! nothing about anyone: both are in none of the histograms. Of the rest a failure has its outcome
//! beside its values.

use super::histogram::Histogram;
use crate::measurement::{Outcome, RequestRecord, TokenSource};

/// A histogram that the conventions define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// Start to the end of the stream: the duration of the span.
    Duration,
    /// Start to the first event of any kind; streams only.
    FirstChunk,
    /// The end of one output chunk to the end of the next; streams only.
    OutputChunk,
    /// Input tokens of one request, as the server counted them.
    InputTokens,
    /// Output tokens of one request, as the server counted them.
    OutputTokens,
}

impl Convention {
    /// Every one, in the order of exported pages.
    pub const ALL: [Self; 5] = [
        Self::Duration,
        Self::FirstChunk,
        Self::OutputChunk,
        Self::InputTokens,
        Self::OutputTokens,
    ];
}

/// Values of requests that went well, and of those that failed by their outcome.
#[derive(Debug, Clone, Default)]
struct ByError {
    ok: Histogram,
    /// At most one entry per outcome.
    failed: Vec<(Outcome, Histogram)>,
}

impl ByError {
    fn of(&mut self, record: &RequestRecord) -> &mut Histogram {
        if !record.is_failure() {
            return &mut self.ok;
        }
        let outcome = record.outcome;
        let known = self.failed.iter().position(|(of, _)| *of == outcome);
        let at = known.unwrap_or_else(|| {
            self.failed.push((outcome, Histogram::new()));
            self.failed.len() - 1
        });
        &mut self.failed[at].1
    }
}

/// All of it about one stream, since the start.
#[derive(Debug, Clone, Default)]
pub struct ConventionTotals {
    duration: ByError,
    first_chunk: Histogram,
    output_chunk: Histogram,
    input_tokens: ByError,
    output_tokens: ByError,
    cached: u64,
    reasoning: u64,
}

impl ConventionTotals {
    /// Adds what the record says about time and length.
    pub(super) fn measure(&mut self, record: &RequestRecord) {
        let time = &record.timeline;
        let Some(start) = time.start else {
            return;
        };
        if record.outcome == Outcome::Cancelled {
            return;
        }
        let end = time.end.or(time.last_token).unwrap_or(start);
        self.duration.of(record).record_duration(end.since(start));
        if record.stream.streaming {
            if let Some(event) = time.first_event {
                self.first_chunk.record_duration(event.since(start));
            }
            for gap in record.chunks.gaps() {
                self.output_chunk.record_duration(gap);
            }
        }
        if let Some(tokens) = record.tokens.input {
            self.input_tokens.of(record).record(f64::from(tokens));
        }
        if let Some(tokens) = counted_output(record) {
            self.output_tokens.of(record).record(f64::from(tokens));
        }
    }

    /// Adds the tokens that the record says were used.
    pub(super) fn count_tokens(&mut self, record: &RequestRecord) {
        self.cached += u64::from(record.tokens.cached.unwrap_or_default());
        self.reasoning += u64::from(record.tokens.reasoning.unwrap_or_default());
    }

    /// The histograms of `convention`: that of requests that went well, and those of failures.
    pub fn histograms(
        &self,
        convention: Convention,
    ) -> impl Iterator<Item = (Option<Outcome>, &Histogram)> {
        let (ok, failed): (_, &[_]) = match convention {
            Convention::Duration => (&self.duration.ok, &self.duration.failed),
            Convention::FirstChunk => (&self.first_chunk, &[]),
            Convention::OutputChunk => (&self.output_chunk, &[]),
            Convention::InputTokens => (&self.input_tokens.ok, &self.input_tokens.failed),
            Convention::OutputTokens => (&self.output_tokens.ok, &self.output_tokens.failed),
        };
        let failed = failed.iter().map(|(outcome, of)| (Some(*outcome), of));
        std::iter::once((None, ok)).chain(failed)
    }

    /// Input tokens that came from the server's prefix cache.
    #[must_use]
    pub const fn cached(&self) -> u64 {
        self.cached
    }

    /// Output tokens that are reasoning.
    #[must_use]
    pub const fn reasoning(&self) -> u64 {
        self.reasoning
    }
}

/// The output tokens of a record, where they are no chunks that were counted instead.
fn counted_output(record: &RequestRecord) -> Option<u32> {
    let tokens = record.tokens.output?;
    (record.tokens.source != Some(TokenSource::Chunks)).then_some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, ms, ok, refused, stream};
    use crate::measurement::{Observed, RefusedReason};

    fn totals(records: &[Observed]) -> ConventionTotals {
        let mut totals = ConventionTotals::default();
        for observed in records {
            totals.measure(&observed.record);
            totals.count_tokens(&observed.record);
        }
        totals
    }

    /// (outcome, count, sum in thousandths) of each histogram.
    fn shown(totals: &ConventionTotals, of: Convention) -> Vec<(Option<Outcome>, u64, f64)> {
        totals
            .histograms(of)
            .map(|(outcome, of)| (outcome, of.count(), (of.sum() * 1e3).round()))
            .collect()
    }

    #[test]
    fn failures_have_a_duration_of_their_own_and_refusals_none() {
        let stream = stream(0);
        let totals = totals(&[
            ok(&stream, 0, &[50, 60, 90]),
            ok(&stream, 100, &[30, 40]),
            failed(&stream, 200, Outcome::HttpStatus, Some(500)),
            failed(&stream, 300, Outcome::Connect, None),
            failed(&stream, 400, Outcome::HttpStatus, Some(503)),
            failed(&stream, 500, Outcome::Cancelled, None),
            refused(&stream, 600, RefusedReason::InFlight),
        ]);
        assert_eq!(
            shown(&totals, Convention::Duration),
            [
                (None, 2, 130.0),
                (Some(Outcome::HttpStatus), 2, 20.0),
                (Some(Outcome::Connect), 1, 10.0),
            ]
        );
        assert_eq!(shown(&totals, Convention::FirstChunk), [(None, 2, 80.0)]);
        assert_eq!(shown(&totals, Convention::OutputChunk), [(None, 3, 50.0)]);
        assert_eq!(
            shown(&totals, Convention::InputTokens),
            [(None, 2, 40_000.0)]
        );
        assert_eq!(
            shown(&totals, Convention::OutputTokens),
            [(None, 2, 5_000.0)]
        );
    }

    #[test]
    fn the_first_chunk_is_the_first_event_and_not_the_first_token() {
        let mut observed = ok(&stream(0), 0, &[50]);
        observed.record.timeline.first_event = Some(ms(11));
        let totals = totals(&[observed]);
        assert_eq!(shown(&totals, Convention::FirstChunk), [(None, 1, 10.0)]);
    }

    #[test]
    fn chunks_that_were_counted_are_no_tokens() {
        let mut observed = ok(&stream(0), 0, &[50, 60]);
        observed.record.tokens.source = Some(TokenSource::Chunks);
        observed.record.tokens.cached = Some(7);
        observed.record.tokens.reasoning = Some(1);
        let totals = totals(&[observed]);
        assert_eq!(shown(&totals, Convention::OutputTokens), [(None, 0, 0.0)]);
        assert_eq!((totals.cached(), totals.reasoning()), (7, 1));
    }
}
