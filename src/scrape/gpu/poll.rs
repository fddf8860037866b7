//! The page of an exporter of GPUs, read again and again.

use std::time::Duration;

use tokio::sync::mpsc;

use super::page::read_gpus;
use crate::config::GpuSelect;
use crate::measurement::GpuSample;
use crate::scrape::beside::{Beside, Reading, again, page};
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::Fetch;

/// The reading of the GPUs of one target.
#[derive(Debug)]
pub struct GpuPoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// The exporter's page.
    pub url: String,
    /// Which GPUs of it.
    pub select: GpuSelect,
    /// Interval.
    pub every: Duration,
    /// Carries it.
    pub fetch: Fetch,
    /// Counts results.
    pub own: SelfMetrics,
}

impl GpuPoll {
    /// Reads until `samples` is closed, the first page at once.
    pub async fn run(self, samples: mpsc::Sender<GpuSample>) {
        again(&self, (self.every, samples)).await;
    }

    /// Reads the page once, without counting it; what came of it, and the GPUs.
    pub async fn once(&self) -> (&'static str, Option<GpuSample>) {
        let page = match page(&self.fetch, &self.url).await {
            Ok(page) => page,
            Err(result) => return (result, None),
        };
        let read = read_gpus(&String::from_utf8_lossy(&page.body), &self.select);
        if !read.recognised {
            return ("unrecognised", None);
        }
        if read.gpus.is_empty() {
            return ("not_selected", None);
        }
        let sample = GpuSample {
            target_index: self.target_index,
            at: page.finished_at,
            gpus: read.gpus.into(),
            pods: read.pods,
        };
        ("ok", Some(sample))
    }
}

impl Beside for GpuPoll {
    type Sample = GpuSample;

    fn read(&self) -> impl Future<Output = Reading<GpuSample>> + Send {
        self.once()
    }

    fn told(&self, (result, sample): &Reading<GpuSample>, is_new: bool) {
        self.own.gpu_scrapes(&self.target, result).inc();
        if is_new {
            let (target, url) = (&self.target, &self.url);
            let gpus = sample.as_ref().map_or(0, |sample| sample.gpus.len());
            tracing::info!(%target, %url, result, gpus, "reading the GPUs' page");
        }
    }
}
