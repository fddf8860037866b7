//! The metrics exporter: looks at the live state at regular times, and a last time at the end.
//!
//! One look is under way at a time. What could not be handed on by the next look is given up and
//! counted: cumulative values are in the next message anyway, and deltas are then those of a longer
//! time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::collect::{Batch, Collector};
use super::courier::{Courier, Parcel};
use super::encode::encoded;
use super::sender::Sender;
use super::signal::Signal;
use super::{OtlpError, OtlpSetup};
use crate::aggregate::Live;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::OtlpReceiver;
use crate::export::feed::Fate;
use crate::export::prometheus::{Gauge, View};
use crate::telemetry::{ExportCounters, SelfMetrics};

/// What the exporter looks at.
#[derive(Clone)]
pub struct MetricSource {
    /// Totals per stream.
    pub live: Arc<Mutex<Live>>,
    /// What nobody counts up.
    pub gauges: Arc<dyn Fn() -> Vec<Gauge> + Send + Sync>,
    /// Our own health.
    pub own: SelfMetrics,
}

/// Sends all metrics again and again.
#[derive(Debug)]
pub struct OtlpMetrics {
    courier: Courier,
    collector: Collector,
    anchor: TimeAnchor,
    every: Duration,
}

impl OtlpMetrics {
    /// An exporter to `receiver`. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// If the URL, a header or a certificate cannot be used.
    pub fn new(receiver: &OtlpReceiver, setup: &OtlpSetup<'_>) -> Result<Self, OtlpError> {
        let sender = Sender::new(Signal::Metrics, receiver, setup.anchor)?;
        let counters = setup.own.export(Signal::Metrics.exporter());
        let started = setup.anchor.wall().unix_ns(MonoTime::ZERO);
        Ok(Self {
            courier: Courier {
                told: setup.told(),
                ..Courier::new(Signal::Metrics, sender, counters)
            },
            collector: Collector::new(setup.config, setup.resource(), started),
            anchor: setup.anchor,
            every: setup.config.every,
        })
    }

    /// Its name in our own metrics and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Signal::Metrics.exporter()
    }

    /// Counts what becomes of its data points.
    #[must_use]
    pub const fn counters(&self) -> &ExportCounters {
        &self.courier.counters
    }

    /// Exports until `ended` is cancelled, and then a last time; gives up at `deadline`.
    pub async fn run(
        mut self,
        source: MetricSource,
        (ended, deadline): (CancellationToken, CancellationToken),
    ) {
        let mut ticks = interval_at(Instant::now() + self.every, self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let is_last = tokio::select! {
                biased;
                () = ended.cancelled() => true,
                _ = ticks.tick() => false,
            };
            let until = (!is_last).then(|| Instant::now() + self.every);
            for batch in self.look(&source) {
                self.hand_on(batch, until, (&ended, &deadline)).await;
            }
            if is_last {
                return;
            }
        }
    }

    /// The messages of this moment.
    fn look(&self, source: &MetricSource) -> Vec<Batch> {
        // Before the state is locked: the gauges look at it too.
        let gauges = (source.gauges)();
        let own = source.own.gather();
        let live = source.live.lock().unwrap_or_else(PoisonError::into_inner);
        let view = View {
            live: &live,
            gauges: &gauges,
            own: &own,
            started_unix_ns: self.anchor.wall().unix_ns(MonoTime::ZERO),
        };
        let now = self.anchor.wall().unix_ns(self.anchor.now());
        self.collector.collect(&view, now)
    }

    async fn hand_on(
        &mut self,
        batch: Batch,
        until: Option<Instant>,
        (ended, deadline): (&CancellationToken, &CancellationToken),
    ) {
        self.courier.counters.accepted.inc_by(batch.points);
        let parcel = Parcel {
            message: encoded(self.courier.sender.protocol(), &batch.request),
            items: batch.points,
            until,
        };
        let is_ended = || ended.is_cancelled();
        let delivering = self.courier.deliver(parcel, &is_ended);
        let fate = deadline.run_until_cancelled(delivering).await;
        let fate = fate.unwrap_or(Fate {
            failed: batch.points,
            ..Fate::default()
        });
        let counters = &self.courier.counters;
        counters.sent.inc_by(fate.sent);
        counters.rejected.inc_by(fate.rejected);
        counters.failed.inc_by(fate.failed);
        if fate.sent + fate.rejected > 0 {
            self.collector.taken(batch);
        }
    }
}
