//! The cumulative state of one stream since the program started: what `/metrics` shows.
//!
//! Every record counts as one arrival and under exactly one outcome, so these add up.
//! Memory is bounded: a fixed set of histograms and at most [`MAX_STATUSES`] pairs of outcome
//! and status. Windows of time are elsewhere.

use super::answers::AnswerTotals;
use super::conventions::ConventionTotals;
use super::distribution::Distribution;
use super::exemplars::{Exemplar, Exemplars, ExportedSpan};
use super::histogram::Histogram;
use super::measure::{Measure, Reading};
use super::rank;
use super::slo::{ExactBounds, SloTotals};
use super::wire::WireTotals;
use crate::clock::MonoTime;
use crate::measurement::{
    Counts, Observed, Outcome, RefusedReason, RequestRecord, Slo, StallRule, TokenSource,
};

/// Pairs of outcome and HTTP status kept apart; further statuses count without one.
const MAX_STATUSES: usize = 64;

/// Buckets a histogram has room for at once: eight factors of two.
const ROOM: usize = 256;

/// The measures whose values are shown with requests that had them.
const WITH_EXEMPLARS: [Measure; 5] = [
    Measure::Ttft,
    Measure::Itl,
    Measure::ResponseTime,
    Measure::TtftOrFailure,
    Measure::ResponseTimeOrFailure,
];

/// Everything about one stream since the start.
#[derive(Debug, Clone)]
pub struct Totals {
    histograms: [Histogram; Measure::ALL.len()],
    bounds: ExactBounds,
    /// For each of the `bounds`, how many values are at most as large.
    held: [Box<[u64]>; Measure::ALL.len()],
    slo: SloTotals,
    /// In the order of [`WITH_EXEMPLARS`].
    exemplars: [Exemplars; WITH_EXEMPLARS.len()],
    requests: Vec<(Outcome, Option<u16>, u64)>,
    statuses_dropped: u64,
    arrivals: u64,
    measured_ok: u64,
    refused: [u64; RefusedReason::ALL.len()],
    stalls: u64,
    input_tokens: u64,
    output_tokens: u64,
    lagged: u64,
    replaced: u64,
    /// Good ones, and failures.
    excused: [u64; 2],
    last_success: Option<MonoTime>,
    wire: WireTotals,
    answers: AnswerTotals,
    conventions: ConventionTotals,
}

impl Totals {
    /// Nothing observed yet of a stream that is held to `slo`, in a run whose limits are
    /// `bounds`; all storage is allocated here.
    #[must_use]
    pub fn new(slo: Slo, bounds: ExactBounds) -> Self {
        Self {
            histograms: std::array::from_fn(|_| Histogram::with_capacity(ROOM)),
            held: Measure::ALL.map(|measure| vec![0; bounds.at(measure).len()].into()),
            bounds,
            slo: SloTotals::new(slo),
            exemplars: [const { Exemplars::NONE }; WITH_EXEMPLARS.len()],
            requests: expected(),
            statuses_dropped: 0,
            arrivals: 0,
            measured_ok: 0,
            refused: [0; RefusedReason::ALL.len()],
            stalls: 0,
            input_tokens: 0,
            output_tokens: 0,
            lagged: 0,
            replaced: 0,
            excused: [0; 2],
            last_success: None,
            wire: WireTotals::default(),
            answers: AnswerTotals::default(),
            conventions: ConventionTotals::default(),
        }
    }

    /// Adds one record. `stall` says which chunk gaps are stalls, `span` is the record's if it
    /// leaves the program.
    pub fn observe(&mut self, observed: &Observed, stall: StallRule, span: Option<ExportedSpan>) {
        let record = &observed.record;
        self.arrivals += 1;
        self.count_request(record.outcome, record.http_status);
        if record.outcome == Outcome::Refused
            && let Some(reason) = record.refused
        {
            self.refused[position(reason)] += 1;
        }
        self.count_tokens(record);
        if record.is_lagged() {
            self.lagged += 1;
        }
        self.replaced += u64::from(record.replaced_connection);
        if record.outcome == Outcome::Ok {
            self.last_success = self.last_success.max(record.timeline.end);
        }
        self.wire.observe(record);
        self.answers.observe(record);
        self.conventions.count_tokens(record);
        if record.counts == Counts::Never {
            self.excuse(record);
        }
        self.count(record, stall, span);
    }

    /// The part of [`Self::observe`] that says how good the server is; alone, for a record that
    /// was told of before it was known whether it counts.
    pub fn count(&mut self, record: &RequestRecord, stall: StallRule, span: Option<ExportedSpan>) {
        if record.is_measured() {
            self.measure(record, stall);
            if let Some(span) = span {
                self.keep_exemplars(record, span);
            }
        }
    }

    /// A record belongs to a start of the server, which may be known after it was told of.
    pub fn excuse(&mut self, record: &RequestRecord) {
        self.excused[usize::from(record.outcome != Outcome::Ok)] += 1;
    }

    /// Records that count for nobody, since they belong to a start of the server: good ones, and
    /// failures.
    #[must_use]
    pub const fn excused(&self) -> [u64; 2] {
        self.excused
    }

    /// What makes a record part of the latencies. Those of a warm-up are none.
    fn measure(&mut self, record: &RequestRecord, stall: StallRule) {
        self.measured_ok += u64::from(record.outcome == Outcome::Ok);
        self.conventions.measure(record);
        if record.outcome != Outcome::Cancelled {
            self.stalls += as_u64(record.stalls(stall).len());
        }
        self.slo.observe(record);
        for measure in Measure::ALL {
            match measure.read(record) {
                Reading::Absent => {}
                Reading::Value(value) => self.count_value(measure, value),
                Reading::Never => self.histograms[slot(measure)].record_infinite(),
            }
        }
        if record.outcome == Outcome::Ok && record.shows_tokens() {
            let gaps = &mut self.histograms[slot(Measure::ChunkGap)];
            for gap in record.chunks.gaps() {
                gaps.record_duration(gap);
            }
        }
    }

    fn keep_exemplars(&mut self, record: &RequestRecord, span: ExportedSpan) {
        for (measure, kept) in WITH_EXEMPLARS.into_iter().zip(&mut self.exemplars) {
            let value = match measure.read(record) {
                Reading::Absent => continue,
                Reading::Value(value) => value,
                Reading::Never => f64::INFINITY,
            };
            kept.offer(Exemplar { value, span });
        }
    }

    fn count_value(&mut self, measure: Measure, value: f64) {
        self.histograms[slot(measure)].record(value);
        let limits = self.bounds.at(measure).iter();
        for (limit, held) in limits.zip(&mut self.held[slot(measure)]) {
            *held += u64::from(value <= *limit);
        }
    }

    fn count_request(&mut self, outcome: Outcome, status: Option<u16>) {
        let known =
            |entry: &&mut (Outcome, Option<u16>, u64)| (entry.0, entry.1) == (outcome, status);
        if let Some(entry) = self.requests.iter_mut().find(known) {
            entry.2 += 1;
        } else if status.is_none() || self.statuses() < MAX_STATUSES {
            self.requests.push((outcome, status, 1));
        } else {
            self.statuses_dropped += 1;
            self.count_request(outcome, None);
        }
    }

    /// Entries with a status.
    fn statuses(&self) -> usize {
        let mut with = 0;
        for (_, status, _) in &self.requests {
            with += usize::from(status.is_some());
        }
        with
    }

    fn count_tokens(&mut self, record: &RequestRecord) {
        self.input_tokens += u64::from(record.tokens.input.unwrap_or_default());
        if record.tokens.source != Some(TokenSource::Chunks) {
            self.output_tokens += u64::from(record.tokens.output.unwrap_or_default());
        }
    }

    /// The histogram of `measure`.
    #[must_use]
    pub const fn histogram(&self, measure: Measure) -> &Histogram {
        &self.histograms[slot(measure)]
    }

    /// The histogram of `measure` with what is counted beside it.
    #[must_use]
    pub fn distribution(&self, measure: Measure) -> Distribution<'_> {
        Distribution {
            histogram: self.histogram(measure),
            limits: self.bounds.at(measure),
            held: &self.held[slot(measure)],
            exemplars: self.exemplars(measure),
        }
    }

    /// Requests that stand for the values of `measure`; none where none are kept of it.
    #[must_use]
    pub fn exemplars(&self, measure: Measure) -> &Exemplars {
        const NONE: &Exemplars = &Exemplars::NONE;
        let place = WITH_EXEMPLARS.into_iter().position(|of| of == measure);
        place.map_or(NONE, |place| &self.exemplars[place])
    }

    /// Good requests by objective.
    #[must_use]
    pub const fn slo(&self) -> &SloTotals {
        &self.slo
    }

    /// Records by outcome and, where a response head came, HTTP status. What can be foreseen is
    /// there from the start, at 0.
    pub fn requests(&self) -> impl Iterator<Item = (Outcome, Option<u16>, u64)> + '_ {
        self.requests.iter().copied()
    }

    /// Records with `outcome`.
    #[must_use]
    pub fn by_outcome(&self, outcome: Outcome) -> u64 {
        self.requests()
            .filter(|(of, _, _)| *of == outcome)
            .map(|(_, _, count)| count)
            .sum()
    }

    /// Records whose status was not kept apart, because there were too many different ones.
    #[must_use]
    pub const fn statuses_dropped(&self) -> u64 {
        self.statuses_dropped
    }

    /// Values no histogram took, because they were negative or not a number.
    #[must_use]
    pub fn values_refused(&self) -> u64 {
        self.histograms.iter().map(Histogram::refused).sum()
    }

    /// Values in the zero buckets of all histograms.
    #[must_use]
    pub fn values_underflown(&self) -> u64 {
        self.histograms.iter().map(Histogram::underflow).sum()
    }

    /// Finite values too large for the grid, in all histograms.
    #[must_use]
    pub fn values_overflown(&self) -> u64 {
        self.histograms.iter().map(Histogram::overflow).sum()
    }

    /// Records of any kind.
    #[must_use]
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Arrivals that our governor held back for `reason`.
    #[must_use]
    pub const fn refused(&self, reason: RefusedReason) -> u64 {
        self.refused[position(reason)]
    }

    /// Chunk gaps that were stalls.
    #[must_use]
    pub const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Prompt tokens as the server counted them.
    #[must_use]
    pub const fn input_tokens(&self) -> u64 {
        self.input_tokens
    }

    /// Output tokens as the server counted them.
    #[must_use]
    pub const fn output_tokens(&self) -> u64 {
        self.output_tokens
    }

    /// Pooled connections that the server had closed when a request was written on them.
    #[must_use]
    pub const fn replaced(&self) -> u64 {
        self.replaced
    }

    /// When the last `ok` request ended.
    #[must_use]
    pub const fn last_success(&self) -> Option<MonoTime> {
        self.last_success
    }

    /// How well its bytes could be timed, and what was odd about them.
    #[must_use]
    pub const fn wire(&self) -> &WireTotals {
        &self.wire
    }

    /// Questions of known answer by what their answers were worth.
    #[must_use]
    pub const fn answers(&self) -> &AnswerTotals {
        &self.answers
    }

    /// What the `GenAI` conventions define.
    #[must_use]
    pub const fn conventions(&self) -> &ConventionTotals {
        &self.conventions
    }

    /// Records whose own lag was too large for a verdict.
    #[must_use]
    pub const fn lagged(&self) -> u64 {
        self.lagged
    }

    /// Records that count as +∞ in the failure-aware histograms.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.histogram(Measure::ResponseTimeOrFailure).infinite()
    }

    /// Failures as a share of the records that count for or against the server: `ok` and
    /// failures. `None` if none does.
    #[must_use]
    pub fn failure_share(&self) -> Option<f64> {
        let counted = self.measured_ok + self.failures();
        (counted > 0).then(|| rank::count(self.failures()) / rank::count(counted))
    }
}

/// What can be foreseen, at 0: a counter that appears with its first event hides that event from
/// `rate` and `increase`. What fails with a status is not foreseen, since that may be any.
fn expected() -> Vec<(Outcome, Option<u16>, u64)> {
    // One entry per outcome without a status may come on top.
    let mut requests = Vec::with_capacity(MAX_STATUSES + Outcome::ALL.len());
    let foreseen = Outcome::ALL
        .into_iter()
        .filter(|outcome| *outcome != Outcome::HttpStatus);
    requests.extend(foreseen.map(|outcome| (outcome, outcome.usual_status(), 0)));
    requests
}

/// Where `measure` stands in [`Measure::ALL`], which is in the order of declaration.
const fn slot(measure: Measure) -> usize {
    measure as usize
}

/// Where `reason` stands in [`RefusedReason::ALL`].
const fn position(reason: RefusedReason) -> usize {
    match reason {
        RefusedReason::InFlight => 0,
        RefusedReason::Budget => 1,
        RefusedReason::Shutdown => 2,
        RefusedReason::OwnLag => 3,
        RefusedReason::OwnLimit => 4,
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
