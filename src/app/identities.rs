//! Which servers are asked what they are, and how; and which of their pods are described.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::aside::{Asking, page_at};
use super::build::SCRAPES;
use super::dispatch::Stop;
use super::streams::headers;
use crate::client::{models_path, served_models};
use crate::clock::TimeAnchor;
use crate::config::{Config, ServerMetrics, TargetConfig};
use crate::measurement::IdentitySample;
use crate::scrape::{IdentityPoll, PodPoll, VERSION_PATHS, VersionPlace};

/// A release does not come more often.
const EVERY: Duration = Duration::from_mins(1);
/// A few small files on this machine: the sooner they are read, the better a mark's time.
const POD_EVERY: Duration = Duration::from_secs(10);

/// Whoever asks the servers of a run, and where the answers go.
pub(super) struct IdentityReading {
    polls: Vec<IdentityPoll>,
    pods: Vec<PodPoll>,
    samples: (mpsc::Sender<IdentitySample>, mpsc::Receiver<IdentitySample>),
}

impl IdentityReading {
    /// Every target whose metrics page is read, and every pod that is described; nothing is asked
    /// yet.
    pub(super) fn new(config: &Config, anchor: TimeAnchor) -> anyhow::Result<Self> {
        let targets = config.targets.iter().enumerate();
        let polls = targets
            .filter(|(_, target)| target.server_metrics != ServerMetrics::Off)
            .map(|(index, target)| poll(index, target, anchor))
            .collect::<anyhow::Result<_>>()?;
        let targets = config.targets.iter().enumerate();
        let pods = targets.filter_map(|(target_index, target)| {
            Some(PodPoll {
                target_index,
                target: target.name.clone(),
                info: target.pod_info.clone()?,
                every: POD_EVERY,
                anchor,
            })
        });
        Ok(Self {
            polls,
            pods: pods.collect(),
            samples: mpsc::channel(SCRAPES),
        })
    }

    /// Starts asking; gives where the answers come out.
    pub(super) fn start(self, (on, stop): (&Handle, &Stop)) -> mpsc::Receiver<IdentitySample> {
        let (samples, samples_in) = self.samples;
        for poll in self.polls {
            stop.spawn(on, poll.run(samples.clone()));
        }
        for poll in self.pods {
            stop.spawn(on, poll.run(samples.clone()));
        }
        samples_in
    }
}

fn poll(
    target_index: usize,
    target: &TargetConfig,
    anchor: TimeAnchor,
) -> anyhow::Result<IdentityPoll> {
    let at = |path| page_at(target, (&target.urls[0], path), Asking::beside(anchor));
    let models = models_path(target.api).map(at).transpose()?;
    let fetch = at("/")?.fetch;
    let versions = VERSION_PATHS.iter().map(|path| Ok(at(path)?.url));
    Ok(IdentityPoll {
        target_index,
        target: target.name.clone(),
        versions: versions.collect::<anyhow::Result<_>>()?,
        models: models.map(|page| page.url),
        names: |body| served_models(body).ok(),
        headers: headers(target)?,
        every: EVERY,
        anchor,
        fetch,
        place: VersionPlace::default(),
    })
}
