//! Makes the joining stage and the exporters behind it.

use std::sync::{Arc, Mutex};

use super::Outputs;
use super::build::SAMPLE_INTERVALS;
use super::diagnosis::{Diagnosing, OwnPressure};
use super::exporters::{self, ExporterTask, Otlp};
use super::gpus;
use super::join::{Join, Known};
use super::ledger::Ledger;
use super::starts::Starts;
use super::streams::StreamPlan;
use super::tokenizers::Tokenizers;
use crate::aggregate::{Live, SampleRing, StreamRules, SummaryBuilder};
use crate::analysis::{Watch, WatchedStream};
use crate::clock::TimeAnchor;
use crate::config::{Config, ProbeConfig, TargetConfig, TraceSampling};
use crate::control::Slots;
use crate::measurement::Slo;
use crate::telemetry::SelfMetrics;

/// Samples kept of one target at most.
const MAX_SAMPLES: usize = 100_000;

/// What the joining stage is made of.
pub(super) struct Joining<'j> {
    pub(super) config: &'j Config,
    pub(super) outputs: &'j Outputs,
    pub(super) plans: &'j [StreamPlan<'j>],
    pub(super) slots: &'j [Slots],
    pub(super) anchor: TimeAnchor,
    pub(super) own: &'j SelfMetrics,
    pub(super) tokenizers: &'j Tokenizers,
}

impl Joining<'_> {
    /// The stage, and the exporters behind it.
    pub(super) fn stage(
        &self,
        ledgers: Vec<Ledger>,
        instance: &str,
    ) -> anyhow::Result<(Join, Vec<ExporterTask>, Otlp)> {
        let Self {
            config, outputs, ..
        } = self;
        let rules: Vec<_> = self
            .plans
            .iter()
            .map(|plan| (Arc::clone(&plan.stream), rules(plan.probe)))
            .collect();
        let parts = exporters::Parts {
            anchor: self.anchor,
            own: self.own,
            instance,
            rules: &rules,
        };
        let built = exporters::build(&config.export, outputs, &parts)?;
        let streams: Vec<_> = rules.iter().map(|(stream, _)| Arc::clone(stream)).collect();
        let targets = config.targets.iter();
        let watched = rules.iter().map(|(stream, rules)| WatchedStream {
            target: stream.target_index,
            is_alone: config.targets[stream.target_index].urls.len() == 1,
            slo: rules.slo,
        });
        let watch = Arc::new(Mutex::new(Watch::new(watched)));
        let every = targets.clone().map(|target| target.server_metrics_every);
        let live = Live::new(rules, config.targets.len())
            .reading_every(every)
            .reading_gpus(gpus::rules(config));
        let live = Arc::new(Mutex::new(live));
        let starts = Starts::new(&live, (self.anchor, config), built.otlp.events.clone());
        let join = Join {
            anchor: self.anchor,
            diagnosing: Diagnosing {
                watch,
                live: Arc::clone(&live),
                slots: self.slots.to_vec(),
                pressure: OwnPressure::default(),
                events: built.otlp.events.clone(),
            },
            live,
            summary: outputs
                .summary
                .then(|| SummaryBuilder::new(&streams).held_to(slo_of_all(&config.probes))),
            known: targets
                .map(|target| known(target, &config.probes))
                .collect(),
            outlets: built.outlets,
            events: built.otlp.events.clone(),
            starts,
            ledgers,
            exported_spans: exported_spans(config),
            tokenizers: self.tokenizers.clone(),
        };
        Ok((join, built.tasks, built.otlp))
    }
}

/// Which requests have a span that leaves the program, if any has.
fn exported_spans(config: &Config) -> Option<TraceSampling> {
    let otlp = config.export.otlp.as_ref()?;
    otlp.traces.as_ref().map(|_| otlp.sampling)
}

/// What all requests of a run are held to: nothing, where there are several probes.
const fn slo_of_all(probes: &[ProbeConfig]) -> Slo {
    match probes {
        [only] => only.slo,
        _ => Slo::NONE,
    }
}

const fn rules(probe: &ProbeConfig) -> StreamRules {
    StreamRules {
        stall: probe.stall,
        total: probe.limits.total,
        slo: probe.slo,
        knows_answers: probe.workload.knows_answers(),
    }
}

/// The samples of `target`, kept long enough to serve the longest request at its end.
fn known(target: &TargetConfig, probes: &[ProbeConfig]) -> Known {
    let every = target.server_metrics_every;
    let longest = probes
        .iter()
        .map(|probe| probe.limits.total)
        .max()
        .unwrap_or_default();
    let samples = longest.as_nanos() / every.as_nanos().max(1) + 4;
    Known {
        ring: SampleRing::new(
            usize::try_from(samples)
                .unwrap_or(usize::MAX)
                .min(MAX_SAMPLES),
        ),
        max_age: every * SAMPLE_INTERVALS,
    }
}
