//! The exporters of a run and the queues in front of them.

use std::sync::Arc;

use anyhow::Context;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Outputs;
use super::join::{Outlet, WhenBehind};
use crate::aggregate::StreamRules;
use crate::clock::TimeAnchor;
use crate::config::{ExportConfig, OtlpConfig};
use crate::export::files::{RecordFiles, RecordWriting};
use crate::export::otlp::{Event, Events, OtlpLogs, OtlpMetrics, OtlpSetup, OtlpTraces, SpanRules};
use crate::export::{Exporter, StallRules};
use crate::measurement::{Observed, Stream};
use crate::telemetry::SelfMetrics;

/// The exporters of OTLP that take no records.
#[derive(Default)]
pub(super) struct Otlp {
    pub(super) metrics: Option<OtlpMetrics>,
    pub(super) logs: Option<(OtlpLogs, mpsc::Receiver<Event>)>,
    /// Takes what is to be told as a log record.
    pub(super) events: Option<Events>,
}

/// Records that may wait to be written to a file.
const FILE_QUEUE: usize = 1024;

/// An exporter and what it will be fed from.
pub(super) struct ExporterTask {
    exporter: Box<dyn Exporter>,
    input: mpsc::Receiver<Arc<Observed>>,
}

impl ExporterTask {
    pub(super) fn name(&self) -> &'static str {
        self.exporter.name()
    }

    /// Exports until the input ends, and gives up at `flush`.
    pub(super) fn run(self, flush: CancellationToken) -> BoxFuture<'static, ()> {
        self.exporter.run(self.input, flush)
    }
}

/// What exporters are made of.
pub(super) struct Parts<'p> {
    pub(super) anchor: TimeAnchor,
    pub(super) own: &'p SelfMetrics,
    /// What tells this run from others of its kind.
    pub(super) instance: &'p str,
    pub(super) rules: &'p [(Arc<Stream>, StreamRules)],
}

/// Everything that takes results away.
#[derive(Default)]
pub(super) struct Built {
    pub(super) outlets: Vec<Outlet>,
    pub(super) tasks: Vec<ExporterTask>,
    pub(super) otlp: Otlp,
}

impl Built {
    /// Puts `exporter` behind a bounded queue of its own.
    fn add(
        &mut self,
        exporter: Box<dyn Exporter>,
        outlet: impl FnOnce(Sender) -> Outlet,
        queue: usize,
    ) {
        let (sender, input) = mpsc::channel(queue);
        self.outlets.push(outlet(sender));
        self.tasks.push(ExporterTask { exporter, input });
    }
}

type Sender = mpsc::Sender<Arc<Observed>>;

/// The exporters that `export` and `outputs` ask for.
pub(super) fn build(
    export: &ExportConfig,
    outputs: &Outputs,
    parts: &Parts<'_>,
) -> anyhow::Result<Built> {
    let stalls = StallRules::new(parts.rules.iter().map(|(_, rules)| rules.stall).collect());
    let mut built = Built::default();
    let writing = RecordWriting {
        anchor: parts.anchor,
        stalls: stalls.clone(),
        gaps: false,
        counters: parts.own.export("files"),
    };
    let to_files = |when_behind| {
        let counters = parts.own.export("files");
        move |sender| Outlet {
            when_behind,
            sender,
            counters,
            only: None,
        }
    };
    if let Some(dir) = &outputs.artifacts {
        let files = Box::new(RecordFiles::single(dir.clone(), writing.clone()));
        built.add(files, to_files(WhenBehind::Wait), FILE_QUEUE);
    }
    if let Some(files) = &export.files {
        let files = Box::new(RecordFiles::rotating(files, writing));
        built.add(files, to_files(WhenBehind::Drop), FILE_QUEUE);
    }
    if let Some(config) = &export.otlp {
        otlp(config, stalls, parts, &mut built)?;
    }
    Ok(built)
}

/// The exporters of the signals that have a receiver.
fn otlp(
    config: &OtlpConfig,
    stalls: StallRules,
    parts: &Parts<'_>,
    built: &mut Built,
) -> anyhow::Result<()> {
    let rules = SpanRules {
        stalls,
        conventions: config.conventions,
        sampling: config.sampling,
    };
    let mut setup = OtlpSetup {
        config,
        anchor: parts.anchor,
        own: parts.own,
        instance: parts.instance,
        events: None,
    };
    let mut events = None;
    if let Some(receiver) = &config.logs {
        let logs = OtlpLogs::new(receiver, &setup, rules.clone()).context("export.otlp: logs")?;
        let (sender, input) = mpsc::channel(config.queue);
        events = Some(Events::new(sender, logs.counters().clone()));
        built.otlp.logs = Some((logs, input));
    }
    setup.events = events.as_ref();
    if let Some(receiver) = &config.metrics {
        let metrics = OtlpMetrics::new(receiver, &setup).context("export.otlp: metrics")?;
        built.otlp.metrics = Some(metrics);
    }
    if let Some(receiver) = &config.traces {
        let traces = OtlpTraces::new(receiver, &setup, rules).context("export.otlp: traces")?;
        let traces = Box::new(traces);
        let counters = parts.own.export(traces.name());
        built.add(
            traces,
            |sender| Outlet {
                when_behind: WhenBehind::Drop,
                sender,
                counters,
                only: Some(config.sampling),
            },
            config.queue,
        );
    }
    built.otlp.events = events;
    Ok(())
}
