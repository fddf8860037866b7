//! What a probe wants of its requests, and whether one request kept it.
//!
//! A request is *good* if its outcome is `ok` and every limit holds; a latency that is missing
//! holds no limit. Cancelled requests, and refusals that are not the server's doing, count for
//! nobody and are not judged. How many were good is counted in `aggregate`.

use std::time::Duration;

use super::{Outcome, RequestRecord};

/// A latency that requests can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SloMetric {
    /// Start to first token.
    Ttft,
    /// Start to first token that is not reasoning.
    Ttfo,
    /// Mean time between tokens of one request.
    Itl,
    /// Start to last token.
    ServiceTime,
    /// Intended time to first token.
    ResponseTtft,
    /// Intended time to last token.
    ResponseTime,
}

impl SloMetric {
    /// Every one, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Ttft,
        Self::Ttfo,
        Self::Itl,
        Self::ServiceTime,
        Self::ResponseTtft,
        Self::ResponseTime,
    ];

    /// The name in the configuration and in labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Ttfo => "ttfo",
            Self::Itl => "itl",
            Self::ServiceTime => "service_time",
            Self::ResponseTtft => "response_ttft",
            Self::ResponseTime => "response_time",
        }
    }

    /// Whether it is about single tokens, which only a stream shows.
    #[must_use]
    pub const fn needs_stream(self) -> bool {
        matches!(
            self,
            Self::Ttft | Self::Ttfo | Self::Itl | Self::ResponseTtft
        )
    }

    /// Its value in `record`; absent where single tokens are not shown.
    #[must_use]
    pub fn of(self, record: &RequestRecord) -> Option<Duration> {
        if self.needs_stream() && !record.shows_tokens() {
            return None;
        }
        match self {
            Self::Ttft => record.ttft(),
            Self::Ttfo => record.ttfo(),
            Self::Itl => record.itl(),
            Self::ServiceTime => record.service_time(),
            Self::ResponseTtft => record.response_ttft(),
            Self::ResponseTime => record.response_time(),
        }
    }
}

/// The most that a latency of one request may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SloLimit {
    /// The limit itself, which still holds it.
    pub at_most: Duration,
    /// Share of requests that are to hold it, in (0, 1); absent where nobody named one.
    pub objective: Option<f64>,
}

/// All that a probe wants of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slo {
    /// In the order of [`SloMetric::ALL`].
    limits: [Option<SloLimit>; SloMetric::ALL.len()],
    success: Option<f64>,
}

impl Slo {
    /// Nothing is wanted.
    pub const NONE: Self = Self {
        limits: [None; SloMetric::ALL.len()],
        success: None,
    };

    /// Holds every request to `limit`.
    #[must_use]
    pub const fn with_limit(mut self, metric: SloMetric, limit: SloLimit) -> Self {
        self.limits[metric as usize] = Some(limit);
        self
    }

    /// Wants a share of `objective`, in (0, 1), of the requests to be answered.
    #[must_use]
    pub const fn with_success(mut self, objective: f64) -> Self {
        self.success = Some(objective);
        self
    }

    /// The limits that were set.
    pub fn limits(&self) -> impl Iterator<Item = (SloMetric, SloLimit)> + '_ {
        SloMetric::ALL
            .into_iter()
            .zip(self.limits)
            .filter_map(|(metric, limit)| Some((metric, limit?)))
    }

    /// Share of requests that are to be answered, if one was set.
    #[must_use]
    pub const fn success(&self) -> Option<f64> {
        self.success
    }

    /// Whether nothing is wanted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// How `record` stands; `None` if it counts for nobody.
    #[must_use]
    pub fn judge(&self, record: &RequestRecord) -> Option<Judged> {
        let is_ok = record.outcome == Outcome::Ok;
        if !is_ok && !record.is_failure() {
            return None;
        }
        let mut judged = Judged {
            is_ok,
            is_good: is_ok,
            holds: [false; SloMetric::ALL.len()],
        };
        for (metric, limit) in self.limits() {
            let holds = is_ok && metric.of(record).is_some_and(|span| span <= limit.at_most);
            judged.holds[metric as usize] = holds;
            judged.is_good &= holds;
        }
        Some(judged)
    }
}

/// How one request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// It was answered.
    pub is_ok: bool,
    /// It was answered and holds every limit.
    pub is_good: bool,
    holds: [bool; SloMetric::ALL.len()],
}

impl Judged {
    /// Whether it was answered and holds the limit of `metric`; `false` where there is none.
    #[must_use]
    pub const fn holds(&self, metric: SloMetric) -> bool {
        self.holds[metric as usize]
    }
}
