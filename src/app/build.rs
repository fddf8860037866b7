//! Makes the parts of a run and every channel between them. Nothing runs yet.
//!
//! The only place where random sources are seeded: arrivals and prompts from the run's seed,
//! ids and the beginnings of cold prompts afresh each time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::dispatch::{Dispatch, PhasePlan, Rules, Shared, Stop, Supply};
use super::feed::{Feed, FeedTask, FileReader, FromFile, Making, Timing};
use super::gpus::GpuReading;
use super::identities::IdentityReading;
use super::joining::Joining;
use super::lanes::{Lane, Lanes, Load};
use super::ledger::Ledger;
use super::nodes::NodeReading;
use super::polls::polls;
use super::runtimes::Measuring;
use super::streams::{StreamPlan, loops, streams};
use super::tokenizers::{Tokenizers, load_all, measure};
use super::{App, Extent, Setup};
use crate::client::{BodyWriter, Cancel};
use crate::clock::TimeAnchor;
use crate::config::{
    Arrivals, Config, PhaseConfig, ProbeConfig, PromptFile, Replies, TargetConfig, TraceSampling,
};
use crate::control::{Governor, Slots};
use crate::load::schedule::start_within;
use crate::load::workload::{Measure, Sources, Tokenizer, Workload};
use crate::measurement::{Phase, PhaseKind, RequestRecord, Stream, TraceIds};
use crate::telemetry::SelfMetrics;
use crate::transport::{self, Connect};

/// Records without a request in flight that wait, for a slot or to be joined; a full queue delays the next arrivals, visibly.
const RECORDS: usize = 2048;
/// Readings of pages that wait to be joined.
pub(super) const SCRAPES: usize = 256;
/// A sample is used up to this many intervals after it was taken.
pub(super) const SAMPLE_INTERVALS: u32 = 3;

/// What the order of a file's entries is drawn for, beside phases.
const FILE_ORDER: u64 = 1 << 10;
/// Makes other texts of the same blocks: "warm-ups" in ASCII.
const OTHER_TEXTS: u64 = 0x7761_726d_2d75_7073;

/// The seed of one random source of one stream.
fn seeded(seed: u64, stream: &Stream, purpose: u64) -> StdRng {
    StdRng::seed_from_u64(
        seed ^ (u64::from(stream.id.0) << 12 | purpose).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    )
}

/// A seed for a run that was given none.
#[must_use]
pub fn draw_seed() -> u64 {
    u64::from(rand::random::<u32>())
}

/// Sources for a prompt outside any run.
pub(super) fn unseeded() -> Sources {
    Sources {
        seeded: rand::make_rng(),
        fresh: rand::make_rng(),
    }
}

/// The same, for the prompts of a file, counted by `measure`.
pub(super) fn unseeded_file(measure: Measure) -> FromFile {
    FromFile {
        seed: draw_seed(),
        sources: unseeded(),
        order: rand::make_rng(),
        measure,
        writer: None,
    }
}

/// Ids of a request outside any run.
pub(super) fn fresh_ids() -> TraceIds {
    TraceIds {
        trace: rand::random::<u128>() | 1,
        span: rand::random::<u64>() | 1,
    }
}

impl App {
    /// Makes a run out of `setup`. Requests are timed on `measuring`; all else happens on
    /// `other`, so that it cannot show up as server latency.
    ///
    /// # Errors
    ///
    /// If a part cannot be made: a header that HTTP does not allow, a directory that cannot be
    /// written.
    pub fn build(setup: Setup, (measuring, other): (Measuring, Handle)) -> anyhow::Result<Self> {
        let Setup {
            command,
            config,
            anchor,
            connect,
            extent,
            outputs,
        } = setup;
        let in_flight = make_room(&config);
        let own = SelfMetrics::new().context("self metrics")?;
        let seed = config.seed.unwrap_or_else(draw_seed);
        let plans = streams(&config)?;
        let (records, records_in) = mpsc::channel(room_for_records(&config));
        let shared = shared(&config, anchor, (records, measuring.handle()));
        let slots = slots(&config, in_flight, anchor);
        let loads = loads(&config);
        let tokenizers = load_all(&config)?;
        let parts = Parts {
            shared: &shared,
            connect: &connect,
            targets: (&slots, &loads),
            tokenizers: &tokenizers,
            seed,
            extent,
        };
        let mut feeds = Vec::new();
        let dispatches = loops(&plans)
            .map(|plans| parts.dispatch(plans, &mut feeds))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let joining = Joining {
            config: &config,
            outputs: &outputs,
            plans: &plans,
            slots: &slots,
            anchor,
            own: &own,
            tokenizers: &tokenizers,
        };
        let ledgers = dispatches.iter().map(|dispatch| dispatch.ledger.clone());
        let instance = format!("{:032x}", rand::random::<u128>());
        let (join, exporters, otlp) = joining.stage(ledgers.collect(), &instance)?;
        Ok(Self {
            command,
            instance,
            polls: polls(&config, (anchor, &own))?,
            streams: plans.iter().map(|plan| Arc::clone(&plan.stream)).collect(),
            anchor,
            seed,
            measuring,
            other,
            shared,
            slots,
            tallies: dispatches.iter().flat_map(Dispatch::tallies).collect(),
            dispatches,
            feeds,
            records: records_in,
            scrapes: mpsc::channel(SCRAPES),
            gpus: GpuReading::new(&config, (anchor, &own))?,
            nodes: NodeReading::new(&config, (anchor, &own))?,
            identities: IdentityReading::new(&config, anchor)?,
            exporters,
            otlp,
            live: Arc::clone(&join.live),
            own,
            listener: outputs.listener,
            join,
            config,
        })
    }
}

/// Makes room for a connection of each request that can be in flight, and says how many each target
/// may have: those that the configuration allows, or fewer where the system's limit of open files is lower.
fn make_room(config: &Config) -> u32 {
    let targets = u32::try_from(config.targets.len()).unwrap_or(u32::MAX);
    let allowed = config.governor.in_flight;
    let Some(room) = transport::make_room(allowed.saturating_mul(targets)) else {
        return allowed;
    };
    let room = u32::try_from(room).unwrap_or(u32::MAX) / targets.max(1);
    let room = room.clamp(1, allowed);
    let phases = config.probes.iter().flat_map(|probe| &probe.phases);
    // `bench`, which has no budgets, has a number here that stands for no limit.
    let set = config.governor.requests_per_day.map(|_| allowed);
    let asked = phases.filter_map(PhaseConfig::cap).chain(set).max();
    if let Some(asked) = asked.filter(|asked| *asked > room) {
        tracing::warn!(
            asked,
            room,
            "fewer requests can be in flight than are asked for: the system's limit of open files (`ulimit -Hn`) is too low"
        );
    }
    room
}

/// Records that are under way or wait to be joined: every request in flight has a place.
fn room_for_records(config: &Config) -> usize {
    RECORDS + config.governor.in_flight as usize * config.targets.len()
}

fn shared(
    config: &Config,
    anchor: TimeAnchor,
    (records, measuring): (mpsc::Sender<RequestRecord>, &Handle),
) -> Shared {
    Shared {
        anchor,
        governor: Arc::new(Governor::new(config.governor)),
        sequence: Arc::new(AtomicU64::new(0)),
        records,
        stop: Stop::default(),
        cancel: Cancel::default(),
        requests: TaskTracker::new(),
        measuring: measuring.clone(),
        sampling: sampling(config),
    }
}

/// Which requests are traced: all, unless OTLP says otherwise.
fn sampling(config: &Config) -> TraceSampling {
    let otlp = config.export.otlp.as_ref();
    otlp.map_or_else(TraceSampling::default, |otlp| otlp.sampling)
}

/// One set of slots per target, all free.
fn slots(config: &Config, in_flight: u32, anchor: TimeAnchor) -> Vec<Slots> {
    let now = anchor.now();
    let targets = config.targets.iter();
    targets.map(|_| Slots::new(in_flight, now)).collect()
}

/// What is in flight at each address of each target: nothing.
fn loads(config: &Config) -> Vec<Vec<Load>> {
    let targets = config.targets.iter();
    targets
        .map(|target| target.urls.iter().map(|_| Load::default()).collect())
        .collect()
}

/// What all dispatch loops are made of.
struct Parts<'s> {
    shared: &'s Shared,
    connect: &'s Arc<dyn Connect>,
    /// Slots per target, and what is in flight at each of its addresses.
    targets: (&'s [Slots], &'s [Vec<Load>]),
    tokenizers: &'s Tokenizers,
    seed: u64,
    extent: Extent,
}

impl Parts<'_> {
    /// The loop of one probe and one target: `plans` has one stream for each address.
    fn dispatch(
        &self,
        plans: &[StreamPlan<'_>],
        feeds: &mut Vec<FeedTask>,
    ) -> anyhow::Result<Dispatch> {
        let first = plans.first().context("a target without addresses")?;
        let StreamPlan {
            stream,
            probe,
            target,
            ..
        } = first;
        let anchor = self.shared.anchor;
        let (slots, loads) = self.targets;
        let of_address = probe.workload.cache.all().len();
        let loads = loads[stream.target_index].iter();
        let lanes = plans
            .iter()
            .zip(loads.flat_map(|load| std::iter::repeat_n(load, of_address)))
            .map(|(plan, load)| {
                Ok(Lane {
                    stream: Arc::clone(&plan.stream),
                    client: Arc::new(plan.client(Arc::clone(self.connect), anchor)?),
                    load: load.clone(),
                })
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        let tokenizer = self.tokenizers[stream.target_index].as_ref();
        let measured = ((stream.target_index, *target), tokenizer);
        let writer = lanes[0].client.body_writer(stream);
        let supply = self.supply((probe, stream, &writer), measured, feeds)?;
        let warm_up = self.warm_up((probe, stream, &writer), measured, feeds)?;
        Ok(Dispatch {
            shared: self.shared.clone(),
            lanes: Lanes::new(
                (lanes, of_address),
                target.balance,
                seeded(self.seed, stream, 2),
            ),
            phases: self.phases(probe, stream),
            rules: Rules {
                when_full: probe.when_full,
                patience: (!self.extent.patient).then_some(probe.limits.total),
                target_slots: slots[stream.target_index].clone(),
            },
            supply,
            warm_up,
            sessions: (replies(probe), 0),
            ledger: Ledger::default(),
            ids: rand::make_rng(),
            before: None,
        })
    }

    /// Where the prompts of `probe` come from. What gets them ready is put to `feeds`.
    fn supply(
        &self,
        (probe, stream, writer): (&ProbeConfig, &Stream, &BodyWriter),
        (target, tokenizer): ((usize, &TargetConfig), Option<&Arc<Tokenizer>>),
        feeds: &mut Vec<FeedTask>,
    ) -> anyhow::Result<Supply> {
        let sources = Sources {
            seeded: seeded(self.seed, stream, 1),
            fresh: rand::make_rng(),
        };
        let measure = measure(probe, target, tokenizer)?;
        let Some(file) = probe.workload.file() else {
            let is_slow = matches!(measure, Measure::Exact(_));
            let workload = Workload::new(&probe.workload, measure, sources);
            if is_slow && !probe.workload.has_contexts() {
                let (making, prompts) = Making::ahead(workload, writer.clone());
                feeds.push(FeedTask::Making(making));
                return Ok(Supply::ahead(prompts));
            }
            return Ok(Supply::made(workload, writer.clone()));
        };
        let with = FromFile {
            seed: self.seed,
            sources,
            order: seeded(self.seed, stream, FILE_ORDER),
            measure,
            writer: Some(writer.clone()),
        };
        let is_warm_up = |phase: &PhaseConfig| phase.kind == PhaseKind::WarmUp;
        let timing = timing(file, probe.phases.iter().filter(|one| !is_warm_up(one)));
        let reader = FileReader::open(file, timing, with)?;
        reader.tell();
        let (feed, task) = Feed::begin(reader)?;
        feeds.extend(task);
        Ok(Supply::read(feed))
    }

    /// Where warm-ups have their prompts from, if `probe` has any and sends a file: from the same
    /// one, read by itself, so that they do not move the place in it; and where texts are made,
    /// from texts of their own, so that they warm no prompt that is measured.
    fn warm_up(
        &self,
        (probe, stream, writer): (&ProbeConfig, &Stream, &BodyWriter),
        (target, tokenizer): ((usize, &TargetConfig), Option<&Arc<Tokenizer>>),
        feeds: &mut Vec<FeedTask>,
    ) -> anyhow::Result<Option<Supply>> {
        let warm_ups = probe.phases.iter();
        let mut warm_ups = warm_ups
            .filter(|phase| phase.kind == PhaseKind::WarmUp)
            .peekable();
        let Some(file) = probe.workload.file().filter(|_| warm_ups.peek().is_some()) else {
            return Ok(None);
        };
        let with = FromFile {
            seed: self.seed ^ OTHER_TEXTS,
            sources: Sources {
                seeded: seeded(self.seed, stream, FILE_ORDER + 1),
                fresh: rand::make_rng(),
            },
            order: seeded(self.seed, stream, FILE_ORDER + 2),
            measure: measure(probe, target, tokenizer)?,
            writer: Some(writer.clone()),
        };
        let reader = FileReader::open(file, timing(file, warm_ups), with)?;
        let (feed, task) = Feed::begin(reader.of_warm_up())?;
        feeds.extend(task);
        Ok(Some(Supply::read(feed)))
    }

    /// How long after its start the phase `config` of `stream` begins with arrivals.
    fn offset(&self, config: &PhaseConfig, stream: &Stream) -> Duration {
        let whose = self.extent.spread.as_deref();
        let interval = config.arrivals.interval();
        let interval = interval.filter(|_| config.bounds.is_endless());
        whose
            .zip(interval)
            .map_or(Duration::ZERO, |(whose, interval)| {
                start_within(interval, [whose, &stream.target, &stream.probe])
            })
    }

    /// The phases of `probe`, whose first stream is `stream`.
    fn phases(&self, probe: &ProbeConfig, stream: &Stream) -> VecDeque<PhasePlan> {
        let plan = |(index, config): (u64, &PhaseConfig)| {
            let mut config = config.clone();
            let offset = self.offset(&config, stream);
            if config.bounds.is_endless() {
                config.bounds.requests = self.extent.count;
                config.bounds.duration = self.extent.duration;
            }
            let tag = Phase {
                name: config.name.as_str().into(),
                kind: config.kind,
            };
            PhasePlan {
                offset,
                config,
                tag: (probe.phases.len() > 1).then(|| Arc::new(tag)),
                arrivals: seeded(self.seed, stream, index << 2),
                chance: seeded(self.seed, stream, index << 2 | 3),
                has_sessions: probe.workload.file().is_some(),
            }
        };
        (0..).zip(&probe.phases).map(plan).collect()
    }
}

/// What the rows of `file` are due by in `phases`.
fn timing<'p>(file: &PromptFile, mut phases: impl Iterator<Item = &'p PhaseConfig>) -> Timing {
    Timing {
        replay: phases.find_map(|phase| match phase.arrivals {
            Arrivals::Trace { replay } => Some(replay),
            _ => None,
        }),
        pauses: file.pauses,
    }
}

/// Whose answers later turns carry.
fn replies(probe: &ProbeConfig) -> Replies {
    let file = probe.workload.file();
    file.map(|file| file.replies).unwrap_or_default()
}
