//! How many requests were good, and the limits that histograms count exactly.
//!
//! Every request that counts for or against the server is one event of each objective; one whose
//! latency is missing is an event that was not good.

use std::sync::Arc;
use std::time::Duration;

use super::measure::Measure;
use super::rank;
use crate::measurement::{RequestRecord, Slo, SloMetric};

/// Label of the requests that were answered.
pub const SUCCESS: &str = "success";
/// Label of the requests that hold every limit: goodput.
pub const ALL: &str = "all";

/// How many requests there were, and how many of them were good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SloCounts {
    events: u64,
    ok: u64,
    good: u64,
    holding: [u64; SloMetric::ALL.len()],
}

impl SloCounts {
    /// Adds one record, held to `slo`.
    pub fn observe(&mut self, slo: &Slo, record: &RequestRecord) {
        let Some(judged) = slo.judge(record) else {
            return;
        };
        self.events += 1;
        self.ok += u64::from(judged.is_ok);
        self.good += u64::from(judged.is_good);
        for (metric, count) in SloMetric::ALL.into_iter().zip(&mut self.holding) {
            *count += u64::from(judged.holds(metric));
        }
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.events += other.events;
        self.ok += other.ok;
        self.good += other.good;
        for (mine, theirs) in self.holding.iter_mut().zip(other.holding) {
            *mine += theirs;
        }
    }
}

/// Good requests of one stream in a span of time, by objective.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SloTotals {
    slo: Slo,
    counts: SloCounts,
}

/// How a stream stands with one objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// The limit by its name, [`SUCCESS`] or [`ALL`].
    pub name: &'static str,
    /// The most that the latency may be.
    pub limit: Option<Duration>,
    /// Share of requests that is to be good.
    pub objective: Option<f64>,
    /// Requests that were good.
    pub good: u64,
    /// Requests that count for or against the server.
    pub events: u64,
}

impl Standing {
    /// Good requests as a share of those that count; `None` if none does.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.events > 0).then(|| rank::count(self.good) / rank::count(self.events))
    }

    /// How many times faster than it may be the error budget is spent: the share of bad requests
    /// as a multiple of the share that the objective allows.
    #[must_use]
    pub fn burn_rate(&self) -> Option<f64> {
        let allowed = 1.0 - self.objective?;
        let bad = rank::count(self.events.checked_sub(self.good)?);
        (self.events > 0).then(|| bad / rank::count(self.events) / allowed)
    }
}

impl SloTotals {
    /// Nothing observed yet of a stream that is held to `slo`.
    #[must_use]
    pub fn new(slo: Slo) -> Self {
        Self::of(slo, SloCounts::default())
    }

    /// What was counted of a stream that is held to `slo`.
    #[must_use]
    pub const fn of(slo: Slo, counts: SloCounts) -> Self {
        Self { slo, counts }
    }

    /// Adds one record.
    pub fn observe(&mut self, record: &RequestRecord) {
        self.counts.observe(&self.slo, record);
    }

    /// What the stream is held to.
    #[must_use]
    pub const fn slo(&self) -> &Slo {
        &self.slo
    }

    /// Requests that count for or against the server.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.counts.events
    }

    /// Good requests by objective: each limit by its name, [`SUCCESS`] if it has an objective,
    /// and [`ALL`]. None for a stream that is held to nothing.
    pub fn good(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.standings().map(|one| (one.name, one.good))
    }

    /// How the stream stands with each objective, in the order of [`Self::good`].
    pub fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        let counts = &self.counts;
        let one = |name, objective, good| Standing {
            name,
            limit: None,
            objective,
            good,
            events: counts.events,
        };
        let limits = self.slo.limits().map(move |(metric, limit)| {
            let good = counts.holding[metric as usize];
            Standing {
                limit: Some(limit.at_most),
                ..one(metric.name(), limit.objective, good)
            }
        });
        let success = self.slo.success();
        let success = success.map(|objective| one(SUCCESS, Some(objective), counts.ok));
        let all = (!self.slo.is_none()).then(|| one(ALL, None, counts.good));
        limits.chain(success).chain(all)
    }
}

/// The limits of all streams, in seconds, by the measure whose histograms count them exactly.
/// All streams have them all: the sum of their buckets is right then. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactBounds(Arc<[Box<[f64]>; Measure::ALL.len()]>);

impl ExactBounds {
    /// The limits of `slos`, each once, ascending.
    #[must_use]
    pub fn of<'a>(slos: impl Iterator<Item = &'a Slo>) -> Self {
        let mut bounds: [Vec<f64>; Measure::ALL.len()] = Default::default();
        for (metric, limit) in slos.flat_map(Slo::limits) {
            for measure in measures(metric) {
                bounds[*measure as usize].push(limit.at_most.as_secs_f64());
            }
        }
        Self(Arc::new(bounds.map(|mut bounds| {
            bounds.sort_by(f64::total_cmp);
            bounds.dedup_by(|a, b| a.total_cmp(b).is_eq());
            bounds.into()
        })))
    }

    /// Those of `measure`.
    #[must_use]
    pub fn at(&self, measure: Measure) -> &[f64] {
        &self.0[measure as usize]
    }
}

/// The measures that a limit of `metric` is a bound of.
const fn measures(metric: SloMetric) -> &'static [Measure] {
    match metric {
        SloMetric::Ttft => &[Measure::Ttft, Measure::TtftOrFailure],
        SloMetric::Ttfo => &[Measure::Ttfo],
        SloMetric::Itl => &[Measure::Itl],
        SloMetric::ServiceTime => &[Measure::ServiceTime],
        SloMetric::ResponseTtft => &[Measure::ResponseTtft],
        SloMetric::ResponseTime => &[Measure::ResponseTime, Measure::ResponseTimeOrFailure],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, ok, refused, stream};
    use crate::measurement::{Note, Observed, Outcome, RefusedReason, SloLimit};

    const fn at_most(ms: u64) -> SloLimit {
        SloLimit {
            at_most: Duration::from_millis(ms),
            objective: Some(0.95),
        }
    }

    /// TTFT at most 200 ms, ITL at most 20 ms.
    const SLO: Slo = Slo::NONE
        .with_limit(SloMetric::Ttft, at_most(200))
        .with_limit(SloMetric::Itl, at_most(20))
        .with_success(0.99);

    fn good(slo: Slo, records: &[Observed]) -> (u64, Vec<(&'static str, u64)>) {
        let mut totals = SloTotals::new(slo);
        for observed in records {
            totals.observe(&observed.record);
        }
        (totals.events(), totals.good().collect())
    }

    #[test]
    fn a_request_is_good_if_it_was_answered_and_every_limit_holds() {
        let stream = stream(0);
        let records = [
            ok(&stream, 0, &[100, 110, 120]),
            // At the limit of both.
            ok(&stream, 0, &[200, 220, 240]),
            // TTFT is 1 ms too long.
            ok(&stream, 0, &[201, 211, 221]),
            // ITL is 21 ms.
            ok(&stream, 0, &[100, 121, 142]),
            // One token has no ITL.
            ok(&stream, 0, &[100]),
            failed(&stream, 0, Outcome::TimeoutGap, Some(200)),
            refused(&stream, 0, RefusedReason::InFlight),
        ];
        assert_eq!(
            good(SLO, &records),
            (7, vec![("ttft", 4), ("itl", 3), ("success", 5), ("all", 2)])
        );
    }

    #[test]
    fn what_counts_for_nobody_is_no_event() {
        let stream = stream(0);
        let mut cancelled = ok(&stream, 0, &[100, 110]);
        cancelled.record.outcome = Outcome::Cancelled;
        let records = [
            cancelled,
            refused(&stream, 0, RefusedReason::Budget),
            refused(&stream, 0, RefusedReason::Shutdown),
            refused(&stream, 0, RefusedReason::OwnLag),
            refused(&stream, 0, RefusedReason::OwnLimit),
        ];
        assert_eq!(
            good(SLO, &records),
            (0, vec![("ttft", 0), ("itl", 0), ("success", 0), ("all", 0)])
        );
    }

    #[test]
    fn a_failure_that_was_fast_holds_no_limit() {
        let stream = stream(0);
        let mut cut = ok(&stream, 0, &[100, 110]);
        cut.record.outcome = Outcome::StreamCut;
        let slo = Slo::NONE.with_limit(SloMetric::Ttft, at_most(200));
        assert_eq!(
            good(slo, &[cut]),
            (1, vec![("ttft", 0), ("all", 0)]),
            "without an objective of success there is no series of it"
        );
    }

    #[test]
    fn what_was_held_back_shows_no_tokens_and_still_has_its_service_time() {
        let stream = stream(0);
        let mut held = ok(&stream, 0, &[100, 110]);
        held.record.notes.add(Note::Buffered);
        let slo = Slo::NONE
            .with_limit(SloMetric::Ttft, at_most(200))
            .with_limit(SloMetric::ServiceTime, at_most(200))
            .with_limit(SloMetric::ResponseTime, at_most(111));
        assert_eq!(
            good(slo, &[held]),
            (
                1,
                vec![
                    ("ttft", 0),
                    ("service_time", 1),
                    ("response_time", 1),
                    ("all", 0)
                ]
            )
        );
    }

    #[test]
    fn without_limits_nothing_is_shown() {
        assert_eq!(
            good(Slo::NONE, &[ok(&stream(0), 0, &[100])]),
            (1, Vec::new())
        );
    }

    #[test]
    fn a_burn_rate_is_the_bad_share_by_what_is_allowed() {
        let stream = stream(0);
        let mut totals = SloTotals::new(SLO);
        let standing = |totals: &SloTotals, name: &str| {
            let mut standings = totals.standings();
            standings
                .find(|one| one.name == name)
                .expect("it is wanted")
        };
        let none = standing(&totals, "ttft");
        assert_eq!((none.share(), none.burn_rate()), (None, None));
        for first in [100, 150, 200, 250] {
            let record = ok(&stream, 0, &[first, first + 10]).record;
            totals.observe(&record);
        }
        let ttft = standing(&totals, "ttft");
        assert_eq!(ttft.limit, Some(Duration::from_millis(200)));
        assert_eq!((ttft.good, ttft.events, ttft.share()), (3, 4, Some(0.75)));
        // A quarter is bad, a twentieth may be.
        assert!((ttft.burn_rate().expect("events") - 5.0).abs() < 1e-9);
        let success = standing(&totals, SUCCESS);
        assert_eq!((success.limit, success.burn_rate()), (None, Some(0.0)));
        let all = standing(&totals, ALL);
        assert_eq!((all.good, all.objective, all.burn_rate()), (3, None, None));
    }

    #[test]
    fn bounds_are_those_of_all_streams_once_and_in_order() {
        let other = Slo::NONE
            .with_limit(SloMetric::Ttft, at_most(150))
            .with_limit(SloMetric::Itl, at_most(20));
        let bounds = ExactBounds::of([SLO, other, Slo::NONE].iter());
        assert_eq!(bounds.at(Measure::Ttft), [0.15, 0.2]);
        assert_eq!(bounds.at(Measure::TtftOrFailure), [0.15, 0.2]);
        assert_eq!(bounds.at(Measure::Itl), [0.02]);
        assert!(bounds.at(Measure::ChunkGap).is_empty());
    }
}
