//! The hosts of targets: who reads them, and what the surface shows of them.

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::aside::{Asking, page_elsewhere};
use super::build::{SAMPLE_INTERVALS, SCRAPES};
use super::dispatch::Stop;
use crate::aggregate::Live;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Config, NodeSource};
use crate::export::catalog;
use crate::export::prometheus::Gauge;
use crate::measurement::NodeSample;
use crate::scrape::{NodePlace, NodePoll};
use crate::telemetry::{HostFiles, SelfMetrics};

/// Whoever reads the hosts of a run's targets, and where the readings go.
pub(super) struct NodeReading {
    polls: Vec<NodePoll>,
    samples: (mpsc::Sender<NodeSample>, mpsc::Receiver<NodeSample>),
}

impl NodeReading {
    /// As `config` has it; nothing is read yet.
    pub(super) fn new(
        config: &Config,
        (anchor, own): (TimeAnchor, &SelfMetrics),
    ) -> anyhow::Result<Self> {
        let mut polls = Vec::new();
        for (target_index, target) in config.targets.iter().enumerate() {
            let place = match &target.node {
                None => continue,
                Some(NodeSource::This) => NodePlace::This {
                    files: HostFiles::default(),
                    anchor,
                },
                Some(NodeSource::Page(url)) => {
                    let page = page_elsewhere(target, url, Asking::beside(anchor))?;
                    NodePlace::Page {
                        url: page.url,
                        fetch: page.fetch,
                    }
                }
            };
            polls.push(NodePoll {
                target_index,
                target: target.name.clone(),
                place,
                every: target.node_every,
                own: own.clone(),
            });
        }
        Ok(Self {
            polls,
            samples: mpsc::channel(SCRAPES),
        })
    }

    /// Where readings go.
    pub(super) fn samples(&self) -> mpsc::Sender<NodeSample> {
        self.samples.0.clone()
    }

    /// Starts reading; gives where the readings come out.
    pub(super) fn start(self, (on, stop): (&Handle, &Stop)) -> mpsc::Receiver<NodeSample> {
        let (samples, samples_in) = self.samples;
        for poll in self.polls {
            stop.spawn(on, poll.run(samples.clone()));
        }
        samples_in
    }
}

/// What is known of the hosts of the targets of `config`, in the order of targets.
pub(super) fn gauges(live: &Live, config: &Config, now: MonoTime) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for (target, history) in config.targets.iter().zip(live.nodes()) {
        let Some(read) = history.last() else { continue };
        let age = now.since(read);
        let latest = history.latest();
        // An old state is not the state now: absent, and its age says why.
        let latest = latest.filter(|_| age <= target.node_every * SAMPLE_INTERVALS);
        let latest = latest.unwrap_or_default();
        for (metric, value) in [
            (&catalog::NODE_SAMPLE_AGE, Some(age.as_secs_f64())),
            (&catalog::NODE_CPU_BUSY, latest.cpu_busy),
            (&catalog::NODE_CPU_WAITING, latest.cpu_waiting),
            (&catalog::NODE_MEMORY_WAITING, latest.memory_waiting),
            (&catalog::NODE_LOAD, latest.load_per_cpu),
            (&catalog::NODE_MEMORY_AVAILABLE, latest.memory_available),
        ] {
            gauges.extend(value.map(|value| Gauge {
                metric,
                labels: vec![("target", target.name.clone())],
                value,
            }));
        }
    }
    gauges
}
