//! What the requests of one stream met, kept long enough to be looked at as one span of time.

use std::collections::VecDeque;
use std::time::Duration;

use super::evidence::{ClientSide, OwnSide, Spread};
use crate::clock::MonoTime;
use crate::measurement::{Outcome, RequestRecord, Slo};

/// Requests are kept for this long.
const KEPT: Duration = Duration::from_mins(5);
/// And at most so many: beyond them the span that is looked at is shorter.
const MOST: usize = 8_192;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Failed,
    /// Failed, since no first token came in time.
    Silent,
}

/// What is kept of one request.
#[derive(Debug, Clone, Copy)]
struct Seen {
    ended: MonoTime,
    fate: Fate,
    is_buffered: bool,
    is_lagged: bool,
    ttft: Option<f64>,
    itl: Option<f64>,
    lag: Option<f64>,
    tokens: Option<f64>,
    /// Input tokens, and those of them that came from the server's cache.
    cached: Option<(f64, f64)>,
    /// Round trip time of its connection, and segments that were sent again.
    tcp: Option<(f64, Option<f64>)>,
}

/// The last requests of one stream, by the instant at which each ended.
///
/// By the end, not by the intended time: it is about what happens now, and a request that hangs
/// says so only when it is given up.
#[derive(Debug, Clone)]
pub struct ClientLog {
    slo: Slo,
    seen: VecDeque<Seen>,
}

impl ClientLog {
    /// Nothing yet of a stream that is held to `slo`.
    #[must_use]
    pub const fn new(slo: Slo) -> Self {
        Self {
            slo,
            seen: VecDeque::new(),
        }
    }

    /// Adds a request that has ended. What counts for nobody is left out.
    pub fn observe(&mut self, record: &RequestRecord) {
        let is_ok = record.outcome == Outcome::Ok;
        if !record.is_measured() || !(is_ok || record.is_failure()) {
            return;
        }
        let ended = record.timeline.end.unwrap_or(record.timeline.intended);
        let is_buffered = record.is_buffered();
        // What was held back came in one read, which is not our doing.
        let is_lagged = record.is_lagged() && !is_buffered;
        let clear = is_ok && !is_lagged && !is_buffered;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let input = record.tokens.input.map(f64::from);
        let output = record.tokens.output.map(f64::from);
        self.push(Seen {
            ended,
            fate: fate(record.outcome),
            is_buffered,
            is_lagged,
            ttft: seconds(record.ttft()).filter(|_| clear),
            itl: seconds(record.itl()).filter(|_| clear),
            lag: seconds(record.own_lag()),
            tokens: input.zip(output).map(|(input, output)| input + output),
            cached: input.zip(record.tokens.cached.map(f64::from)),
            tcp: record
                .tcp
                .map(|tcp| (tcp.rtt.as_secs_f64(), tcp.retransmits.map(f64::from))),
        });
    }

    fn push(&mut self, seen: Seen) {
        let oldest = seen.ended.minus(KEPT);
        self.seen.push_back(seen);
        while self.seen.len() > MOST || self.seen.front().is_some_and(|first| first.ended < oldest)
        {
            self.seen.pop_front();
        }
    }

    /// What ended in (`from`, `to`].
    #[must_use]
    pub fn window(&self, from: MonoTime, to: MonoTime) -> (ClientSide, OwnSide) {
        let seen: Vec<&Seen> = self
            .seen
            .iter()
            .filter(|seen| from < seen.ended && seen.ended <= to)
            .collect();
        let count = |of: fn(&Seen) -> bool| seen.iter().filter(|seen| of(seen)).count() as u64;
        let (input, cached) = seen
            .iter()
            .filter_map(|seen| seen.cached)
            .fold((0.0, 0.0), |(all, from), (input, cached)| {
                (all + input, from + cached)
            });
        let client = ClientSide {
            requests: seen.len() as u64,
            failed: count(|seen| seen.fate != Fate::Answered),
            silent: count(|seen| seen.fate == Fate::Silent),
            buffered: count(|seen| seen.is_buffered),
            ttft: spread(&seen, |seen| seen.ttft),
            itl: spread(&seen, |seen| seen.itl),
            tokens: mean(&seen, |seen| seen.tokens),
            cached: (input > 0.0).then(|| cached / input),
            rtt: spread(&seen, |seen| Some(seen.tcp?.0)).map(|rtt| rtt.p50),
            retransmits: mean(&seen, |seen| seen.tcp?.1),
            limits: self.limits(),
            ..ClientSide::default()
        };
        let own = OwnSide {
            lagged: client.share(count(|seen| seen.is_lagged)),
            lag: spread(&seen, |seen| seen.lag),
            pressure: None,
        };
        (client, own)
    }

    /// How many ended in (`from`, `to`].
    #[must_use]
    pub fn count(&self, from: MonoTime, to: MonoTime) -> usize {
        let ended = self.seen.iter().map(|seen| seen.ended);
        ended.filter(|ended| from < *ended && *ended <= to).count()
    }

    fn limits(&self) -> Vec<(crate::measurement::SloMetric, f64)> {
        self.slo
            .limits()
            .map(|(metric, limit)| (metric, limit.at_most.as_secs_f64()))
            .collect()
    }
}

/// Of an outcome that counts for or against the server.
const fn fate(outcome: Outcome) -> Fate {
    match outcome {
        Outcome::Ok => Fate::Answered,
        Outcome::TimeoutFirstToken => Fate::Silent,
        _ => Fate::Failed,
    }
}

fn values(seen: &[&Seen], of: impl Fn(&Seen) -> Option<f64>) -> Vec<f64> {
    seen.iter().filter_map(|seen| of(seen)).collect()
}

fn mean(seen: &[&Seen], of: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
    let values = values(seen, of);
    #[expect(clippy::cast_precision_loss, reason = "requests of one window")]
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The values at ranks ⌈n/2⌉ and ⌈19 n/20⌉.
fn spread(seen: &[&Seen], of: impl Fn(&Seen) -> Option<f64>) -> Option<Spread> {
    let mut values = values(seen, of);
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: usize| {
        values[(values.len() * share)
            .div_ceil(20)
            .saturating_sub(1)
            .min(last)]
    };
    #[expect(clippy::cast_precision_loss, reason = "at most 8,192")]
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Spread {
        mean,
        p50: at(10),
        p95: at(19),
    })
}

#[cfg(test)]
impl ClientLog {
    /// A good request that ended at `at` with that time to first token.
    pub(super) fn add(&mut self, at: MonoTime, ttft: f64) {
        let seen = Seen {
            ended: at,
            fate: Fate::Answered,
            is_buffered: false,
            is_lagged: false,
            ttft: Some(ttft),
            itl: None,
            lag: None,
            tokens: None,
            cached: None,
            tcp: None,
        };
        self.push(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at_s: u64, ttft: f64) -> Seen {
        Seen {
            ended: MonoTime::ZERO + Duration::from_secs(at_s),
            fate: Fate::Answered,
            is_buffered: false,
            is_lagged: false,
            ttft: Some(ttft),
            itl: None,
            lag: Some(0.001),
            tokens: Some(100.0),
            cached: Some((80.0, 20.0)),
            tcp: Some((0.001, Some(0.0))),
        }
    }

    #[test]
    fn a_window_has_what_ended_in_it() {
        let mut log = ClientLog::new(Slo::default());
        for at in 1..=40_u32 {
            log.seen.push_back(seen(u64::from(at), f64::from(at)));
        }
        log.seen[39].fate = Fate::Failed;
        log.seen[39].ttft = None;
        let at = |second| MonoTime::ZERO + Duration::from_secs(second);
        let (client, own) = log.window(at(20), at(40));
        assert_eq!(client.requests, 20);
        assert_eq!(client.failed, 1);
        // 21 to 39: the 10th of 19 and the 19th of 19.
        let ttft = client.ttft.expect("there are some");
        assert!((ttft.p50 - 30.0).abs() < 1e-9);
        assert!((ttft.p95 - 39.0).abs() < 1e-9);
        assert_eq!(client.itl, None);
        assert_eq!(client.tokens, Some(100.0));
        assert_eq!(client.cached, Some(0.25));
        assert_eq!((client.rtt, client.retransmits), (Some(0.001), Some(0.0)));
        assert_eq!(own.lagged, Some(0.0));
        let (nothing, own) = log.window(at(50), at(60));
        assert_eq!(nothing.requests, 0);
        assert_eq!(nothing.cached, None);
        assert_eq!(own.lagged, None);
    }
}
