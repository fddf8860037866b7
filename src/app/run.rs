//! Runs what was built, and stops it in order.
//!
//! Schedules and scrapers end first; requests in flight get the drain time; then each stage
//! ends because its input ended; the page and `/metrics` go last. One deadline for all of it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::anyhow;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::exporters::{ExporterTask, Otlp};
use super::feed::FileReport;
use super::join::Beside;
use super::{App, discover};
use crate::aggregate::Summary;
use crate::export::otlp::{MetricSource, OtlpMetrics};
use crate::telemetry::{ExportAccount, ExportCounters};

/// After the drain, exporters and the page have this long to finish.
const FLUSH: Duration = Duration::from_millis(700);
/// Stages that only pass on what they hold.
const PASS_ON: Duration = Duration::from_secs(1);

/// What a run came to.
#[derive(Debug, Default)]
pub struct RunReport {
    /// Exact statistics, if they were asked for.
    pub summary: Option<Summary>,
    /// Names of the stages that did not end in time.
    pub late: Vec<String>,
    /// What became of the records at each exporter, by its name.
    pub exports: Vec<(&'static str, ExportAccount)>,
    /// What became of the files that prompts came from, one for each probe and target.
    pub files: Vec<FileReport>,
}

/// The tasks of a run.
struct Tasks {
    dispatches: JoinSet<()>,
    join: JoinHandle<Option<Summary>>,
    exporters: Vec<(&'static str, JoinHandle<()>)>,
    web: Option<JoinHandle<()>>,
    /// Tells that all records have been seen.
    joined: CancellationToken,
    /// Ends exporters and the page that do not end by themselves.
    flush: CancellationToken,
}

/// Why the waiting for requests ended.
enum Ended {
    /// All schedules ended and so did their requests, as far as they may.
    Itself,
    Stopped,
}

impl App {
    /// Runs until the schedules end or `stop` resolves, then drains.
    ///
    /// # Errors
    ///
    /// If a task of ours died; the message names it.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<RunReport> {
        let mut stop = pin!(stop);
        let (shared, anchor) = (self.shared.clone(), self.anchor);
        let drain = self.config.drain;
        let ready = Arc::new(AtomicBool::new(true));
        let counters = self.export_counters();
        let tallies = self.tallies.clone();
        let mut tasks = self.spawn(&ready);
        let ended = {
            let until = until_ended(&mut tasks.dispatches, &shared, stop.as_mut());
            tokio::select! {
                ended = until => ended?,
                joined = &mut tasks.join => return Err(died("join", joined.err())),
            }
        };
        let deadline = Instant::now()
            + if matches!(ended, Ended::Stopped) {
                drain
            } else {
                Duration::ZERO
            };
        shared.stop.stop(anchor.now());
        ready.store(false, Relaxed);
        while let Some(result) = tasks.dispatches.join_next().await {
            result.map_err(|error| died("dispatch", Some(error)))?;
        }
        shared.requests.close();
        let mut late = Vec::new();
        if timeout_at(deadline, shared.requests.wait()).await.is_err() {
            shared.cancel.cancel();
            if timeout(PASS_ON, shared.requests.wait()).await.is_err() {
                late.push("requests".to_owned());
            }
        }
        drop(shared);
        let summary = tasks.finish(&mut late).await?;
        Ok(RunReport {
            summary,
            late,
            exports: counters
                .into_iter()
                .map(|(name, counters)| (name, counters.account()))
                .collect(),
            files: tallies.iter().map(|tally| tally.report()).collect(),
        })
    }

    /// The counters of each exporter; those of one name share them.
    fn export_counters(&self) -> Vec<(&'static str, ExportCounters)> {
        let mut names: Vec<_> = self.exporters.iter().map(ExporterTask::name).collect();
        names.dedup();
        names.extend(self.otlp.metrics.as_ref().map(OtlpMetrics::name));
        names.extend(self.otlp.logs.as_ref().map(|(logs, _)| logs.name()));
        names
            .into_iter()
            .map(|name| (name, self.own.export(name)))
            .collect()
    }

    fn spawn(mut self, ready: &Arc<AtomicBool>) -> Tasks {
        let flush = CancellationToken::new();
        let stop = self.shared.stop.clone();
        let mut dispatches = JoinSet::new();
        let web = self.surface(ready).map(|(listener, router)| {
            let ending = flush.clone();
            self.other.spawn(async move {
                let served = crate::web::serve(listener, router, ending.cancelled()).await;
                if let Err(error) = served {
                    tracing::error!(%error, "the page ended");
                }
            })
        });
        let joined = CancellationToken::new();
        let otlp = self.spawn_otlp((&joined, &flush));
        for feed in self.feeds {
            self.other.spawn(feed.run());
        }
        for dispatch in self.dispatches {
            let running = self.measuring.clone().run_first(dispatch.run());
            dispatches.spawn_on(running, self.measuring.handle());
        }
        let (scrapes, scrapes_in) = self.scrapes;
        for poll in self.polls {
            stop.spawn(&self.other, poll.run(scrapes.clone()));
        }
        let beside = Beside {
            gpus: self.gpus.start((&self.other, &stop)),
            nodes: self.nodes.start((&self.other, &stop)),
            identities: self.identities.start((&self.other, &stop)),
        };
        for (target, streams) in discover::unresolved(&self.config, &self.streams) {
            let asking = discover::keep_asking(self.anchor, target, streams);
            stop.spawn(&self.other, asking);
        }
        let exporters = self
            .exporters
            .into_iter()
            .map(|exporter| {
                (
                    exporter.name(),
                    self.other.spawn(exporter.run(flush.clone())),
                )
            })
            .chain(otlp)
            .collect();
        let join = self
            .other
            .spawn(self.join.run(self.records, scrapes_in, beside));
        Tasks {
            dispatches,
            join,
            exporters,
            web,
            joined,
            flush,
        }
    }

    /// Starts the exporters that take no records.
    fn spawn_otlp(
        &mut self,
        (joined, flush): (&CancellationToken, &CancellationToken),
    ) -> Vec<(&'static str, JoinHandle<()>)> {
        let mut tasks = Vec::new();
        let Otlp {
            metrics,
            logs,
            events,
        } = std::mem::take(&mut self.otlp);
        // Those who have something to tell hold it.
        drop(events);
        if let Some(metrics) = metrics {
            let source = MetricSource {
                live: Arc::clone(&self.live),
                gauges: self.gauges(),
                own: self.own.clone(),
            };
            let name = metrics.name();
            let running = metrics.run(source, (joined.clone(), flush.clone()));
            tasks.push((name, self.other.spawn(running)));
        }
        if let Some((logs, input)) = logs {
            let name = logs.name();
            let running = logs.run(input, flush.clone());
            tasks.push((name, self.other.spawn(running)));
        }
        tasks
    }
}

/// Waits for the schedules and their requests, or for `stop`.
async fn until_ended(
    dispatches: &mut JoinSet<()>,
    shared: &super::Shared,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Ended> {
    loop {
        tokio::select! {
            biased;
            result = dispatches.join_next() => match result {
                Some(result) => result.map_err(|error| died("dispatch", Some(error)))?,
                None => break,
            },
            () = stop.as_mut() => return Ok(Ended::Stopped),
        }
    }
    shared.requests.close();
    tokio::select! {
        biased;
        () = shared.requests.wait() => Ok(Ended::Itself),
        () = stop => Ok(Ended::Stopped),
    }
}

impl Tasks {
    /// The records' senders are gone: each stage ends because its input ended.
    async fn finish(self, late: &mut Vec<String>) -> anyhow::Result<Option<Summary>> {
        let summary = if let Ok(joined) = timeout(PASS_ON, self.join).await {
            joined.map_err(|error| died("join", Some(error)))?
        } else {
            late.push("join".to_owned());
            None
        };
        self.joined.cancel();
        let deadline = Instant::now() + FLUSH;
        // One that was told to end only counts what it has left.
        let last = deadline + FLUSH;
        for (name, mut task) in self.exporters {
            if timeout_at(deadline, &mut task).await.is_err() {
                self.flush.cancel();
                if timeout_at(last, task).await.is_err() {
                    late.push(name.to_owned());
                }
            }
        }
        self.flush.cancel();
        if let Some(web) = self.web
            && timeout(FLUSH, web).await.is_err()
        {
            late.push("page".to_owned());
        }
        Ok(summary)
    }
}

fn died(task: &str, error: Option<tokio::task::JoinError>) -> anyhow::Error {
    match error {
        Some(error) => anyhow!("task `{task}` died: {error}"),
        None => anyhow!("task `{task}` ended too early"),
    }
}
