//! Counters about ourselves, kept in a registry of the `prometheus` crate.
//!
//! Names are the Prometheus translation of catalog entries; a test holds the two together.

use std::fmt;

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

/// Everything about our own health. Cheap to clone; clones share the counters.
#[derive(Debug, Clone)]
pub struct SelfMetrics {
    registry: Registry,
    export: IntCounterVec,
    export_failures: IntCounterVec,
    scrapes: IntCounterVec,
    gpu_scrapes: IntCounterVec,
    node_scrapes: IntCounterVec,
    process_reads: IntCounterVec,
}

/// What became of the values offered to one exporter: each accepted one ends as exactly one of
/// sent, rejected, dropped, failed.
#[derive(Debug, Clone)]
pub struct ExportCounters {
    /// Offered.
    pub accepted: IntCounter,
    /// Taken by the receiver.
    pub sent: IntCounter,
    /// Refused by the receiver inside a success (partial success).
    pub rejected: IntCounter,
    /// Not queued, because the queue was full.
    pub dropped: IntCounter,
    /// Given up.
    pub failed: IntCounter,
    /// Tries that failed, by exporter and reason.
    failures: IntCounterVec,
    exporter: Box<str>,
}

/// [`ExportCounters`] at one moment, in values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the counters of the same names")]
pub struct ExportAccount {
    pub accepted: u64,
    pub sent: u64,
    pub rejected: u64,
    pub dropped: u64,
    pub failed: u64,
}

impl ExportCounters {
    /// Counts one try to hand values on that failed for `reason`.
    pub fn failed_try(&self, reason: &'static str) {
        self.failures
            .with_label_values(&[&*self.exporter, reason])
            .inc();
    }

    /// How many tries failed for `reason`.
    #[must_use]
    pub fn failed_tries(&self, reason: &'static str) -> u64 {
        self.failures
            .with_label_values(&[&*self.exporter, reason])
            .get()
    }

    /// The counters as they stand.
    #[must_use]
    pub fn account(&self) -> ExportAccount {
        ExportAccount {
            accepted: self.accepted.get(),
            sent: self.sent.get(),
            rejected: self.rejected.get(),
            dropped: self.dropped.get(),
            failed: self.failed.get(),
        }
    }
}

impl fmt::Display for ExportAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            accepted,
            sent,
            rejected,
            dropped,
            failed,
        } = self;
        write!(
            f,
            "accepted {accepted}, sent {sent}, rejected {rejected}, dropped {dropped}, failed {failed}"
        )
    }
}

impl SelfMetrics {
    /// A registry with our counters and, on Linux, the facts of our own process.
    ///
    /// # Errors
    ///
    /// If two of the metrics collide, which a test excludes.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let export = counter(
            &registry,
            (
                "tokencanary_export_items_total",
                "Values by exporter and by what became of them; accepted = sent + rejected + dropped + failed once all is settled",
            ),
            &["exporter", "result"],
        )?;
        let export_failures = counter(
            &registry,
            (
                "tokencanary_export_failures_total",
                "Tries to hand values to a receiver that failed, by reason",
            ),
            &["exporter", "reason"],
        )?;
        let scrapes = counter(
            &registry,
            (
                "tokencanary_scrapes_total",
                "Reads of a target's metrics page by result",
            ),
            &["target", "result"],
        )?;
        let gpu_scrapes = counter(
            &registry,
            (
                "tokencanary_gpu_scrapes_total",
                "Reads of the state of a target's GPUs by result",
            ),
            &["target", "result"],
        )?;
        let node_scrapes = counter(
            &registry,
            (
                "tokencanary_node_scrapes_total",
                "Reads of the page of a target's host by result",
            ),
            &["target", "result"],
        )?;
        let process_reads = counter(
            &registry,
            (
                "tokencanary_server_process_reads_total",
                "Reads of the processes of a target's server by result",
            ),
            &["target", "result"],
        )?;
        let build = build_info()?;
        registry.register(Box::new(build))?;
        #[cfg(target_os = "linux")]
        registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        Ok(Self {
            registry,
            export,
            export_failures,
            scrapes,
            gpu_scrapes,
            node_scrapes,
            process_reads,
        })
    }

    /// The counters of the exporter called `name`.
    #[must_use]
    pub fn export(&self, name: &str) -> ExportCounters {
        let of = |result| self.export.with_label_values(&[name, result]);
        ExportCounters {
            accepted: of("accepted"),
            sent: of("sent"),
            rejected: of("rejected"),
            dropped: of("dropped"),
            failed: of("failed"),
            failures: self.export_failures.clone(),
            exporter: name.into(),
        }
    }

    /// The counter of reads of `target`'s metrics page that ended as `result`.
    #[must_use]
    pub fn scrapes(&self, target: &str, result: &str) -> IntCounter {
        self.scrapes.with_label_values(&[target, result])
    }

    /// The counter of reads of `target`'s GPUs that ended as `result`.
    #[must_use]
    pub fn gpu_scrapes(&self, target: &str, result: &str) -> IntCounter {
        self.gpu_scrapes.with_label_values(&[target, result])
    }

    /// The counter of reads of the page of `target`'s host that ended as `result`.
    #[must_use]
    pub fn node_scrapes(&self, target: &str, result: &str) -> IntCounter {
        self.node_scrapes.with_label_values(&[target, result])
    }

    /// The counter of reads of the processes of `target`'s server that ended as `result`.
    #[must_use]
    pub fn process_reads(&self, target: &str, result: &str) -> IntCounter {
        self.process_reads.with_label_values(&[target, result])
    }

    /// All of it at this moment.
    #[must_use]
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }
}

fn counter(
    registry: &Registry,
    (name, help): (&str, &str),
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    let vec = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}

fn build_info() -> Result<impl Collector, prometheus::Error> {
    let opts = Opts::new(
        "tokencanary_build_info",
        "Always 1; the version is in its label",
    )
    .const_label("version", env!("CARGO_PKG_VERSION"));
    let gauge = prometheus::IntGauge::with_opts(opts)?;
    gauge.set(1);
    Ok(gauge)
}
