//! Takes records and samples, joins them, and hands the result to everyone.
//!
//! The one writer of the live state. Runs on the runtime that does not measure.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::diagnosis::Diagnosing;
use super::ledger::Ledger;
use super::starts::{Held, Starts};
use super::tokenizers::{Tokenizers, recount};
use crate::aggregate::{ExportedSpan, Kept, Live, SampleRing, Summary, SummaryBuilder};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::TraceSampling;
use crate::export::offer;
use crate::export::otlp::Events;
use crate::measurement::server::Scrape;
use crate::measurement::{
    Counts, GpuSample, IdentitySample, NodeSample, Observed, RequestRecord, StateAt,
};
use crate::telemetry::ExportCounters;

/// How often windows are looked at.
const TICK: Duration = Duration::from_millis(500);
/// After a record the next ones are let come for this long: who hands one on while nobody waits
/// for it wakes nobody, which costs the thread that measures more than the handing on.
const REST: Duration = Duration::from_millis(1);

/// What happens when an exporter's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenBehind {
    /// The record is dropped, and counted: the load must not wait for a receiver.
    Drop,
    /// The stage waits, and at last the load, visibly: a benchmark keeps every record.
    Wait,
}

/// The queue in front of one exporter.
pub(super) struct Outlet {
    pub(super) when_behind: WhenBehind,
    pub(super) sender: mpsc::Sender<Arc<Observed>>,
    pub(super) counters: ExportCounters,
    /// Which records it takes; all, if nothing is said.
    pub(super) only: Option<TraceSampling>,
}

impl Outlet {
    async fn give(&self, observed: Arc<Observed>) {
        let kept = self
            .only
            .map(|sampling| Kept::of(&observed.record, &sampling));
        if kept == Some(Kept::Not) {
            return;
        }
        if self.when_behind == WhenBehind::Wait
            && let Ok(place) = self.sender.reserve().await
        {
            self.counters.accepted.inc();
            place.send(observed);
        } else {
            offer(&self.sender, &self.counters, observed);
        }
    }
}

/// The samples of one target, and how old one may be.
pub(super) struct Known {
    pub(super) ring: SampleRing,
    pub(super) max_age: Duration,
}

/// Readings of what a target runs on.
pub(super) struct Beside {
    pub(super) gpus: mpsc::Receiver<GpuSample>,
    pub(super) nodes: mpsc::Receiver<NodeSample>,
    pub(super) identities: mpsc::Receiver<IdentitySample>,
}

/// The joining stage.
pub(super) struct Join {
    pub(super) anchor: TimeAnchor,
    pub(super) live: Arc<Mutex<Live>>,
    pub(super) summary: Option<SummaryBuilder>,
    pub(super) known: Vec<Known>,
    pub(super) outlets: Vec<Outlet>,
    /// Takes what is to be told as a log record.
    pub(super) events: Option<Events>,
    pub(super) starts: Starts,
    pub(super) ledgers: Vec<Ledger>,
    /// Which records have a span that leaves the program, if any has.
    pub(super) exported_spans: Option<TraceSampling>,
    /// Per target, in the order of targets.
    pub(super) tokenizers: Tokenizers,
    pub(super) diagnosing: Diagnosing,
}

impl Join {
    /// Runs until every sender of records is gone.
    pub(super) async fn run(
        mut self,
        mut records: mpsc::Receiver<RequestRecord>,
        mut scrapes: mpsc::Receiver<Scrape>,
        mut beside: Beside,
    ) -> Option<Summary> {
        let mut ticks = interval(TICK);
        let mut rest = pin!(sleep(REST));
        let (may_rest, mut is_resting) = (TimeAnchor::is_real(), false);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            // Pages first: a page read before an arrival was due must be known by then.
            tokio::select! {
                biased;
                Some(scrape) = scrapes.recv() => self.scrape(scrape),
                Some(sample) = beside.gpus.recv() => {
                    self.starts.gpus(&sample);
                    self.live().gpu_sample(sample);
                }
                Some(sample) = beside.nodes.recv() => self.live().node_sample(&sample),
                Some(sample) = beside.identities.recv() => self.starts.identity(sample),
                () = rest.as_mut(), if is_resting => is_resting = false,
                record = records.recv(), if !is_resting => match record {
                    Some(record) => {
                        self.record(record).await;
                        if may_rest && records.is_empty() {
                            rest.as_mut().reset(Instant::now() + REST);
                            is_resting = true;
                        }
                    }
                    None => break,
                },
                _ = ticks.tick() => self.settle(&mut records).await,
            }
        }
        self.settle(&mut records).await;
        // Nobody will ever know more of those.
        let held = self.starts.give_up();
        self.count(held);
        self.summary.map(SummaryBuilder::finish)
    }

    fn scrape(&mut self, scrape: Scrape) {
        if let Some(sample) = &scrape.sample
            && let Some(known) = self.known.get_mut(sample.target_index)
        {
            known.ring.push(sample);
        }
        if let Some(sample) = &scrape.sample {
            let held = self.starts.page(sample);
            self.count(held);
        }
        self.live().scrape(scrape);
    }

    /// Counts those of whom it has become known that they do.
    fn count(&mut self, held: Vec<Held>) {
        for (observed, span) in held {
            let mut observed = Observed::clone(&observed);
            observed.record.counts = Counts::Now;
            self.diagnosing.observe(&observed.record);
            self.live().count(&observed, span);
        }
    }

    /// What the target of `record` said of itself last at the instant `at`.
    fn state(&self, record: &RequestRecord, at: Option<MonoTime>) -> Option<StateAt> {
        let known = self.known.get(record.stream.target_index)?;
        known.ring.at(at?, known.max_age)
    }

    async fn record(&mut self, mut record: RequestRecord) {
        let tokenizer = self.tokenizers.get(record.stream.target_index);
        recount(tokenizer.and_then(Option::as_deref), &mut record);
        let held = self.starts.record(&mut record);
        self.count(held);
        let gpu = self.live().gpus_of(&record).map(Box::new);
        let time = &record.timeline;
        let observed = Arc::new(Observed {
            at_intended: self.state(&record, Some(time.intended)),
            at_first_token: self.state(&record, time.first_token),
            at_end: self.state(&record, time.end),
            record,
            gpu,
        });
        if let Some(summary) = &mut self.summary {
            summary.observe(&observed);
        }
        if let Some(events) = &self.events {
            events.request(&observed);
        }
        for outlet in &self.outlets {
            outlet.give(Arc::clone(&observed)).await;
        }
        self.diagnosing.observe(&observed.record);
        let span = self.exported_span(&observed.record);
        if observed.record.counts == Counts::Later {
            let held = self.starts.hold((Arc::clone(&observed), span));
            self.count(held);
        }
        self.live().observe(observed, span);
    }

    /// The span of `record`, if it leaves the program.
    fn exported_span(&self, record: &RequestRecord) -> Option<ExportedSpan> {
        if Kept::of(record, &self.exported_spans?) == Kept::Not {
            return None;
        }
        let ended = record.timeline.end.unwrap_or(record.timeline.intended);
        Some(ExportedSpan {
            ids: record.ids,
            unix_ns: self.anchor.wall().unix_ns(ended),
        })
    }

    /// Closes the windows whose arrivals have all been seen.
    async fn settle(&mut self, records: &mut mpsc::Receiver<RequestRecord>) {
        let now = self.anchor.now();
        // Read before the queue is emptied: whatever was settled by then is in the queue.
        let settled = self
            .ledgers
            .iter()
            .map(|ledger| ledger.settled(now))
            .min()
            .unwrap_or(now);
        while let Ok(record) = records.try_recv() {
            self.record(record).await;
        }
        let held = self.starts.tick(now);
        self.count(held);
        self.live().settle(settled, now);
        self.diagnosing.look(now);
    }

    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
