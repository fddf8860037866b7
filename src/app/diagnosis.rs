//! Looks at all streams now and then, and tells what began and what is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::aggregate::{Live, StreamLive};
use crate::analysis::{
    Build, Change, Diagnosis, Fact, GpuSide, HostSide, ServerSide, Surroundings, Watch,
};
use crate::clock::MonoTime;
use crate::control::Slots;
use crate::export::otlp::{Event, Events};
use crate::measurement::{RequestRecord, Stream};
use crate::telemetry::HostFiles;

/// The name of a cause that nothing tells.
pub(super) const UNKNOWN: &str = "unknown";

/// The watch over all streams, with what it looks at.
pub(super) struct Diagnosing {
    pub(super) watch: Arc<Mutex<Watch>>,
    pub(super) live: Arc<Mutex<Live>>,
    /// Per target, in the order of targets.
    pub(super) slots: Vec<Slots>,
    pub(super) pressure: OwnPressure,
    /// Takes what is to be told as a log record.
    pub(super) events: Option<Events>,
}

/// How long something waited for a processor: in our control group, or else on our machine.
#[derive(Default)]
pub(super) struct OwnPressure {
    files: HostFiles,
    /// Seconds since the start of either, and when that was read.
    last: Option<(MonoTime, f64)>,
}

impl OwnPressure {
    /// The share of the time since this was asked last; `None` the first time, and where the
    /// kernel does not say.
    fn since_last(&mut self, now: MonoTime) -> Option<f64> {
        let state = self.files.read();
        let waited = state.group.pressure.cpu.some.or(state.pressure.cpu.some)?;
        let (at, before) = self.last.replace((now, waited))?;
        let seconds = now.since(at).as_secs_f64();
        (seconds > 0.0 && waited >= before).then(|| ((waited - before) / seconds).min(1.0))
    }
}

impl Diagnosing {
    /// Adds a request that has ended.
    pub(super) fn observe(&self, record: &RequestRecord) {
        lock(&self.watch).observe(record);
    }

    /// Looks, if that is due.
    pub(super) fn look(&mut self, now: MonoTime) {
        // The watch before the live state: everyone who needs both takes them in this order.
        let mut watch = lock(&self.watch);
        watch.in_flight(now, self.slots.iter().map(Slots::in_use));
        if !watch.is_due(now) {
            return;
        }
        let own_pressure = self.pressure.since_last(now);
        let changes = watch.look(now, |stream, from, to| Surroundings {
            own_pressure,
            ..surroundings(&lock(&self.live), stream, (from, to))
        });
        drop(watch);
        if changes.is_empty() {
            return;
        }
        let streams: Vec<Arc<Stream>> = {
            let live = lock(&self.live);
            let streams = live.streams().iter();
            streams.map(|one| Arc::clone(one.stream())).collect()
        };
        for change in changes {
            if let Some(stream) = streams.get(change.stream) {
                self.tell(stream, &change, now);
            }
        }
    }

    fn tell(&self, stream: &Arc<Stream>, change: &Change, at: MonoTime) {
        let cause = change.cause.map_or(UNKNOWN, |cause| cause.name());
        let (target, probe) = (&*stream.target, &*stream.probe);
        let evidence = change.holds.then(|| {
            change.began.as_ref().map_or_else(
                || "requests are slow or fail, and nothing that is known says why".to_owned(),
                evidence,
            )
        });
        if let Some(evidence) = &evidence {
            tracing::warn!(target = target, probe, cause, %evidence, "something is wrong");
        } else {
            tracing::info!(target = target, probe, cause, "a cause is over");
        }
        if let Some(events) = &self.events {
            events.tell(Event::Diagnosis {
                at,
                stream: Arc::clone(stream),
                cause,
                evidence,
            });
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known around the stream at a position between two instants. Of several addresses of a
/// target one has its page read and its processes looked for: the others are not judged by them.
fn surroundings(live: &Live, stream: usize, (from, to): (MonoTime, MonoTime)) -> Surroundings {
    let Some(stream) = live.streams().get(stream).map(StreamLive::stream) else {
        return Surroundings::default();
    };
    let target = stream.target_index;
    let is_paged = live.is_paged(stream);
    let server = is_paged.then(|| live.server(target, (from, to))).flatten();
    let gpus = live.gpus().get(target).and_then(Option::as_ref);
    let node = live.nodes().get(target);
    Surroundings {
        server: server.as_ref().map(ServerSide::from).unwrap_or_default(),
        build: server
            .map(|window| Build::from(&window.info))
            .unwrap_or_default(),
        gpu: gpus
            .map(|gpus| GpuSide::from(&gpus.window(from, to)))
            .unwrap_or_default(),
        host: node
            .and_then(|node| node.window(from, to))
            .map(|mut window| {
                window.process = window.process.filter(|_| is_paged);
                HostSide::from(&window)
            })
            .unwrap_or_default(),
        own_pressure: None,
    }
}

/// The numbers of a diagnosis in one line.
fn evidence(diagnosis: &Diagnosis) -> String {
    let facts: Vec<String> = diagnosis.facts.iter().map(number).collect();
    format!("{}: {}", diagnosis.confidence.name(), facts.join("; "))
}

fn number(fact: &Fact) -> String {
    let unit = fact.unit.name();
    let before = fact
        .before
        .map(|before| format!(" (before {before:.4}{unit})"))
        .unwrap_or_default();
    format!("{} {:.4}{unit}{before}", fact.what, fact.now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Cause, Confidence, Unit};

    #[test]
    fn pressure_is_what_came_since_it_was_asked_last() {
        let root = std::env::temp_dir().join(format!("tokencanary-pressed-{}", std::process::id()));
        let folder = root.join("proc/pressure");
        std::fs::create_dir_all(&folder).expect("it is ours");
        let mut pressure = OwnPressure {
            files: HostFiles::below(&root),
            last: None,
        };
        let mut asked = |second: u64, micros: u64| {
            let line = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={micros}\n");
            std::fs::write(folder.join("cpu"), line).expect("it is ours");
            pressure.since_last(MonoTime::ZERO + std::time::Duration::from_secs(second))
        };
        assert_eq!(asked(1, 7_000_000), None);
        assert_eq!(asked(11, 12_000_000), Some(0.5));
        assert_eq!(asked(21, 0), None, "another group");
        std::fs::remove_dir_all(&root).expect("it is ours");
    }

    #[test]
    fn evidence_is_one_line_of_numbers() {
        let fact = |what: &str, before| Fact {
            what: what.to_owned(),
            now: 4.0,
            before,
            unit: Unit::Seconds,
        };
        let diagnosis = Diagnosis {
            cause: Cause::Queueing,
            confidence: Confidence::Strong,
            facts: vec![fact("a", Some(0.5)), fact("b", None)],
        };
        assert_eq!(
            evidence(&diagnosis),
            "strong: a 4.0000s (before 0.5000s); b 4.0000s"
        );
    }
}
