//! The hosts of targets: who reads them, and what the surface shows of them.

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::aside::{Asking, page_elsewhere};
use super::build::{SAMPLE_INTERVALS, SCRAPES};
use super::dispatch::Stop;
use super::server_process;
use crate::aggregate::Live;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Config, NodeSource};
use crate::export::catalog;
use crate::export::prometheus::Gauge;
use crate::measurement::NodeSample;
use crate::scrape::{Listening, NodeHere, NodePoll};
use crate::telemetry::SelfMetrics;

/// Whoever reads the hosts of a run's targets, and where the readings go.
pub(super) struct NodeReading {
    polls: Vec<NodePoll>,
    /// Those that are this machine.
    here: Vec<NodeHere>,
    samples: (mpsc::Sender<NodeSample>, mpsc::Receiver<NodeSample>),
}

impl NodeReading {
    /// As `config` has it; nothing is read yet.
    pub(super) fn new(
        config: &Config,
        (anchor, own): (TimeAnchor, &SelfMetrics),
    ) -> anyhow::Result<Self> {
        let (mut polls, mut here) = (Vec::new(), Vec::new());
        for (target_index, target) in config.targets.iter().enumerate() {
            match &target.node {
                None => {}
                Some(NodeSource::This) => here.extend(target.urls.first().map(|url| NodeHere {
                    target_index,
                    target: target.name.clone(),
                    listening: Listening::at(url),
                    root: "/".into(),
                    every: target.node_every,
                    anchor,
                    own: own.clone(),
                })),
                Some(NodeSource::Page(url)) => {
                    let page = page_elsewhere(target, url, Asking::beside(anchor))?;
                    polls.push(NodePoll {
                        target_index,
                        target: target.name.clone(),
                        url: page.url,
                        fetch: page.fetch,
                        every: target.node_every,
                        own: own.clone(),
                    });
                }
            }
        }
        Ok(Self {
            polls,
            here,
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
        for here in self.here {
            start(here, samples.clone());
        }
        for poll in self.polls {
            stop.spawn(on, poll.run(samples.clone()));
        }
        samples_in
    }
}

/// Starts `here` on a thread of its own. It ends by itself, when nobody wants its samples any more.
fn start(here: NodeHere, samples: mpsc::Sender<NodeSample>) {
    let thread = std::thread::Builder::new().name("node".to_owned());
    let started = thread.spawn(move || here.run(&samples));
    if let Err(error) = started {
        tracing::error!(%error, "this machine is not read: no thread");
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
        let is_fresh = age <= target.node_every * SAMPLE_INTERVALS;
        let latest = latest.filter(|_| is_fresh);
        let latest = latest.unwrap_or_default();
        let of = |metric, value| (metric, None, value);
        let off = |of, value| (&catalog::NODE_OFF_NODE, Some(of), value);
        for (metric, of, value) in [
            of(&catalog::NODE_SAMPLE_AGE, Some(age.as_secs_f64())),
            of(&catalog::NODE_CPU_BUSY, latest.cpu_busy),
            of(&catalog::NODE_CPU_WAITING, latest.cpu_waiting),
            of(&catalog::NODE_MEMORY_WAITING, latest.memory_waiting),
            of(&catalog::NODE_LOAD, latest.load_per_cpu),
            of(&catalog::NODE_MEMORY_AVAILABLE, latest.memory_available),
            off("wanted", latest.off_wanted),
            off("task", latest.off_task),
        ] {
            let of = of.map(|of: &str| ("of", of.to_owned()));
            gauges.extend(value.map(|value| {
                Gauge {
                    metric,
                    labels: std::iter::once(("target", target.name.clone()))
                        .chain(of)
                        .collect(),
                    value,
                }
            }));
        }
        let process = history.process().filter(|_| is_fresh);
        gauges.extend(
            process
                .into_iter()
                .flat_map(|process| server_process::gauges(&target.name, process)),
        );
    }
    gauges
}
