//! The page of a host's node exporter, read again and again.

use std::time::Duration;

use tokio::sync::mpsc;

use super::read_node;
use crate::measurement::NodeSample;
use crate::scrape::beside::{Beside, Reading, again, page};
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::Fetch;

/// The reading of the host of one target.
#[derive(Debug)]
pub struct NodePoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// Where its page is.
    pub url: String,
    /// Carries it.
    pub fetch: Fetch,
    /// Interval.
    pub every: Duration,
    /// Counts results.
    pub own: SelfMetrics,
}

impl NodePoll {
    /// Reads until `samples` is closed, the first page at once.
    pub async fn run(self, samples: mpsc::Sender<NodeSample>) {
        again(&self, (self.every, samples)).await;
    }
}

impl Beside for NodePoll {
    type Sample = NodeSample;

    async fn read(&self) -> Reading<NodeSample> {
        let page = match page(&self.fetch, &self.url).await {
            Ok(page) => page,
            Err(result) => return (result, None),
        };
        let state = read_node(&String::from_utf8_lossy(&page.body));
        let Some(state) = state else {
            return ("unrecognised", None);
        };
        let sample = NodeSample {
            target_index: self.target_index,
            at: page.finished_at,
            state,
            process: None,
        };
        ("ok", Some(sample))
    }

    fn told(&self, (result, _): &Reading<NodeSample>, is_new: bool) {
        self.own.node_scrapes(&self.target, result).inc();
        if is_new {
            let (target, url) = (&self.target, &self.url);
            tracing::info!(%target, url, result, "reading the host");
        }
    }
}
