//! A host that is the machine that we run on: its kernel, and the server's own processes, read
//! again and again.
//!
//! On a thread of its own: looking for the server's processes may take long on a large machine,
//! and pages must not wait for it.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use super::of_kernel;
use crate::clock::TimeAnchor;
use crate::measurement::{NodeSample, ProcessState};
use crate::scrape::process::{Listening, MemoryNodes, ProcessWatch, Unfound};
use crate::telemetry::{HostFiles, SelfMetrics};

/// The reading of this machine for one target.
#[derive(Debug)]
pub struct NodeHere {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// Where the server listens.
    pub listening: Listening,
    /// What stands for `/`.
    pub root: PathBuf,
    /// Interval.
    pub every: Duration,
    /// The clock.
    pub anchor: TimeAnchor,
    /// Counts results.
    pub own: SelfMetrics,
}

/// What the log has.
#[derive(Default)]
struct Said {
    host: Option<&'static str>,
    /// The process that was found, or in a word why none was.
    process: Option<Result<u32, &'static str>>,
}

impl NodeHere {
    /// Reads on the calling thread until `samples` is closed.
    pub fn run(self, samples: &mpsc::Sender<NodeSample>) {
        let mut watch = ProcessWatch::new(&self.root, self.listening.clone());
        let mut said = Said::default();
        while !samples.is_closed() {
            if let Some(sample) = self.read(&mut watch, &mut said)
                && samples.blocking_send(sample).is_err()
            {
                return;
            }
            // Early if somebody wakes it, which nobody does.
            thread::park_timeout(self.every);
        }
    }

    fn read(&self, watch: &mut ProcessWatch, said: &mut Said) -> Option<NodeSample> {
        let nodes = MemoryNodes::read(&self.root);
        let state = of_kernel(&HostFiles::below(&self.root).read());
        let result = if state.is_some() {
            "ok"
        } else {
            "unrecognised"
        };
        self.own.node_scrapes(&self.target, result).inc();
        let target = &self.target;
        if said.host.replace(result) != Some(result) {
            tracing::info!(%target, url = "this machine", result, "reading the host");
        }
        let mut state = state?;
        state.memory_places = nodes.places();
        let at = self.anchor.now();
        let process = watch.read(at, &nodes);
        self.tell(&process, said);
        Some(NodeSample {
            target_index: self.target_index,
            at,
            state,
            process: process.ok().map(Box::new),
        })
    }

    /// Counts what came of looking for the server's processes, and says it once.
    fn tell(&self, process: &Result<ProcessState, Unfound>, said: &mut Said) {
        let result = process.as_ref().map_or_else(Unfound::name, |_| "ok");
        self.own.process_reads(&self.target, result).inc();
        let news = match process {
            Ok(state) => Ok(state.pid),
            Err(why) => Err(why.name()),
        };
        if said.process.replace(news) == Some(news) {
            return;
        }
        let target = &self.target;
        match process {
            Ok(state) => {
                let (pid, processes) = (state.pid, state.processes);
                tracing::info!(%target, pid, processes, "the server's processes were found");
            }
            Err(why) => {
                tracing::warn!(%target, %why, "the server's processes are not known");
            }
        }
    }
}
