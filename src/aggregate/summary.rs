//! The numbers of one run, as `bench` prints them and writes to `summary.json`.
//!
//! Values are kept whole, up to [`EXACT`] per metric, so quantiles are exact; beyond that they
//! come from the histogram and `exact` says so. Counts, means and deviations are exact always.
//! Latencies are in milliseconds. What is absent is `null`, never 0; a quantile among failures
//! is the text `never`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::answers::{AnswerTotals, Answers};
use super::measure::{Measure, Reading};
use super::phases::Phases;
use super::slo::{self, SloTotals};
pub use super::stats::Stats;
use super::stats::Values;
use super::wire::WireTotals;
use super::{Quantile, rank};
use crate::clock::MonoTime;
use crate::measurement::{CacheMode, Observed, Outcome, RequestRecord, Slo, Stream, TokenSource};

/// Schema of `summary.json`. Within `/1` fields are only added.
pub const SCHEMA: &str = "tokencanary.summary/1";

/// Values kept per metric.
pub const EXACT: usize = 1_000_000;

/// Milliseconds per second.
const MS: f64 = 1e3;

/// The numbers of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether arrivals waited for their predecessors: then response time cannot show omission.
    pub closed_loop: bool,
    /// All records that are measured.
    pub records: u64,
    /// Records by outcome, those that occurred.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Records of each phase, those of warm-up and cool-down included, which are in nothing else.
    #[serde(skip_serializing_if = "Phases::is_empty")]
    pub phases: Phases,
    /// Records whose own lag is too large for a verdict.
    pub lagged: u64,
    /// Statistics of each metric that has values.
    pub metrics: Metrics,
    /// Quantiles of TTFT, a failure being +∞, milliseconds.
    pub ttft_or_failure: FailureAware,
    /// Quantiles of response time, a failure being +∞, milliseconds.
    pub response_time_or_failure: FailureAware,
    /// Rates over the time from the first start to the last end.
    pub throughput: Throughput,
    /// How many requests were good, where it was said what that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// How many questions were answered rightly, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// How well the bytes could be timed, and what was odd about the responses.
    pub wire: WireSummary,
    /// The same of the records of each cache mode, where there are several: `cold` and `warm`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_cache: BTreeMap<&'static str, Summary>,
}

/// How well the bytes of a run could be timed, and what was odd about its responses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WireSummary {
    /// Chunks with tokens whose instant is their own.
    pub exact_chunks: u64,
    /// Chunks with tokens that shared a read with later bytes, so that they may have come earlier.
    pub merged_chunks: u64,
    /// Records by the clock of their instants, those that occurred.
    pub clocks: BTreeMap<&'static str, u64>,
    /// Records by what was odd about the response, those notes that occurred.
    pub notes: BTreeMap<&'static str, u64>,
    /// Output tokens asked for, of `ok` requests whose tokens were counted.
    pub output_requested: u64,
    /// Output tokens of the same requests.
    pub output_delivered: u64,
}

/// Statistics per metric; `None` where no record has one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// Start to first token, ms.
    pub ttft: Option<Stats>,
    /// Start to first token that is not reasoning, ms.
    pub ttfo: Option<Stats>,
    /// Mean time between tokens of one request, ms.
    pub itl: Option<Stats>,
    /// Time between chunks, ms.
    pub chunk_gap: Option<Stats>,
    /// Start to last token, ms.
    pub service_time: Option<Stats>,
    /// Due to last token, ms.
    pub response_time: Option<Stats>,
    /// Due to first token, ms.
    pub response_ttft: Option<Stats>,
    /// DNS, TCP and TLS of new connections, ms.
    pub connect_time: Option<Stats>,
    /// Tokens per second of the decode phase of one request.
    pub output_rate: Option<Stats>,
    /// Prompt tokens that the server took from its prefix cache, of `ok` requests of which it
    /// said so.
    pub cached_length: Option<Stats>,
    /// Prompt tokens as the server counted them.
    pub input_length: Option<Stats>,
    /// Output tokens as the server counted them.
    pub output_length: Option<Stats>,
    /// Due to a free slot, ms; the server's delay.
    pub slot_wait: Option<Stats>,
    /// Our own delay, ms.
    pub own_lag: Option<Stats>,
}

/// Quantiles in which failures count; `None` with fewer than 1/(1−q) records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureAware {
    /// `ok` records and failures.
    pub count: u64,
    /// Failures among them.
    pub never: u64,
    /// The middle.
    pub p50: Option<Quantile>,
    /// The slowest tenth begins here.
    pub p90: Option<Quantile>,
    /// The slowest twentieth begins here.
    pub p95: Option<Quantile>,
    /// The slowest hundredth begins here.
    pub p99: Option<Quantile>,
}

/// Rates of `ok` requests; `None` where no time passed or the server counted no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Throughput {
    /// From the first start to the last end, seconds.
    pub duration_s: Option<f64>,
    /// `ok` requests per second.
    pub requests_per_s: Option<f64>,
    /// Output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Input and output tokens per second.
    pub total_tokens_per_s: Option<f64>,
}

/// How many requests were good.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Goodput {
    /// The most that each latency of a good request may be, milliseconds.
    pub limits_ms: BTreeMap<&'static str, f64>,
    /// Requests that count for or against the server.
    pub events: u64,
    /// Those that were answered and hold every limit.
    pub good: u64,
    /// Those that were answered and hold each limit.
    pub good_by: BTreeMap<&'static str, u64>,
    /// Good ones as a share of all that count; `None` if none does.
    pub good_share: Option<f64>,
    /// Good requests per second, from the first start to the last end.
    pub requests_per_s: Option<f64>,
}

/// The latencies that are kept, and the [`Measure`] each comes from.
const LATENCIES: [Measure; 10] = [
    Measure::Ttft,
    Measure::Ttfo,
    Measure::Itl,
    Measure::ServiceTime,
    Measure::ResponseTime,
    Measure::ResponseTtft,
    Measure::ConnectTime,
    Measure::SlotWait,
    Measure::TtftOrFailure,
    Measure::ResponseTimeOrFailure,
];

/// Collects records until the run is over.
#[derive(Debug, Clone)]
pub struct SummaryBuilder {
    closed_loop: bool,
    outcomes: [u64; Outcome::ALL.len()],
    phases: Phases,
    lagged: u64,
    /// In the order of [`LATENCIES`].
    latencies: [Values; LATENCIES.len()],
    chunk_gap: Values,
    own_lag: Values,
    output_rate: Values,
    cached_length: Values,
    input_length: Values,
    output_length: Values,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    first_start: Option<MonoTime>,
    last_end: Option<MonoTime>,
    wire: WireTotals,
    slo: SloTotals,
    answers: AnswerTotals,
    /// For each cache mode, where there are several.
    by_cache: Vec<(CacheMode, Self)>,
}

impl SummaryBuilder {
    /// Nothing collected yet of a run over `streams`.
    #[must_use]
    pub fn new(streams: &[Arc<Stream>]) -> Self {
        Self::with_cap(streams, EXACT)
    }

    /// [`Self::new`], keeping at most `cap` values per metric.
    #[must_use]
    pub fn with_cap(streams: &[Arc<Stream>], cap: usize) -> Self {
        let values = || Values::new(cap);
        let of = |mode: CacheMode| streams.iter().filter(move |stream| stream.cache == mode);
        let modes = [CacheMode::Cold, CacheMode::Warm].map(|mode| (mode, of(mode)));
        let is_mixed = modes.iter().all(|(_, of)| of.clone().next().is_some());
        let parts = modes.into_iter().filter(|_| is_mixed).map(|(mode, of)| {
            let of: Vec<_> = of.cloned().collect();
            (mode, Self::with_cap(&of, cap))
        });
        Self {
            by_cache: parts.collect(),
            closed_loop: streams.iter().any(|stream| stream.closed_loop),
            outcomes: [0; Outcome::ALL.len()],
            phases: Phases::default(),
            lagged: 0,
            latencies: std::array::from_fn(|_| values()),
            chunk_gap: values(),
            own_lag: values(),
            output_rate: values(),
            cached_length: values(),
            input_length: values(),
            output_length: values(),
            input_tokens: None,
            output_tokens: None,
            first_start: None,
            last_end: None,
            wire: WireTotals::default(),
            slo: SloTotals::default(),
            answers: AnswerTotals::default(),
        }
    }

    /// Counts how many requests hold the limits of `slo`.
    #[must_use]
    pub fn held_to(mut self, slo: Slo) -> Self {
        self.slo = SloTotals::new(slo);
        let parts = self.by_cache.into_iter();
        self.by_cache = parts
            .map(|(mode, part)| (mode, part.held_to(slo)))
            .collect();
        self
    }

    /// Adds one record.
    pub fn observe(&mut self, observed: &Observed) {
        let record = &observed.record;
        self.phases.observe(record);
        let mode = record.stream.cache;
        if let Some((_, part)) = self.by_cache.iter_mut().find(|(of, _)| *of == mode) {
            part.observe(observed);
        }
        if !record.is_measured() {
            return;
        }
        self.outcomes[record.outcome as usize] += 1;
        self.lagged += u64::from(record.is_lagged());
        self.observe_span(record);
        self.wire.observe(record);
        self.slo.observe(record);
        self.answers.observe(record);
        for (measure, values) in LATENCIES.into_iter().zip(&mut self.latencies) {
            match measure.read(record) {
                Reading::Absent => {}
                Reading::Value(seconds) => values.add(seconds * MS),
                Reading::Never => values.add(f64::INFINITY),
            }
        }
        if record.outcome != Outcome::Cancelled
            && let Some(lag) = record.own_lag()
        {
            self.own_lag.add(in_ms(lag));
        }
        if record.outcome == Outcome::Ok {
            self.observe_ok(record);
        }
    }

    fn observe_span(&mut self, record: &RequestRecord) {
        if let Some(start) = record.timeline.start {
            self.first_start = Some(self.first_start.map_or(start, |first| first.min(start)));
        }
        if let Some(end) = record.timeline.end {
            self.last_end = Some(self.last_end.map_or(end, |last| last.max(end)));
        }
    }

    fn observe_ok(&mut self, record: &RequestRecord) {
        if record.shows_tokens() {
            for gap in record.chunks.gaps() {
                self.chunk_gap.add(in_ms(gap));
            }
        }
        if let Reading::Value(rate) = Measure::OutputRate.read(record) {
            self.output_rate.add(rate);
        }
        if let Some(cached) = record.tokens.cached {
            self.cached_length.add(f64::from(cached));
        }
        if let Some(input) = record.tokens.input {
            self.input_length.add(f64::from(input));
            *self.input_tokens.get_or_insert(0) += u64::from(input);
        }
        if record.tokens.source != Some(TokenSource::Chunks)
            && let Some(output) = record.tokens.output
        {
            self.output_length.add(f64::from(output));
            *self.output_tokens.get_or_insert(0) += u64::from(output);
        }
    }

    /// The summary of what was collected.
    #[expect(
        clippy::similar_names,
        reason = "TTFT and TTFO are the terms of the field"
    )]
    #[must_use]
    pub fn finish(mut self) -> Summary {
        let throughput = self.throughput();
        let goodput = Goodput::of(&self.slo, throughput.duration_s);
        let [
            ttft,
            ttfo,
            itl,
            service_time,
            response_time,
            response_ttft,
            connect_time,
            slot_wait,
            ttft_or_failure,
            response_time_or_failure,
        ] = &mut self.latencies;
        Summary {
            schema: SCHEMA,
            closed_loop: self.closed_loop,
            records: self.outcomes.iter().sum(),
            outcomes: Outcome::ALL
                .into_iter()
                .zip(self.outcomes)
                .filter(|(_, count)| *count > 0)
                .map(|(outcome, count)| (outcome.name(), count))
                .collect(),
            phases: self.phases,
            lagged: self.lagged,
            ttft_or_failure: FailureAware::of(ttft_or_failure),
            response_time_or_failure: FailureAware::of(response_time_or_failure),
            metrics: Metrics {
                ttft: ttft.stats("ms"),
                ttfo: ttfo.stats("ms"),
                itl: itl.stats("ms"),
                chunk_gap: self.chunk_gap.stats("ms"),
                service_time: service_time.stats("ms"),
                response_time: response_time.stats("ms"),
                response_ttft: response_ttft.stats("ms"),
                connect_time: connect_time.stats("ms"),
                output_rate: self.output_rate.stats("tokens/s"),
                cached_length: self.cached_length.stats("tokens"),
                input_length: self.input_length.stats("tokens"),
                output_length: self.output_length.stats("tokens"),
                slot_wait: slot_wait.stats("ms"),
                own_lag: self.own_lag.stats("ms"),
            },
            throughput,
            goodput,
            answers: self.answers.summary(),
            wire: WireSummary::of(&self.wire),
            by_cache: self
                .by_cache
                .into_iter()
                .map(|(mode, part)| (mode.name(), part.finish()))
                .collect(),
        }
    }

    fn throughput(&self) -> Throughput {
        let duration_s = self
            .last_end
            .zip(self.first_start)
            .map(|(end, start)| end.since(start).as_secs_f64())
            .filter(|seconds| *seconds > 0.0);
        let per_s = |n: Option<u64>| Some(rank::count(n?) / duration_s?);
        let total = self.input_tokens.zip(self.output_tokens);
        Throughput {
            duration_s,
            requests_per_s: per_s(Some(self.outcomes[Outcome::Ok as usize])),
            output_tokens_per_s: per_s(self.output_tokens),
            total_tokens_per_s: per_s(total.map(|(input, output)| input + output)),
        }
    }
}

impl Goodput {
    /// What `totals` counted in `duration_s`; `None` without limits.
    fn of(totals: &SloTotals, duration_s: Option<f64>) -> Option<Self> {
        let (_, good) = totals.good().find(|(name, _)| *name == slo::ALL)?;
        let events = totals.events();
        let limits = totals.slo().limits();
        Some(Self {
            limits_ms: limits
                .map(|(metric, limit)| (metric.name(), in_ms(limit.at_most)))
                .collect(),
            events,
            good,
            good_by: totals
                .good()
                .filter(|(name, _)| *name != slo::ALL)
                .collect(),
            good_share: (events > 0).then(|| rank::count(good) / rank::count(events)),
            requests_per_s: duration_s.map(|seconds| rank::count(good) / seconds),
        })
    }
}

impl WireSummary {
    /// What `wire` counted, without what never occurred.
    #[must_use]
    pub fn of(wire: &WireTotals) -> Self {
        let (output_requested, output_delivered) = wire.output();
        let clocks = wire.clocks().filter(|(_, count)| *count > 0);
        let notes = wire.notes().filter(|(_, count)| *count > 0);
        Self {
            exact_chunks: wire.exact(),
            merged_chunks: wire.merged(),
            clocks: clocks.map(|(clock, count)| (clock.name(), count)).collect(),
            notes: notes.map(|(note, count)| (note.name(), count)).collect(),
            output_requested,
            output_delivered,
        }
    }
}

impl FailureAware {
    fn of(values: &mut Values) -> Self {
        Self {
            count: values.count(),
            never: values.infinite(),
            p50: values.stated(0.5),
            p90: values.stated(0.9),
            p95: values.stated(0.95),
            p99: values.stated(0.99),
        }
    }
}

fn in_ms(span: Duration) -> f64 {
    span.as_secs_f64() * MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, ok, refused, stream};
    use crate::measurement::{RefusedReason, SloLimit, SloMetric};

    fn close(found: Option<f64>, wanted: f64) {
        let found = found.expect("there is a value");
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    }

    #[test]
    fn a_small_run_by_hand() {
        let stream = stream(0);
        let mut builder = SummaryBuilder::new(&[Arc::clone(&stream)]);
        // Starts at 1 ms, 1,001 ms …; the last ends at 3,001 + 41 ms.
        for (due, tokens) in [
            (0, [11, 21, 31]),
            (1_000, [12, 22, 32]),
            (2_000, [13, 23, 33]),
            (3_000, [21, 31, 41]),
        ] {
            builder.observe(&ok(&stream, due, &tokens));
        }
        builder.observe(&failed(&stream, 500, Outcome::HttpStatus, Some(500)));
        builder.observe(&refused(&stream, 600, RefusedReason::Budget));
        let summary = builder.finish();
        assert_eq!(summary.records, 6);
        assert_eq!(
            summary.outcomes,
            BTreeMap::from([("ok", 4), ("http_status", 1), ("refused", 1)])
        );
        let ttft = summary.metrics.ttft.as_ref().expect("four values");
        assert_eq!(ttft.count, 4);
        close(Some(ttft.mean), 14.25);
        close(Some(ttft.min), 11.0);
        close(Some(ttft.max), 21.0);
        close(Some(ttft.std), 3.960_744_879_438_715);
        close(ttft.p50, 12.0);
        close(ttft.p75, 13.0);
        assert_eq!(ttft.p90, None, "a p90 needs ten values");
        let gap = summary.metrics.chunk_gap.as_ref().expect("eight values");
        assert_eq!(gap.count, 8);
        close(Some(gap.std), 0.0);
        assert_eq!(summary.metrics.connect_time, None);
        assert_eq!(summary.ttft_or_failure.count, 5);
        assert_eq!(summary.ttft_or_failure.never, 1);
        let Some(Quantile::Value(p50)) = summary.ttft_or_failure.p50 else {
            panic!("the third of five values");
        };
        close(Some(p50), 13.0);
        close(summary.throughput.duration_s, 3.041);
        close(summary.throughput.requests_per_s, 4.0 / 3.041);
        close(summary.throughput.output_tokens_per_s, 12.0 / 3.041);
        close(summary.throughput.total_tokens_per_s, 92.0 / 3.041);
    }

    #[test]
    fn good_requests_are_those_within_all_limits() {
        let stream = stream(0);
        let at_most = |ms| SloLimit {
            at_most: Duration::from_millis(ms),
            objective: None,
        };
        let slo = Slo::NONE
            .with_limit(SloMetric::Ttft, at_most(12))
            .with_limit(SloMetric::Itl, at_most(10));
        let mut builder = SummaryBuilder::new(&[Arc::clone(&stream)]).held_to(slo);
        // The first starts at 1 ms, the last ends at 3,001 + 999 ms.
        for (due, tokens) in [
            (0, [11, 21, 31]),
            (1_000, [12, 22, 33]),
            (2_000, [13, 23, 33]),
            (3_000, [12, 22, 32]),
        ] {
            builder.observe(&ok(&stream, due, &tokens));
        }
        let mut failed = failed(&stream, 3_000, Outcome::HttpStatus, Some(500));
        failed.record.timeline.end = Some(MonoTime::from_nanos(4_001_000_000));
        builder.observe(&failed);
        builder.observe(&refused(&stream, 600, RefusedReason::Budget));
        let goodput = builder.finish().goodput.expect("there are limits");
        assert_eq!((goodput.events, goodput.good), (5, 2));
        assert_eq!(goodput.good_by, BTreeMap::from([("ttft", 3), ("itl", 3)]));
        assert_eq!(
            goodput.limits_ms,
            BTreeMap::from([("ttft", 12.0), ("itl", 10.0)])
        );
        close(goodput.good_share, 0.4);
        close(goodput.requests_per_s, 0.5);
    }

    #[test]
    fn nothing_is_null_and_never_zero() {
        let json = serde_json::to_value(SummaryBuilder::new(&[]).finish()).expect("it is JSON");
        assert_eq!(json["schema"], "tokencanary.summary/1");
        assert_eq!(json["records"], 0);
        assert!(json["metrics"]["ttft"].is_null());
        assert!(json["throughput"]["requests_per_s"].is_null());
    }

    #[test]
    fn a_quantile_among_failures_is_never() {
        let stream = stream(0);
        let mut builder = SummaryBuilder::new(&[Arc::clone(&stream)]);
        builder.observe(&ok(&stream, 0, &[10]));
        builder.observe(&failed(&stream, 1, Outcome::StreamCut, Some(200)));
        builder.observe(&failed(&stream, 2, Outcome::Connect, None));
        let json = serde_json::to_value(builder.finish()).expect("it is JSON");
        assert_eq!(json["response_time_or_failure"]["p50"], "never");
        assert_eq!(json["metrics"]["response_time"]["count"], 1);
    }
}
