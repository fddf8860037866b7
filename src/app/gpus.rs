//! The GPUs of targets: who reads them, and what the surface shows of them.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::aside::{Asking, page_elsewhere};
use super::build::{SAMPLE_INTERVALS, SCRAPES};
use super::dispatch::Stop;
use crate::aggregate::{EnergyUse, GpuHistory, GpuRules, Live};
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{Config, GpuConfig, GpuSource, ProbeConfig, TargetConfig};
use crate::export::catalog::{self, Metric};
use crate::export::prometheus::Gauge;
use crate::measurement::{Gpu, GpuField, GpuSample, THROTTLING};
use crate::scrape::{GpuPoll, NvmlTarget, NvmlWatch, open_driver};
use crate::telemetry::SelfMetrics;

/// GPUs of one target whose series leave the program; `tokencanary.gpus` shows that there are
/// more.
const MOST_EXPORTED: usize = 64;
/// The span of what a token and a request cost.
const MINUTE: Duration = Duration::from_mins(1);
/// Readings that are kept, whatever the interval: windows are compared with those before them.
const LEAST_KEPT: usize = 512;
const MOST_KEPT: usize = 100_000;

/// What is kept of the GPUs of each target, in the order of targets.
pub(super) fn rules(config: &Config) -> impl Iterator<Item = Option<GpuRules>> + '_ {
    let longest = config
        .probes
        .iter()
        .map(|probe: &ProbeConfig| probe.limits.total);
    let longest = longest.max().unwrap_or_default();
    let targets = config.targets.iter();
    targets.map(move |target| {
        let every = target.gpu.as_ref()?.every;
        // The oldest one that the end of the longest request may ask for.
        let needed = longest.as_nanos() / every.as_nanos().max(1) + 4;
        let needed = usize::try_from(needed).unwrap_or(MOST_KEPT);
        Some(GpuRules {
            capacity: needed.clamp(LEAST_KEPT, MOST_KEPT),
            max_age: every * SAMPLE_INTERVALS,
        })
    })
}

/// Whoever reads the GPUs of a run's targets, and where the readings go.
pub(super) struct GpuReading {
    polls: Vec<GpuPoll>,
    /// Reads the driver of this machine, if a target's GPUs are here.
    watch: Option<NvmlWatch>,
    samples: (mpsc::Sender<GpuSample>, mpsc::Receiver<GpuSample>),
}

impl GpuReading {
    /// As `config` has it; nothing is read yet.
    pub(super) fn new(
        config: &Config,
        (anchor, own): (TimeAnchor, &SelfMetrics),
    ) -> anyhow::Result<Self> {
        let with = (Asking::beside(anchor), own);
        let targets = config.targets.iter().enumerate();
        let polls = targets.filter_map(|(index, target)| poll(index, target, with).transpose());
        Ok(Self {
            polls: polls.collect::<anyhow::Result<_>>()?,
            watch: nvml(config, (anchor, own)),
            samples: mpsc::channel(SCRAPES),
        })
    }

    /// Where readings go.
    pub(super) fn samples(&self) -> mpsc::Sender<GpuSample> {
        self.samples.0.clone()
    }

    /// Starts reading; gives where the readings come out.
    pub(super) fn start(self, (on, stop): (&Handle, &Stop)) -> mpsc::Receiver<GpuSample> {
        let (samples, samples_in) = self.samples;
        if let Some(watch) = self.watch {
            start(watch, samples.clone());
        }
        for poll in self.polls {
            stop.spawn(on, poll.run(samples.clone()));
        }
        samples_in
    }
}

/// The reading of the exporter's page of the target at `target_index`, if it has one.
pub(super) fn poll(
    target_index: usize,
    target: &TargetConfig,
    (asking, own): (Asking, &SelfMetrics),
) -> anyhow::Result<Option<GpuPoll>> {
    let Some(GpuConfig {
        source: GpuSource::Exporter(url),
        select,
        every,
    }) = &target.gpu
    else {
        return Ok(None);
    };
    let page = page_elsewhere(target, url, asking)?;
    Ok(Some(GpuPoll {
        target_index,
        target: target.name.clone(),
        url: page.url,
        select: select.clone(),
        every: *every,
        fetch: page.fetch,
        own: own.clone(),
    }))
}

/// The reading of this machine's driver, if a target wants it: at the shortest of their intervals.
pub(super) fn nvml(
    config: &Config,
    (anchor, own): (TimeAnchor, &SelfMetrics),
) -> Option<NvmlWatch> {
    let mut shortest = None;
    let mut targets = Vec::new();
    for (target_index, target) in config.targets.iter().enumerate() {
        if let Some(GpuConfig {
            source: GpuSource::Nvml,
            select,
            every,
        }) = &target.gpu
        {
            shortest = Some(shortest.map_or(*every, |known: Duration| known.min(*every)));
            targets.push(NvmlTarget {
                target_index,
                target: target.name.clone(),
                select: select.clone(),
            });
        }
    }
    Some(NvmlWatch {
        targets,
        every: shortest?,
        anchor,
        own: own.clone(),
    })
}

/// Starts `watch` on a thread of its own, since the driver's calls block. It ends by itself, when
/// nobody wants its samples any more.
fn start(watch: NvmlWatch, samples: mpsc::Sender<GpuSample>) {
    let thread = std::thread::Builder::new().name("nvml".to_owned());
    let started = thread.spawn(move || watch.run(open_driver, &samples));
    if let Err(error) = started {
        tracing::error!(%error, "the GPUs of this machine are not read: no thread");
    }
}

/// What is known of the GPUs of the targets with these `names`, in the order of targets.
pub(super) fn gauges<'a>(
    live: &Live,
    names: impl Iterator<Item = &'a str>,
    now: MonoTime,
) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for (index, (target, history)) in names.zip(live.gpus()).enumerate() {
        if let Some(history) = history {
            of_target(target, history, now, &mut gauges);
            if let Some(used) = live.energy(index, (now.minus(MINUTE), now)) {
                gauges.extend(of_energy(target, &used));
            }
        }
    }
    gauges
}

/// What a token and a request of a target cost.
fn of_energy(target: &str, used: &EnergyUse) -> impl Iterator<Item = Gauge> {
    let per = [
        (&catalog::GPU_ENERGY_PER_TOKEN, used.per_output_token_j),
        (&catalog::GPU_ENERGY_PER_REQUEST, used.per_request_j),
    ];
    let labels = vec![
        ("target", target.to_owned()),
        ("source", used.drawn.source.name().to_owned()),
    ];
    per.into_iter().filter_map(move |(metric, value)| {
        Some(Gauge {
            metric,
            labels: labels.clone(),
            value: value?,
        })
    })
}

fn of_target(target: &str, history: &GpuHistory, now: MonoTime, gauges: &mut Vec<Gauge>) {
    let mut add = |metric: &'static Metric, more: &[(&'static str, &str)], value: Option<f64>| {
        if let Some(value) = value {
            let labels = more
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            gauges.push(Gauge {
                metric,
                labels: std::iter::once(("target", target.to_owned()))
                    .chain(labels)
                    .collect(),
                value,
            });
        }
    };
    let Some(newest) = history.newest() else {
        return;
    };
    let age: Duration = now.since(newest.at);
    add(&catalog::GPU_SAMPLE_AGE, &[], Some(age.as_secs_f64()));
    add(&catalog::GPU_ENERGY, &[], history.energy_j());
    // An old state is not the state now: absent, and its age says why.
    if age > history.max_age() {
        return;
    }
    let state = newest.state();
    add(&catalog::GPU_COUNT, &[], Some(f64::from(state.gpus)));
    let imbalance = [
        ("utilization", state.utilization_imbalance()),
        ("memory", state.memory_imbalance()),
    ];
    for (of, value) in imbalance {
        add(&catalog::GPU_IMBALANCE, &[("of", of)], value);
    }
    each(newest, &mut add);
}

/// Takes a value with the labels of its series, if there is one.
type Add<'a> = dyn FnMut(&'static Metric, &[(&'static str, &str)], Option<f64>) + 'a;

/// The values of each GPU.
fn each(newest: &GpuSample, add: &mut Add<'_>) {
    for gpu in newest.gpus.iter().take(MOST_EXPORTED) {
        let Gpu { name, uuid, .. } = gpu;
        let both = [("gpu", &**name), ("hw_id", &**uuid)];
        let labels = if uuid.is_empty() { &both[..1] } else { &both };
        let shown = [
            (&catalog::HW_GPU_UTILIZATION, GpuField::Utilization),
            (&catalog::HW_GPU_MEMORY_USAGE, GpuField::MemoryUsed),
            (&catalog::GPU_MEMORY_ACTIVITY, GpuField::MemoryActivity),
            (&catalog::GPU_SM_CLOCK, GpuField::SmClock),
            (&catalog::GPU_MEMORY_CLOCK, GpuField::MemoryClock),
            (&catalog::GPU_POWER, GpuField::Power),
            (&catalog::GPU_TEMPERATURE, GpuField::Temperature),
            (&catalog::GPU_XID, GpuField::Xid),
            (&catalog::GPU_SM_ACTIVE, GpuField::SmActive),
            (&catalog::GPU_TENSOR_ACTIVE, GpuField::TensorActive),
            (&catalog::GPU_DRAM_ACTIVE, GpuField::DramActive),
        ];
        for (metric, field) in shown {
            add(metric, labels, gpu.fields.get(field));
        }
        add(
            &catalog::HW_GPU_MEMORY_LIMIT,
            labels,
            gpu.fields.memory_total(),
        );
        let reasons = gpu.fields.clock_reasons();
        let lowered = reasons.map(|bits| f64::from(u8::from(bits & THROTTLING != 0)));
        add(&catalog::GPU_THROTTLED, labels, lowered);
    }
}
