//! The exporters of a run and the queues in front of them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Outputs;
use super::join::{Outlet, WhenBehind};
use crate::aggregate::StreamRules;
use crate::clock::TimeAnchor;
use crate::config::ExportConfig;
use crate::export::files::{RecordFiles, RecordWriting};
use crate::export::otlp::{OtlpSetup, OtlpSpans};
use crate::export::{Exporter, StallRules};
use crate::measurement::{Observed, Stream};
use crate::telemetry::SelfMetrics;

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

/// The exporters that `export` and `outputs` ask for, each behind a bounded queue of its own.
pub(super) fn build(
    export: &ExportConfig,
    outputs: &Outputs,
    parts: &Parts<'_>,
) -> anyhow::Result<(Vec<Outlet>, Vec<ExporterTask>)> {
    let stalls = StallRules::new(parts.rules.iter().map(|(_, rules)| rules.stall).collect());
    let mut made = Vec::new();
    let mut add = |exporter: Box<dyn Exporter>, queue: usize, when_behind: WhenBehind| {
        let (sender, input) = mpsc::channel(queue);
        let counters = parts.own.export(exporter.name());
        let outlet = Outlet {
            when_behind,
            sender,
            counters,
        };
        made.push((outlet, ExporterTask { exporter, input }));
    };
    let writing = RecordWriting {
        anchor: parts.anchor,
        stalls: stalls.clone(),
        gaps: false,
        counters: parts.own.export("files"),
    };
    if let Some(dir) = &outputs.artifacts {
        add(
            Box::new(RecordFiles::single(dir.clone(), writing.clone())),
            FILE_QUEUE,
            WhenBehind::Wait,
        );
    }
    if let Some(files) = &export.files {
        add(
            Box::new(RecordFiles::rotating(files, writing)),
            FILE_QUEUE,
            WhenBehind::Drop,
        );
    }
    if let Some(config) = &export.otlp {
        let setup = OtlpSetup {
            config,
            anchor: parts.anchor,
            stalls,
            counters: parts.own.export("otlp"),
            instance: parts.instance.to_owned(),
        };
        add(
            Box::new(OtlpSpans::new(setup)?),
            config.queue,
            WhenBehind::Drop,
        );
    }
    Ok(made.into_iter().unzip())
}
