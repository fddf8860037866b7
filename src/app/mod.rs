//! The only room that sees the whole picture: builds, wires, runs, drains.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `app` | `App` | build, wire, supervise, drain | domain logic |

mod aside;
mod build;
mod check;
mod diagnosis;
mod discover;
mod dispatch;
pub mod drill;
mod exporters;
mod feed;
mod gauges;
mod gpu_look;
mod gpus;
mod host;
mod identities;
mod join;
mod joining;
mod lanes;
mod ledger;
mod nodes;
mod polls;
mod recognise;
mod run;
mod runtimes;
mod server_gauges;
mod server_process;
pub mod simulate;
mod starts;
mod streams;
mod survey;
mod tokenizers;

pub use build::draw_seed;
pub use check::{Checked, CheckedRequest, check_files, check_target};
pub use discover::{DiscoverError, ask_model};
pub use feed::{FileReport, Look, UnusableFile, look, not_a_part, parts};
pub use gpu_look::{GpuLook, look_at_gpus};
pub use recognise::Recognised;
pub use run::RunReport;
pub use runtimes::{Measuring, Runtimes};
pub use streams::UnusableTarget;
pub use survey::{Survey, SurveyError};

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::dispatch::{Dispatch, Shared};
use self::exporters::{ExporterTask, Otlp};
use self::feed::{FeedTask, Tally};
use self::gpus::GpuReading;
use self::identities::IdentityReading;
use self::join::Join;
use self::nodes::NodeReading;
use crate::aggregate::Live;
use crate::analysis::Watch;
use crate::clock::TimeAnchor;
use crate::config::Config;
use crate::control::Slots;
use crate::measurement::server::Scrape;
use crate::measurement::{GpuSample, NodeSample, RequestRecord, Stream};
use crate::scrape::Poll;
use crate::telemetry::SelfMetrics;
use crate::transport::{Connect, TcpConnect};

/// The network as the system gives it.
#[must_use]
pub fn tcp() -> Arc<dyn Connect> {
    Arc::new(TcpConnect)
}

/// What a run is made of.
pub struct Setup {
    /// The command that runs, as the page shows it.
    pub command: &'static str,
    /// What to do.
    pub config: Config,
    /// The program's clock.
    pub anchor: TimeAnchor,
    /// The network of the measured path.
    pub connect: Arc<dyn Connect>,
    /// When it ends by itself.
    pub extent: Extent,
    /// What it leaves behind.
    pub outputs: Outputs,
}

/// When a run ends by itself, and how.
#[derive(Debug, Clone, Default)]
pub struct Extent {
    /// After this many arrivals of each probe at each of its targets, in a phase without an end.
    pub count: Option<u64>,
    /// When no more arrivals become due, in a phase without an end.
    pub duration: Option<Duration>,
    /// Whether an arrival waits for a slot as long as it takes, instead of `limits.total`.
    pub patient: bool,
    /// Whose run it is: streams without an end that have an interval begin at a time within it
    /// that this and their names decide. `None`: all begin at once.
    pub spread: Option<String>,
}

/// What a run leaves behind, beside what its configuration exports.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Serves the page, the API and `/metrics` here.
    pub listener: Option<TcpListener>,
    /// Writes `requests.jsonl` into this directory.
    pub artifacts: Option<PathBuf>,
    /// Keeps exact statistics and returns them.
    pub summary: bool,
}

/// A run that is built and has not begun.
pub struct App {
    command: &'static str,
    /// What tells this run from others of its kind.
    instance: String,
    anchor: TimeAnchor,
    seed: u64,
    measuring: Measuring,
    other: Handle,
    shared: Shared,
    slots: Vec<Slots>,
    streams: Vec<Arc<Stream>>,
    dispatches: Vec<Dispatch>,
    feeds: Vec<FeedTask>,
    tallies: Vec<Arc<Tally>>,
    join: Join,
    records: mpsc::Receiver<RequestRecord>,
    scrapes: (mpsc::Sender<Scrape>, mpsc::Receiver<Scrape>),
    polls: Vec<Poll>,
    gpus: GpuReading,
    nodes: NodeReading,
    identities: IdentityReading,
    exporters: Vec<ExporterTask>,
    otlp: Otlp,
    live: Arc<Mutex<Live>>,
    own: SelfMetrics,
    listener: Option<TcpListener>,
    config: Config,
}

impl App {
    /// The seed of arrivals and prompts.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// What is known while it runs, for whoever wants to look at it from the same process.
    #[must_use]
    pub fn live(&self) -> Arc<Mutex<Live>> {
        Arc::clone(&self.live)
    }
    /// What is wrong with each stream, likewise.
    #[must_use]
    pub fn watch(&self) -> Arc<Mutex<Watch>> {
        Arc::clone(&self.join.diagnosing.watch)
    }
    /// Takes what is said of hosts, for whoever reads it in another way.
    #[must_use]
    pub fn node_samples(&self) -> mpsc::Sender<NodeSample> {
        self.nodes.samples()
    }

    /// Takes what is said of GPUs, for whoever reads it in another way.
    #[must_use]
    pub fn gpu_samples(&self) -> mpsc::Sender<GpuSample> {
        self.gpus.samples()
    }

    /// Takes what servers' pages say, for whoever reads them in another way.
    #[must_use]
    pub fn scrapes(&self) -> mpsc::Sender<Scrape> {
        self.scrapes.0.clone()
    }
}
