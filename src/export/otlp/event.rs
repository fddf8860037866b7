//! What is told as a log record: requests that failed, and changes of state.
//!
//! Failures of one stream are told up to a rate; the next one that is told says how many were not.
//! Whoever has something to tell holds [`Events`], which never waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::clock::MonoTime;
use crate::measurement::{Mark, Observed, Stream, StreamId, TargetState};
use crate::telemetry::ExportCounters;

/// Failures of one stream that are told within [`SPAN`].
const MOST: u32 = 10;
const SPAN: Duration = Duration::from_mins(1);

/// One event.
#[derive(Debug, Clone)]
pub enum Event {
    /// A request counts against its server.
    Failed {
        /// The request.
        observed: Arc<Observed>,
        /// Failures of its stream that were not told since the last one that was.
        untold: u64,
    },
    /// A target stands otherwise than before.
    Target {
        /// When that was seen.
        at: MonoTime,
        /// Its name.
        target: Box<str>,
        /// Which of its addresses it is.
        endpoint: Box<str>,
        /// How it stands.
        state: TargetState,
    },
    /// Something changed on a target, or somebody says so.
    Mark(Mark),
    /// A cause explains what is wrong with a stream, or does not any more.
    Diagnosis {
        /// When that was seen.
        at: MonoTime,
        /// The stream.
        stream: Arc<Stream>,
        /// Which cause it is; `unknown` where nothing says why.
        cause: &'static str,
        /// What speaks for it, if it holds now.
        evidence: Option<String>,
    },
    /// A receiver takes things or not any more.
    Exporter {
        /// When that was seen.
        at: MonoTime,
        /// The exporter's name.
        exporter: &'static str,
        /// Why it does not; `None` if it does.
        trouble: Option<(&'static str, String)>,
    },
}

/// Takes events, and drops and counts what finds no place. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    queue: Queue,
    counters: ExportCounters,
    rates: Arc<Mutex<HashMap<StreamId, Rate>>>,
}

#[derive(Debug, Clone)]
enum Queue {
    /// Keeps the exporter of logs going.
    Strong(mpsc::Sender<Event>),
    /// Tells what there is to tell as long as somebody else keeps it going.
    Weak(mpsc::WeakSender<Event>),
}

/// How much of one stream was told.
#[derive(Debug)]
struct Rate {
    since: MonoTime,
    told: u32,
    untold: u64,
}

impl Events {
    /// Into `queue`; what becomes of them is counted in `counters`.
    #[must_use]
    pub fn new(queue: mpsc::Sender<Event>, counters: ExportCounters) -> Self {
        Self {
            queue: Queue::Strong(queue),
            counters,
            rates: Arc::default(),
        }
    }

    /// The same for someone who must not keep the exporter of logs going.
    #[must_use]
    pub fn weak(&self) -> Self {
        let queue = match &self.queue {
            Queue::Strong(queue) => queue.downgrade(),
            Queue::Weak(queue) => queue.clone(),
        };
        Self {
            queue: Queue::Weak(queue),
            counters: self.counters.clone(),
            rates: Arc::clone(&self.rates),
        }
    }

    /// Tells of `observed` if it failed and the rate allows it.
    pub fn request(&self, observed: &Arc<Observed>) {
        let record = &observed.record;
        if !record.is_failure() {
            return;
        }
        let at = record.timeline.end.unwrap_or(record.timeline.intended);
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rates.entry(record.stream.id).or_insert(Rate {
            since: at,
            told: 0,
            untold: 0,
        });
        if at.since(rate.since) >= SPAN {
            (rate.since, rate.told) = (at, 0);
        }
        if rate.told >= MOST {
            rate.untold += 1;
            return;
        }
        rate.told += 1;
        let untold = std::mem::take(&mut rate.untold);
        drop(rates);
        self.tell(Event::Failed {
            observed: Arc::clone(observed),
            untold,
        });
    }

    /// Tells of a change of state.
    pub fn tell(&self, event: Event) {
        self.counters.accepted.inc();
        let queue = match &self.queue {
            Queue::Strong(queue) => Some(queue.clone()),
            Queue::Weak(queue) => queue.upgrade(),
        };
        match queue.map(|queue| queue.try_send(event)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => self.counters.dropped.inc(),
            Some(Err(TrySendError::Closed(_))) | None => self.counters.failed.inc(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture::{counters, no_connection, streamed, us};

    fn failed_at(second: u64) -> Arc<Observed> {
        let mut observed = no_connection();
        observed.record.timeline.end = Some(us(second * 1_000_000));
        Arc::new(observed)
    }

    #[tokio::test]
    async fn failures_are_told_up_to_a_rate_and_the_rest_is_said_later() {
        let counters = counters();
        let (queue, mut input) = mpsc::channel(64);
        let events = Events::new(queue, counters.clone());
        events.request(&Arc::new(streamed()));
        for _ in 0..25 {
            events.request(&failed_at(10));
        }
        events.request(&failed_at(70));
        assert_eq!(counters.accepted.get(), 11);
        let mut untold = Vec::new();
        while let Ok(event) = input.try_recv() {
            match event {
                Event::Failed { untold: count, .. } => untold.push(count),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(untold, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15]);
    }

    #[tokio::test]
    async fn what_finds_no_place_is_counted() {
        let counters = counters();
        let (queue, input) = mpsc::channel(1);
        let events = Events::new(queue, counters.clone());
        let event = || Event::Exporter {
            at: us(1),
            exporter: "otlp_traces",
            trouble: None,
        };
        events.tell(event());
        events.tell(event());
        assert_eq!((counters.accepted.get(), counters.dropped.get()), (2, 1));
        let weak = events.weak();
        drop(events);
        weak.tell(event());
        assert_eq!((counters.accepted.get(), counters.failed.get()), (3, 1));
        drop(input);
    }
}
