//! The volume of one target, read again and again.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{PodReading, read_pod};
use crate::clock::TimeAnchor;
use crate::config::PodInfoConfig;
use crate::measurement::{IdentitySample, PodInfo};
use crate::scrape::beside::{Beside, Reading, again};

/// The reading of one target's pod.
#[derive(Debug)]
pub struct PodPoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for logs.
    pub target: String,
    /// Where it is described.
    pub info: PodInfoConfig,
    /// Interval.
    pub every: Duration,
    /// The clock.
    pub anchor: TimeAnchor,
}

impl PodPoll {
    /// Reads until `samples` is closed, the first time at once.
    pub async fn run(self, samples: mpsc::Sender<IdentitySample>) {
        again(&self, (self.every, samples)).await;
    }
}

impl Beside for PodPoll {
    type Sample = IdentitySample;

    async fn read(&self) -> Reading<IdentitySample> {
        let PodReading { info, trouble } = read_pod(&self.info);
        if info == PodInfo::default() {
            return (trouble.unwrap_or("nothing"), None);
        }
        let sample = IdentitySample {
            target_index: self.target_index,
            at: self.anchor.now(),
            version: None,
            models: None,
            pod: Some(info),
        };
        (trouble.unwrap_or("ok"), Some(sample))
    }

    fn told(&self, (result, sample): &Reading<IdentitySample>, is_new: bool) {
        if !is_new {
            return;
        }
        let pod = sample.as_ref().and_then(|sample| sample.pod.as_ref());
        let (target, dir) = (&self.target, self.info.dir.display());
        let files = pod.map_or_else(String::new, told_by);
        if *result == "ok" {
            tracing::info!(%target, %dir, result, files, "reading what the pod is");
        } else {
            tracing::warn!(%target, %dir, result, files, "reading what the pod is");
        }
    }
}

/// The files that tell something.
fn told_by(pod: &PodInfo) -> String {
    let files = [
        ("name", pod.name.is_some()),
        ("uid", pod.uid.is_some()),
        ("labels", pod.labels.is_some()),
        ("annotations", pod.annotations.is_some()),
    ];
    let found = files.iter().filter(|(_, tells)| *tells);
    let names: Vec<&str> = found.map(|(name, _)| *name).collect();
    names.join(" ")
}
