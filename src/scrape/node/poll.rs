//! The host of one target, read again and again.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{of_kernel, read_node};
use crate::clock::TimeAnchor;
use crate::measurement::NodeSample;
use crate::scrape::beside::{Beside, Reading, again, page};
use crate::telemetry::{HostFiles, SelfMetrics};
use crate::transport::fetch::Fetch;

/// Where a host is read.
#[derive(Debug)]
pub enum NodePlace {
    /// The page of its node exporter.
    Page {
        /// Where that is.
        url: String,
        /// Carries it.
        fetch: Fetch,
    },
    /// The kernel of this machine.
    This {
        /// Its files.
        files: HostFiles,
        /// The clock.
        anchor: TimeAnchor,
    },
}

/// The reading of the host of one target.
#[derive(Debug)]
pub struct NodePoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// Where it is read.
    pub place: NodePlace,
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
        let (at, state) = match &self.place {
            NodePlace::Page { url, fetch } => match page(fetch, url).await {
                Ok(page) => {
                    let text = String::from_utf8_lossy(&page.body);
                    (page.finished_at, read_node(&text))
                }
                Err(result) => return (result, None),
            },
            NodePlace::This { files, anchor } => {
                let state = of_kernel(&files.read());
                (anchor.now(), state)
            }
        };
        let Some(state) = state else {
            return ("unrecognised", None);
        };
        let sample = NodeSample {
            target_index: self.target_index,
            at,
            state,
        };
        ("ok", Some(sample))
    }

    fn told(&self, (result, _): &Reading<NodeSample>, is_new: bool) {
        self.own.node_scrapes(&self.target, result).inc();
        if is_new {
            let target = &self.target;
            let url = match &self.place {
                NodePlace::Page { url, .. } => url.as_str(),
                NodePlace::This { .. } => "this machine",
            };
            tracing::info!(%target, url, result, "reading the host");
        }
    }
}
