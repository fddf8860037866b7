//! Reads the host of one target again and again.
//!
//! As with the server's page: a page counts from the instant its last byte was read, and one that
//! fails gives no sample, so that a record shows an older state with its age, and at last none.

use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::read_node;
use crate::measurement::NodeSample;
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::Fetch;

/// Longest page that is read.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// The reading of the host of one target.
#[derive(Debug)]
pub struct NodePoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// The exporter's page.
    pub url: String,
    /// Interval.
    pub every: Duration,
    /// Carries it.
    pub fetch: Fetch,
    /// Counts results.
    pub own: SelfMetrics,
}

impl NodePoll {
    /// Reads until `samples` is closed, the first page at once.
    pub async fn run(self, samples: mpsc::Sender<NodeSample>) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut last = "";
        loop {
            ticks.tick().await;
            let (result, sample) = self.read().await;
            self.own.node_scrapes(&self.target, result).inc();
            if result != last {
                let (target, url) = (&self.target, &self.url);
                tracing::info!(%target, %url, result, "reading the host's page");
                last = result;
            }
            if let Some(sample) = sample
                && samples.send(sample).await.is_err()
            {
                return;
            }
        }
    }

    async fn read(&self) -> (&'static str, Option<NodeSample>) {
        let page = match self.fetch.get(&self.url, &HeaderMap::new(), MAX_PAGE).await {
            Ok(page) if page.status.is_success() => page,
            Ok(_) => return ("status", None),
            Err(_) => return ("unreachable", None),
        };
        match read_node(&String::from_utf8_lossy(&page.body)) {
            None => ("unrecognised", None),
            Some(state) => {
                let sample = NodeSample {
                    target_index: self.target_index,
                    at: page.finished_at,
                    state,
                };
                ("ok", Some(sample))
            }
        }
    }
}
