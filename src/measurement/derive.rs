//! Every latency, derived from the raw instants. Each definition stands here once.

use std::time::Duration;

use super::{Chunk, Counts, FirstChunk, Note, Outcome, RefusedReason, RequestRecord, TokenSource};
use crate::clock::MonoTime;

/// When a chunk gap is a stall: above `max(factor × median gap, floor)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallRule {
    /// Multiple of the request's own median gap.
    pub factor: f64,
    /// No gap below this is a stall.
    pub floor: Duration,
}

/// A record is `lagged` above this own lag, whatever its TTFT.
const LAG_FLOOR: Duration = Duration::from_millis(5);
/// … or above this share of its TTFT, if that is more.
const LAG_SHARE: u32 = 10;

/// Whether a delay of ours is too large for what came of `time` to be the server's doing.
#[must_use]
pub fn is_own_lag(lag: Duration, time: Duration) -> bool {
    lag > LAG_FLOOR.max(time / LAG_SHARE)
}

impl RequestRecord {
    fn after_start(&self, mark: Option<MonoTime>) -> Option<Duration> {
        Some(mark?.since(self.timeline.start?))
    }

    /// Time to first token of any channel, from start.
    #[must_use]
    pub fn ttft(&self) -> Option<Duration> {
        self.after_start(self.timeline.first_token)
    }

    /// Time to first token that is not reasoning, from start.
    #[must_use]
    pub fn ttfo(&self) -> Option<Duration> {
        self.after_start(self.timeline.first_output)
    }

    /// From start to the last token. For a unary response: to the end of the body.
    #[must_use]
    pub fn service_time(&self) -> Option<Duration> {
        self.after_start(self.timeline.last_token)
    }

    /// From the intended time to the first token.
    #[must_use]
    pub fn response_ttft(&self) -> Option<Duration> {
        Some(self.timeline.first_token?.since(self.timeline.intended))
    }

    /// From the intended time to the last token: slot wait and own lag included.
    #[must_use]
    pub fn response_time(&self) -> Option<Duration> {
        Some(self.timeline.last_token?.since(self.timeline.intended))
    }

    /// DNS, TCP and TLS together, on a new connection.
    #[must_use]
    pub fn connect_time(&self) -> Option<Duration> {
        self.after_start(self.timeline.tls_done.or(self.timeline.connected))
    }

    /// Intended → a slot is free. The server causes it.
    #[must_use]
    pub fn slot_wait(&self) -> Option<Duration> {
        Some(self.timeline.slot_free?.since(self.timeline.intended))
    }

    /// max(intended, slot free) → start. We cause it.
    #[must_use]
    pub fn schedule_lag(&self) -> Option<Duration> {
        let ready = self.timeline.slot_free?.max(self.timeline.intended);
        Some(self.timeline.start?.since(ready))
    }

    /// Kernel receive → our read; `None` without kernel stamps.
    #[must_use]
    pub const fn read_lag(&self) -> Option<Duration> {
        self.read_lag
    }

    /// How far the instants of the first and the last token may be too late, since later bytes
    /// shared their reads.
    #[must_use]
    pub fn merge_spread(&self) -> Duration {
        let chunks = self.chunks.as_slice();
        let spread = |chunk: Option<&Chunk>| chunk.map_or(0, |chunk| chunk.spread_us);
        let widest = spread(chunks.first()).max(spread(chunks.last()));
        Duration::from_micros(u64::from(widest))
    }

    /// Whether something between held the stream back, so that its instants say nothing.
    #[must_use]
    pub const fn is_buffered(&self) -> bool {
        self.notes.has(Note::Buffered)
    }

    /// Whether the instants of its tokens say when the server sent them: they came in a stream
    /// that nothing held back.
    #[must_use]
    pub fn shows_tokens(&self) -> bool {
        self.stream.streaming && !self.is_buffered()
    }

    /// All the delay that we cause: schedule lag and read lag.
    #[must_use]
    pub fn own_lag(&self) -> Option<Duration> {
        Some(self.schedule_lag()? + self.read_lag().unwrap_or_default())
    }

    /// Whether our own lag is too large for the record to feed a verdict.
    #[must_use]
    pub fn is_lagged(&self) -> bool {
        let ttft = self.ttft().unwrap_or_default();
        self.own_lag().is_some_and(|lag| is_own_lag(lag, ttft))
            || is_own_lag(self.merge_spread(), ttft)
            || self.notes.has(Note::LateTimer)
    }

    /// Whether it belongs to what is measured, and not to a warm-up, a cool-down or a start of the
    /// server.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.counts == Counts::Now
            && self
                .phase
                .as_ref()
                .is_none_or(|phase| phase.kind.is_measured())
    }

    /// Whether its latencies may feed a verdict: a success whose times are the server's, neither
    /// ours nor those of something between.
    #[must_use]
    pub fn feeds_verdict(&self) -> bool {
        self.outcome == Outcome::Ok
            && self.is_measured()
            && !self.is_lagged()
            && !self.is_buffered()
    }

    /// How the count of the first chunk is known.
    #[must_use]
    pub const fn first_chunk(&self) -> FirstChunk {
        match self.tokens.in_first_chunk {
            Some(_) => FirstChunk::Counted,
            None => FirstChunk::Assumed,
        }
    }

    /// Tokens that came after the first chunk; with several answers, after the first chunk of
    /// each.
    ///
    /// Reasoning that usage reports but no chunk carried does not count. What the chunks list or
    /// counted themselves is what they carried: there the first chunk's count holds the rest.
    fn later_tokens(&self) -> Option<u32> {
        let tokens = &self.tokens;
        let first = match (self.choices, tokens.in_first_chunk) {
            (Some(choices), _) => choices.count,
            (None, counted) => counted.unwrap_or(1),
        };
        let from_usage = match tokens.source? {
            TokenSource::Chunks => return None,
            TokenSource::Usage => true,
            TokenSource::ChunkUsage => tokens.in_first_chunk.is_none() || self.choices.is_some(),
            TokenSource::TokenIds
            | TokenSource::Logprobs
            | TokenSource::Tokenizer
            | TokenSource::Words => false,
        };
        let hidden = match tokens.reasoning {
            Some(reasoning) if from_usage && !tokens.reasoning_came => reasoning,
            _ => 0,
        };
        tokens.output?.checked_sub(hidden)?.checked_sub(first)
    }

    /// Mean time between tokens: (last − first) / (tokens − tokens in the first chunk). With
    /// several answers at once their times are added up.
    ///
    /// Absent with fewer than two delivered tokens, with fewer than two chunks, where all came
    /// in one read, where the only count of tokens is the number of chunks, and for a stream
    /// that something held back.
    #[must_use]
    pub fn itl(&self) -> Option<Duration> {
        if self.is_buffered() || self.chunks.len() < 2 {
            return None;
        }
        let later = self.later_tokens().filter(|later| *later > 0)?;
        let span = match self.choices {
            Some(choices) => choices.spans,
            None => self.timeline.last_token?.since(self.timeline.first_token?),
        };
        (!span.is_zero()).then(|| span.div_f64(f64::from(later)))
    }

    /// Output tokens per second of the decode phase; the inverse of [`Self::itl`].
    #[must_use]
    pub fn output_rate(&self) -> Option<f64> {
        let itl = self.itl()?.as_secs_f64();
        (itl > 0.0).then(|| itl.recip())
    }

    /// The longest chunk gap.
    #[must_use]
    pub fn max_gap(&self) -> Option<Duration> {
        self.chunks.gaps().max()
    }

    /// The chunk gaps that are stalls, each with the instant at which it ended.
    #[must_use]
    pub fn stalls(&self, rule: StallRule) -> Vec<(MonoTime, Duration)> {
        let mut gaps: Vec<Duration> = self.chunks.gaps().collect();
        let Some(last) = gaps.len().checked_sub(1) else {
            return Vec::new();
        };
        let (_, median, _) = gaps.select_nth_unstable(last / 2);
        let limit = rule.floor.max(median.mul_f64(rule.factor));
        self.chunks
            .as_slice()
            .windows(2)
            .map(|pair| (pair[1].at, pair[1].at.since(pair[0].at)))
            .filter(|(_, gap)| *gap > limit)
            .collect()
    }

    /// Whether it counts as +∞ in the failure-aware histograms: every outcome but `ok`,
    /// `cancelled`, and refusals that the server did not cause.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.outcome {
            Outcome::Ok | Outcome::Cancelled => false,
            Outcome::Refused => self.refused.is_some_and(RefusedReason::is_censored_sample),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::measurement::{
        Api, CacheMode, Choices, ConnectionPolicy, LengthMode, RefusedReason, Stream, StreamId,
        TraceIds,
    };

    fn at(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * 1_000_000)
    }

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// Due at 100 ms, slot at 130, started at 132, tokens at the given instants.
    fn record(tokens: &[u64], output: u32) -> RequestRecord {
        let stream = Arc::new(Stream {
            id: StreamId(0),
            target_index: 0,
            target: "t".into(),
            endpoint: "http://t".into(),
            probe: "p".into(),
            api: Api::Chat,
            cache: CacheMode::Cold,
            connection: ConnectionPolicy::Pooled,
            length: LengthMode::Exact,
            streaming: true,
            closed_loop: false,
            model: OnceLock::new(),
        });
        let mut record = RequestRecord::due(0, stream, TraceIds { trace: 1, span: 1 }, at(100));
        record.timeline.slot_free = Some(at(130));
        record.timeline.start = Some(at(132));
        for (read, ms) in (0_u32..).zip(tokens) {
            record.chunks.push(Chunk::exact(at(*ms), read));
        }
        record.timeline.first_token = tokens.first().map(|ms| at(*ms));
        record.timeline.first_output = record.timeline.first_token;
        record.timeline.last_token = tokens.last().map(|ms| at(*ms));
        record.tokens.output = Some(output);
        record.tokens.source = Some(TokenSource::Usage);
        record.outcome = Outcome::Ok;
        record
    }

    #[test]
    fn service_time_leaves_out_what_response_time_holds() {
        let record = record(&[150, 160, 170], 3);
        assert_eq!(record.ttft(), Some(ms(18)));
        assert_eq!(record.service_time(), Some(ms(38)));
        assert_eq!(record.response_ttft(), Some(ms(50)));
        assert_eq!(record.response_time(), Some(ms(70)));
        assert_eq!(record.slot_wait(), Some(ms(30)));
        assert_eq!(record.schedule_lag(), Some(ms(2)));
        assert_eq!(
            record.response_time(),
            Some(ms(30) + ms(2) + ms(38)),
            "response time = slot wait + schedule lag + service time"
        );
    }

    #[test]
    fn a_slot_wait_never_makes_a_record_lagged() {
        let mut record = record(&[150], 1);
        record.timeline.slot_free = Some(at(132));
        assert!(!record.is_lagged());
    }

    #[test]
    fn own_lag_above_five_milliseconds_marks_a_short_request() {
        let mut record = record(&[150], 1);
        record.timeline.slot_free = Some(at(100));
        record.timeline.start = Some(at(105));
        assert!(!record.is_lagged());
        record.timeline.start = Some(at(106));
        assert!(record.is_lagged());
        record.timeline.first_token = Some(at(206));
        assert!(
            !record.is_lagged(),
            "10 % of a TTFT of 100 ms is more than 6 ms"
        );
    }

    #[test]
    fn itl_divides_by_tokens_and_not_by_chunks() {
        assert_eq!(record(&[150, 160, 170], 3).itl(), Some(ms(10)));
        assert_eq!(record(&[150, 160, 170], 5).itl(), Some(ms(5)));
        let mut counted = record(&[150, 160, 170], 5);
        counted.tokens.in_first_chunk = Some(3);
        assert_eq!(counted.itl(), Some(ms(10)));
    }

    #[test]
    fn itl_is_absent_where_it_would_be_a_guess() {
        assert_eq!(record(&[150], 1).itl(), None);
        assert_eq!(record(&[150], 40).itl(), None, "one chunk has no gap");
        let mut chunks = record(&[150, 160], 2);
        chunks.tokens.source = Some(TokenSource::Chunks);
        assert_eq!(chunks.itl(), None);
    }

    #[test]
    fn hidden_reasoning_tokens_are_not_delivered_tokens() {
        let mut hidden = record(&[150, 160, 170], 103);
        hidden.tokens.reasoning = Some(100);
        assert_eq!(hidden.itl(), Some(ms(10)));
        hidden.tokens.reasoning_came = true;
        assert_eq!(
            hidden.itl(),
            Some(ms(20).div_f64(102.0)),
            "reasoning that came in chunks counts"
        );
    }

    #[test]
    fn hidden_reasoning_is_in_the_count_of_the_first_chunk_where_there_is_one() {
        let mut counted = record(&[150, 160, 170], 103);
        counted.tokens.reasoning = Some(100);
        counted.tokens.source = Some(TokenSource::ChunkUsage);
        counted.tokens.in_first_chunk = Some(101);
        assert_eq!(counted.itl(), Some(ms(10)));
        counted.tokens.source = Some(TokenSource::TokenIds);
        counted.tokens.output = Some(3);
        counted.tokens.in_first_chunk = Some(1);
        assert_eq!(counted.itl(), Some(ms(10)), "what is listed was delivered");
    }

    #[test]
    fn several_answers_add_up_their_times() {
        let mut two = record(&[150, 152, 160, 162, 170, 172], 6);
        two.choices = Some(Choices {
            count: 2,
            spans: ms(40),
        });
        assert_eq!(two.itl(), Some(ms(10)), "2 × 20 ms for 6 − 2 tokens");
    }

    #[test]
    fn what_was_held_back_has_no_itl_and_feeds_no_verdict() {
        let mut record = record(&[150, 160, 170], 3);
        record.timeline.slot_free = Some(at(132));
        assert!(record.feeds_verdict());
        record.notes.add(Note::Buffered);
        assert_eq!(record.itl(), None);
        assert!(!record.feeds_verdict());
    }

    #[test]
    fn tokens_that_share_one_instant_have_no_time_between_them() {
        assert_eq!(record(&[150, 150, 150], 3).itl(), None);
    }

    #[test]
    fn a_stall_is_measured_against_the_median_gap_of_its_own_request() {
        let rule = StallRule {
            factor: 10.0,
            floor: ms(250),
        };
        let record = record(&[150, 160, 170, 421, 431, 681], 6);
        assert_eq!(record.stalls(rule), vec![(at(421), ms(251))]);
        assert_eq!(record.max_gap(), Some(ms(251)));
    }

    #[test]
    fn only_what_the_server_caused_counts_as_failure() {
        let mut record = record(&[150], 1);
        assert!(!record.is_failure());
        record.outcome = Outcome::Refused;
        for (reason, failure) in [
            (RefusedReason::InFlight, true),
            (RefusedReason::Budget, false),
            (RefusedReason::Shutdown, false),
            (RefusedReason::OwnLag, false),
            (RefusedReason::OwnLimit, false),
        ] {
            record.refused = Some(reason);
            assert_eq!(record.is_failure(), failure, "{reason:?}");
        }
        record.outcome = Outcome::Cancelled;
        assert!(!record.is_failure());
        record.outcome = Outcome::Empty;
        assert!(record.is_failure());
    }
}
