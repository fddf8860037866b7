//! Both spans of time side by side, and the questions that several rules ask.

use super::{Diagnosis, Fact, Symptom, Unit};
use crate::analysis::cause::{Cause, Confidence};
use crate::analysis::evidence::{Evidence, Gauge, Spread};
use crate::measurement::SloMetric;

/// Medians of fewer requests say little.
const ENOUGH_REQUESTS: u64 = 5;
/// A median this many times as long is slower; windows of a minute of a steady server differ by
/// less than 10 %.
pub(super) const SLOWER: f64 = 1.2;
/// The mean goes with it at least so far.
const MEAN_SLOWER: f64 = 1.1;
/// Differences below this are nobody's trouble, seconds.
const NOTICEABLE: f64 = 0.002;
/// So many more of the requests fail.
const MORE_FAILURES: f64 = 0.05;
/// So many of the answers come in one burst.
const BURSTS: f64 = 0.5;
/// More than this waits on average: the queue is not a moment's.
const WAITING: f64 = 0.5;
/// A KV cache this full takes no request of usual length.
const FULL: f64 = 0.9;

/// A number before and now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) before: f64,
    pub(super) now: f64,
}

impl Change {
    /// How many times as large it is; infinite from nothing.
    pub(super) fn factor(self) -> f64 {
        if self.before > 0.0 {
            self.now / self.before
        } else if self.now > 0.0 {
            f64::INFINITY
        } else {
            1.0
        }
    }

    /// Whether a time got longer by so much that it matters.
    pub(super) fn is_slower(self) -> bool {
        self.factor() >= SLOWER && self.now - self.before >= NOTICEABLE
    }
}

pub(super) struct View<'e> {
    pub(super) now: &'e Evidence,
    pub(super) before: Option<&'e Evidence>,
}

impl<'e> View<'e> {
    pub(super) const fn new(now: &'e Evidence, before: Option<&'e Evidence>) -> Self {
        Self { now, before }
    }

    /// A number of both spans, where both have it.
    pub(super) fn change(&self, of: impl Fn(&Evidence) -> Option<f64>) -> Option<Change> {
        Some(Change {
            before: of(self.before?)?,
            now: of(self.now)?,
        })
    }

    /// Whether a time of the server's or of ours got longer; `None` if one is not known.
    pub(super) fn is_slower(&self, of: impl Fn(&Evidence) -> Option<Spread>) -> Option<bool> {
        let median = self.change(|evidence| Some(of(evidence)?.p50))?;
        let tail = self.change(|evidence| Some(of(evidence)?.p95))?;
        let mean = self.change(|evidence| Some(of(evidence)?.mean))?;
        // Where there are two kinds of requests, the median goes from one kind to the other and
        // back though both are as fast as ever; the mean hardly moves.
        let median_is_slower = median.is_slower() && mean.factor() >= MEAN_SLOWER;
        // The tail of few requests is one of them: it has to be further away.
        Some(median_is_slower || (tail.is_slower() && tail.factor() >= SLOWER * SLOWER))
    }

    fn is_over(&self, metric: SloMetric, of: impl Fn(&Evidence) -> Option<Spread>) -> Option<bool> {
        let limits = &self.now.client.limits;
        let (_, limit) = limits.iter().find(|(of, _)| *of == metric)?;
        Some(of(self.now)?.p95 > *limit)
    }

    /// Whether a latency is out of order. `None`: nothing says what is in order.
    fn is_slow(&self, metric: SloMetric, of: fn(&Evidence) -> Option<Spread>) -> Option<bool> {
        let enough = |evidence: &Evidence| evidence.client.requests >= ENOUGH_REQUESTS;
        if !enough(self.now) {
            return Some(false);
        }
        let than_before = self
            .is_slower(of)
            .filter(|_| self.before.is_some_and(enough));
        let than_asked = self.is_over(metric, of);
        match (than_before, than_asked) {
            (None, None) => None,
            (before, asked) => Some(before == Some(true) || asked == Some(true)),
        }
    }

    pub(super) fn first_is_slow(&self) -> Option<bool> {
        self.is_slow(SloMetric::Ttft, |evidence| evidence.client.ttft)
    }

    pub(super) fn tokens_are_slow(&self) -> Option<bool> {
        self.is_slow(SloMetric::Itl, |evidence| evidence.client.itl)
    }

    pub(super) fn more_fail(&self) -> bool {
        let share = |evidence: &Evidence| evidence.client.share(evidence.client.failed);
        let more = |change: Change| change.now - change.before >= MORE_FAILURES;
        // Failing is wrong whatever was before.
        share(self.now).is_some_and(|now| now >= MORE_FAILURES)
            && self.change(share).is_none_or(more)
    }

    pub(super) fn come_in_bursts(&self) -> bool {
        let client = &self.now.client;
        client
            .share(client.buffered)
            .is_some_and(|share| share >= BURSTS)
    }

    pub(super) fn symptoms(&self) -> Vec<Symptom> {
        [
            (self.first_is_slow() == Some(true), Symptom::SlowFirstToken),
            (self.tokens_are_slow() == Some(true), Symptom::SlowTokens),
            (self.more_fail(), Symptom::Failures),
            (self.come_in_bursts(), Symptom::Bursts),
        ]
        .into_iter()
        .filter_map(|(holds, symptom)| holds.then_some(symptom))
        .collect()
    }

    /// Whether something is out of order; `None`: nothing says what is in order.
    pub(super) fn is_ill(&self) -> Option<bool> {
        match (self.first_is_slow(), self.tokens_are_slow()) {
            (None, None) if !self.more_fail() => None,
            _ => Some(!self.symptoms().is_empty()),
        }
    }

    pub(super) fn waits(&self) -> Option<bool> {
        Some(self.now.server.waiting?.mean >= WAITING)
    }

    pub(super) fn cache_is_full(&self) -> Option<bool> {
        let Gauge { mean, max } = self.now.server.kv_usage?;
        Some(mean >= FULL || max >= 0.98 || self.has_no_room(mean) == Some(true))
    }

    /// Whether what is free on average holds no two requests like ours.
    fn has_no_room(&self, used: f64) -> Option<bool> {
        let free = (1.0 - used) * self.now.server.kv_tokens?;
        Some(free < 2.0 * self.now.client.tokens?)
    }

    /// Whether the engine itself, by its own histograms, got slower.
    pub(super) fn server_is_slower(&self) -> Option<bool> {
        let first = self.is_slower(|evidence| evidence.server.ttft);
        let next = self.is_slower(|evidence| evidence.server.itl);
        match (first, next) {
            (None, None) => None,
            (first, next) => Some(first == Some(true) || next == Some(true)),
        }
    }

    /// A number of both spans as a fact; `None` if it is not known now.
    pub(super) fn fact(
        &self,
        (what, unit): (&str, Unit),
        of: impl Fn(&Evidence) -> Option<f64>,
    ) -> Option<Fact> {
        Some(Fact {
            what: what.to_owned(),
            now: of(self.now)?,
            before: self.before.and_then(of),
            unit,
        })
    }
}

/// A cause that is being argued for.
pub(super) struct Case {
    cause: Cause,
    ill: Option<bool>,
    facts: Vec<Fact>,
    support: bool,
}

impl Case {
    /// A case for `cause`, which explains the symptom `ill`, if that is known. `None` if
    /// nothing is out of order.
    pub(super) fn open(cause: Cause, ill: Option<bool>) -> Option<Self> {
        (ill != Some(false)).then(|| Self {
            cause,
            ill,
            facts: Vec::new(),
            support: false,
        })
    }

    /// A number that it rests on.
    pub(super) fn with(mut self, fact: Option<Fact>) -> Self {
        self.facts.extend(fact);
        self
    }

    /// A further sign, if it `holds`; `None` of it is not known.
    pub(super) fn and(mut self, holds: Option<bool>, fact: Option<Fact>) -> Self {
        if holds == Some(true) {
            self.support = true;
            self.facts.extend(fact);
        }
        self
    }

    pub(super) fn close(self) -> Diagnosis {
        let confidence = match (self.ill, self.support) {
            (Some(true), true) => Confidence::Strong,
            (Some(true), false) => Confidence::Likely,
            _ => Confidence::Possible,
        };
        Diagnosis {
            cause: self.cause,
            confidence,
            facts: self.facts,
        }
    }
}
