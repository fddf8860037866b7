//! Reads one target's metrics page again and again.
//!
//! A page counts from the instant its last byte was read. A page that fails, or holds no
//! family we know, gives no sample: the record then shows an older state with its age, and
//! after three intervals none.

use std::sync::Arc;
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::roles::read_state;
use crate::clock::TimeAnchor;
use crate::measurement::Sample;
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::Fetch;

/// Longest page that is read.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// The reading of one target's page.
#[derive(Debug)]
pub struct Poll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// The page.
    pub url: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Interval.
    pub every: Duration,
    /// The clock.
    pub anchor: TimeAnchor,
    /// Carries it.
    pub fetch: Fetch,
    /// Counts results.
    pub own: SelfMetrics,
}

impl Poll {
    /// Reads until `samples` is closed, the first page at once.
    pub async fn run(self, samples: mpsc::Sender<Sample>) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut last = "";
        loop {
            ticks.tick().await;
            let (result, sample) = self.read().await;
            self.own.scrapes(&self.target, result).inc();
            if result != last {
                let target = &self.target;
                let url = &self.url;
                tracing::info!(%target, %url, result, "reading the server's metrics page");
                last = result;
            }
            if let Some(sample) = sample
                && samples.send(sample).await.is_err()
            {
                return;
            }
        }
    }

    /// Reads the page once, without counting it.
    pub async fn once(&self) -> Option<Sample> {
        self.read().await.1
    }

    async fn read(&self) -> (&'static str, Option<Sample>) {
        let asked = self.anchor.now();
        let page = match self.fetch.get(&self.url, &self.headers, MAX_PAGE).await {
            Ok(page) if page.status.is_success() => page,
            Ok(_) => return ("status", None),
            Err(_) => return ("unreachable", None),
        };
        let text = String::from_utf8_lossy(&page.body);
        let read = read_state(&text);
        if !read.recognised() {
            return ("unrecognised", None);
        }
        let sample = Sample {
            target_index: self.target_index,
            asked,
            at: page.finished_at,
            state: read.state,
            page: Arc::default(),
        };
        ("ok", Some(sample))
    }
}
