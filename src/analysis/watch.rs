//! Looks at every stream again and again, and keeps what was found last.
//!
//! A stream is looked at over the shortest of [`SPANS`] in which enough of its requests ended. A
//! look that finds nothing wrong becomes part of what later ones are held against, once it is
//! certain that nothing had begun by then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::cause::{Cause, Confidence};
use super::diagnosis::{Diagnosis, Finding, diagnose};
use super::evidence::{Build, Evidence, GpuSide, HostSide, ServerSide};
use super::gather::ClientLog;
use super::reference::Reference;
use crate::clock::MonoTime;
use crate::measurement::{RequestRecord, Slo};

/// Spans of time that a stream is looked at over.
const SPANS: [Duration; 3] = [
    Duration::from_mins(1),
    Duration::from_mins(3),
    Duration::from_mins(5),
];
/// A stream is looked at once in this time.
const EVERY: Duration = Duration::from_secs(10);
/// With so many requests a shorter span is enough.
const ENOUGH: usize = 10;
/// A cause is over when so many looks in a row did not find it.
const GONE: u32 = 3;
/// Counts of requests in flight are kept for the longest span at two a second.
const MOST_COUNTS: usize = 1_024;

/// What is known of a server and its machines over a span of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surroundings {
    /// The server.
    pub server: ServerSide,
    /// Its GPUs.
    pub gpu: GpuSide,
    /// Its host.
    pub host: HostSide,
    /// Its release.
    pub build: Build,
    /// Share of the time since the last look in which something of ours waited for a processor.
    pub own_pressure: Option<f64>,
}

/// The last look at a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Its end.
    pub at: MonoTime,
    /// How far back it went.
    pub span: Duration,
    /// What was found.
    pub finding: Finding,
    /// Whether there was a healthy past to hold it against.
    pub has_reference: bool,
}

/// A cause that began to hold, or holds no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Position of the stream.
    pub stream: usize,
    /// The cause; `None`: something is wrong and nothing says why.
    pub cause: Option<Cause>,
    /// What speaks for it, if it began.
    pub began: Option<Diagnosis>,
    /// Whether it holds now.
    pub holds: bool,
}

/// A cause that was found at least once: what the last look said, and for how many it is gone.
#[derive(Debug, Clone, Copy)]
struct Found {
    now: Option<Confidence>,
    missed: u32,
}

/// A stream that is to be watched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WatchedStream {
    /// Position of its target.
    pub target: usize,
    /// Whether its target has one address only.
    pub is_alone: bool,
    /// What its requests are held to.
    pub slo: Slo,
}

#[derive(Debug)]
struct Watched {
    target: usize,
    is_alone: bool,
    log: ClientLog,
    reference: Reference,
    /// The newest healthy look, which is not part of the past yet.
    held: Option<(MonoTime, Evidence)>,
    last: Option<Look>,
    found: BTreeMap<Option<Cause>, Found>,
}

/// Requests of ours in flight to one target: how many, at which instants.
#[derive(Debug, Default)]
struct InFlight(VecDeque<(MonoTime, u32)>);

impl InFlight {
    fn count(&mut self, at: MonoTime, requests: u32) {
        if self.0.len() == MOST_COUNTS {
            self.0.pop_front();
        }
        self.0.push_back((at, requests));
    }

    fn within(&self, from: MonoTime, to: MonoTime) -> impl Iterator<Item = f64> + '_ {
        let inside = self.0.iter().filter(move |(at, _)| from < *at && *at <= to);
        inside.map(|(_, requests)| f64::from(*requests))
    }

    fn mean(&self, from: MonoTime, to: MonoTime) -> Option<f64> {
        let count = self.within(from, to).count();
        #[expect(clippy::cast_precision_loss, reason = "at most 1,024")]
        (count > 0).then(|| self.within(from, to).sum::<f64>() / count as f64)
    }

    /// How many more there are at the end than at the beginning.
    fn growth(&self, from: MonoTime, to: MonoTime) -> Option<f64> {
        Some(self.within(from, to).last()? - self.within(from, to).next()?)
    }
}

/// All streams of a run.
#[derive(Debug)]
pub struct Watch {
    streams: Vec<Watched>,
    in_flight: Vec<InFlight>,
    due: MonoTime,
}

impl Watch {
    /// Watches `streams`, each at the position of its id.
    #[must_use]
    pub fn new(streams: impl IntoIterator<Item = WatchedStream>) -> Self {
        let streams: Vec<Watched> = streams
            .into_iter()
            .map(|stream| Watched {
                target: stream.target,
                is_alone: stream.is_alone,
                log: ClientLog::new(stream.slo),
                reference: Reference::default(),
                held: None,
                last: None,
                found: BTreeMap::new(),
            })
            .collect();
        let targets = streams.iter().map(|one| one.target + 1).max();
        Self {
            in_flight: (0..targets.unwrap_or_default())
                .map(|_| InFlight::default())
                .collect(),
            streams,
            due: MonoTime::ZERO + EVERY,
        }
    }

    /// Whether the next look is due.
    #[must_use]
    pub fn is_due(&self, now: MonoTime) -> bool {
        now >= self.due
    }

    /// Adds a request that has ended.
    pub fn observe(&mut self, record: &RequestRecord) {
        if let Some(one) = self.streams.get_mut(usize::from(record.stream.id.0)) {
            one.log.observe(record);
        }
    }

    /// Says how many requests are in flight to each target.
    pub fn in_flight(&mut self, at: MonoTime, requests: impl IntoIterator<Item = u32>) {
        for (known, requests) in self.in_flight.iter_mut().zip(requests) {
            known.count(at, requests);
        }
    }

    /// Looks at all streams if that is due; `around` says what is known around the stream at
    /// a position between two instants. What began and what is over.
    pub fn look(
        &mut self,
        now: MonoTime,
        mut around: impl FnMut(usize, MonoTime, MonoTime) -> Surroundings,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        if !self.is_due(now) {
            return changes;
        }
        self.due = now + EVERY;
        for position in 0..self.streams.len() {
            let target = self.streams[position].target;
            let span = self.streams[position].span(now);
            let from = now.minus(span);
            let mut evidence = self.evidence(target, position, (from, now));
            let known = around(position, from, now);
            evidence.server = known.server;
            evidence.gpu = known.gpu;
            evidence.host = known.host;
            evidence.build = known.build;
            evidence.own.pressure = known.own_pressure;
            let stream = &mut self.streams[position];
            stream.judge(evidence, now, span);
            changes.extend(stream.changes(position));
        }
        changes
    }

    fn evidence(
        &self,
        target: usize,
        position: usize,
        (from, to): (MonoTime, MonoTime),
    ) -> Evidence {
        let (mut client, own) = self.streams[position].log.window(from, to);
        let seconds = to.since(from).as_secs_f64();
        let in_flight = &self.in_flight[target];
        let of_one = self.streams[position].is_alone;
        client.in_flight = in_flight.mean(from, to).filter(|_| of_one);
        let of_target = self.streams.iter().filter(|one| one.target == target);
        let ended: usize = of_target.map(|one| one.log.count(from, to)).sum();
        if seconds > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "requests of some minutes")]
            let ended = ended as f64;
            client.ends = Some(ended / seconds);
            // What came and did not end is in flight.
            client.arrivals = in_flight
                .growth(from, to)
                .map(|growth| (ended + growth) / seconds);
        }
        Evidence {
            client,
            own,
            ..Evidence::default()
        }
    }

    /// The last look at each stream, in the order of streams; `None` before the first.
    pub fn looks(&self) -> impl Iterator<Item = Option<&Look>> {
        self.streams.iter().map(|one| one.last.as_ref())
    }

    /// Every cause that was found since the start, by stream, with what the last look said of it.
    pub fn found(&self) -> impl Iterator<Item = (usize, Option<Cause>, Option<Confidence>)> + '_ {
        self.streams.iter().enumerate().flat_map(|(stream, one)| {
            let found = one.found.iter();
            found.map(move |(cause, found)| (stream, *cause, found.now))
        })
    }
}

impl Watched {
    fn span(&self, now: MonoTime) -> Duration {
        let [.., longest] = SPANS;
        SPANS
            .into_iter()
            .find(|span| self.log.count(now.minus(*span), now) >= ENOUGH)
            .unwrap_or(longest)
            .min(now.since(MonoTime::ZERO))
    }

    fn judge(&mut self, evidence: Evidence, now: MonoTime, span: Duration) {
        let before = self.reference.median();
        let finding = diagnose(&evidence, before.as_ref());
        let is_healthy = finding.symptoms.is_empty() && evidence.client.requests > 0;
        // The look before this one shares nothing with it: nothing had begun by then.
        if let Some((at, _)) = self.held
            && now.since(at) >= span
        {
            let held = self.held.take().map(|(_, evidence)| evidence);
            if let Some(held) = held.filter(|_| is_healthy) {
                self.reference.add(held);
            }
        }
        // The first moments of a run hold too few requests to hold others against.
        let [.., longest] = SPANS;
        let is_typical = evidence.client.requests >= ENOUGH as u64 || span >= longest;
        if is_healthy && is_typical && self.held.is_none() {
            self.held = Some((now, evidence));
        }
        self.last = Some(Look {
            at: now,
            span,
            finding,
            has_reference: before.is_some(),
        });
    }
    /// Takes the last look over into what was found, and says what changed.
    fn changes(&mut self, stream: usize) -> Vec<Change> {
        let Some(Look { finding, .. }) = &self.last else {
            return Vec::new();
        };
        let mut changes = Vec::new();
        for (cause, found) in &mut self.found {
            let is_there = match cause {
                Some(cause) => finding.causes.iter().any(|one| one.cause == *cause),
                None => finding.is_unknown(),
            };
            if is_there {
                continue;
            }
            found.now = None;
            found.missed = found.missed.saturating_add(1);
            if found.missed == GONE {
                changes.push(Change {
                    stream,
                    cause: *cause,
                    began: None,
                    holds: false,
                });
            }
        }
        let known = finding
            .causes
            .iter()
            .map(|one| (Some(one.cause), one.confidence, Some(one)));
        // What is left of a cause that goes away needs no other word.
        let is_going = self
            .found
            .iter()
            .any(|(cause, found)| cause.is_some() && found.missed < GONE);
        let unknown =
            (finding.is_unknown() && !is_going).then_some((None, Confidence::Possible, None));
        for (cause, confidence, diagnosis) in known.chain(unknown) {
            let before = self.found.insert(
                cause,
                Found {
                    now: Some(confidence),
                    missed: 0,
                },
            );
            if before.is_none_or(|before| before.missed >= GONE) {
                changes.push(Change {
                    stream,
                    cause,
                    began: diagnosis.cloned(),
                    holds: true,
                });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::evidence::Gauge;
    use crate::measurement::SloLimit;
    use crate::measurement::SloMetric;

    fn at(second: u64) -> MonoTime {
        MonoTime::ZERO + Duration::from_secs(second)
    }

    fn watch(slo: Slo) -> Watch {
        Watch::new([WatchedStream {
            target: 0,
            is_alone: true,
            slo,
        }])
    }

    fn end(watch: &mut Watch, second: u64, ttft: f64) {
        watch.streams[0].log.add(at(second), ttft);
    }

    fn waiting(mean: f64) -> Surroundings {
        let mut known = Surroundings::default();
        known.server.waiting = Some(Gauge { mean, max: mean });
        known
    }

    #[test]
    fn what_is_slower_than_its_past_is_found_told_once_and_over_when_it_is_gone() {
        let mut watch = watch(Slo::default());
        let mut told = Vec::new();
        for second in 1..=900 {
            let ill = (600..720).contains(&second);
            end(&mut watch, second, if ill { 1.0 } else { 0.3 });
            let changes = watch.look(at(second), |position, from, to| {
                assert_eq!(position, 0);
                assert!(to.since(from) <= SPANS[0]);
                waiting(if ill || second < 771 && second > 600 {
                    4.0
                } else {
                    0.0
                })
            });
            told.extend(changes.into_iter().map(|one| (second, one)));
        }
        let [(began, first), (ended, last)] = &told[..] else {
            panic!("{told:#?}");
        };
        // Enough of the minute is slow by then.
        assert!((610..=640).contains(began), "{began}");
        assert_eq!(first.cause, Some(Cause::Queueing));
        assert!(first.holds && first.began.is_some());
        assert!((790..=820).contains(ended), "{ended}");
        assert_eq!((last.cause, last.holds), (Some(Cause::Queueing), false));
        let found: Vec<_> = watch.found().collect();
        assert_eq!(found, [(0, Some(Cause::Queueing), None)]);
    }

    #[test]
    fn a_limit_holds_from_the_first_look_on_and_without_a_cause_it_is_unknown() {
        let limit = SloLimit {
            at_most: Duration::from_millis(500),
            objective: None,
        };
        let mut watch = watch(Slo::default().with_limit(SloMetric::Ttft, limit));
        for second in 1..=10 {
            end(&mut watch, second, 0.8);
        }
        let changes = watch.look(at(10), |_, _, _| Surroundings::default());
        assert_eq!(changes.len(), 1);
        assert_eq!((changes[0].cause, changes[0].holds), (None, true));
        let look = watch.looks().next().flatten().expect("it looked");
        assert!(look.finding.is_unknown() && !look.has_reference);
        assert_eq!(look.span, Duration::from_secs(10));
    }

    #[test]
    fn arrivals_are_what_ended_and_what_piled_up() {
        let mut watch = watch(Slo::default());
        for second in 1..=60 {
            end(&mut watch, second, 0.3);
            watch.in_flight(at(second), [u32::try_from(second).expect("small")]);
        }
        let evidence = watch.evidence(0, 0, (at(0), at(60)));
        assert_eq!(evidence.client.ends, Some(1.0));
        assert_eq!(evidence.client.arrivals, Some((60.0 + 59.0) / 60.0));
        assert_eq!(evidence.client.in_flight, Some(30.5));
    }
}
