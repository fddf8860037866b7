//! Every cause, provoked at the simulated server, against what is found; and near misses, in
//! which none may be.
//!
//! A run is healthy for four minutes and ill for one. The server's page is read once a second, as
//! text, over a connection like any other.

mod scenes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokencanary::analysis::{Cause, Diagnosis};
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{Format, GpuConfig, GpuSelect, GpuSource, ServerMetrics, from_text};
use tokencanary::measurement::server::{Scrape, ScrapeResult};
use tokencanary::measurement::{GpuSample, NodeSample, Sample};
use tokencanary::scrape::{read_gpus, read_node, read_page};
use tokencanary::simulator::{Hardware, Simulator, SimulatorConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{advance, interval, sleep};

use self::scenes::{Scene, Stalls, around, inside};
use super::before;
use crate::program::tell;

/// GPUs of the server.
const GPUS: u32 = 2;
/// Until then all is well.
const WELL: Duration = Duration::from_mins(4);
/// A cause is found within this time.
const FOUND: Duration = Duration::from_mins(1);
/// Of all that is found where something was provoked, so much has to be that.
const RIGHT: f64 = 0.95;
/// And so many of the healthy ends may have a cause.
const FALSE: f64 = 0.02;

/// The text of the server's page.
pub(super) async fn page(simulator: &Simulator, path: &str) -> String {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let simulator = simulator.clone();
    let serving = tokio::spawn(async move { simulator.serve_connection(theirs).await });
    let head = format!("GET {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n");
    ours.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).await.expect("it answers");
    serving.abort();
    let answer = String::from_utf8(answer).expect("text");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    body.to_owned()
}

type Inputs = (
    mpsc::Sender<Scrape>,
    mpsc::Sender<GpuSample>,
    mpsc::Sender<NodeSample>,
);

/// Reads the pages of the server, of its GPUs and of its host once a second.
async fn scrape((simulator, anchor): (Simulator, TimeAnchor), (scrapes, gpus, nodes): Inputs) {
    let select = GpuSelect {
        pod: Some("canary-sim-*".to_owned()),
        ..GpuSelect::default()
    };
    let mut ticks = interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        let asked = anchor.now();
        let read = read_page(&page(&simulator, "/metrics").await, None);
        let at = anchor.now();
        let scrape = Scrape {
            target_index: 0,
            at,
            result: ScrapeResult::Ok,
            sample: Some(Sample {
                target_index: 0,
                asked,
                at,
                state: read.state,
                page: Arc::new(read.page),
            }),
        };
        let read = read_gpus(&page(&simulator, "/dcgm/metrics").await, &select);
        assert_eq!(read.gpus.len(), GPUS as usize);
        let sample = GpuSample {
            target_index: 0,
            at: anchor.now(),
            gpus: read.gpus.into(),
            pods: read.pods,
        };
        if scrapes.send(scrape).await.is_err() || gpus.send(sample).await.is_err() {
            return;
        }
        let node = read_node(&page(&simulator, "/node/metrics").await);
        let node = NodeSample {
            target_index: 0,
            at: anchor.now(),
            state: node.expect("it is a node's"),
            process: None,
        };
        if nodes.send(node).await.is_err() {
            return;
        }
    }
}

/// Lets nothing run for a while, again and again, once all has been well for long enough.
async fn stand_still(Stalls { apart, lasts }: Stalls) {
    sleep(WELL).await;
    loop {
        sleep(apart).await;
        advance(lasts).await;
    }
}

/// What was found at the end of `scene`.
async fn play(scene: &Scene, seed: u64) -> Vec<Diagnosis> {
    let mut config = from_text(&scene.config, Format::Yaml, "scene").expect("good");
    config.seed = Some(seed);
    config.targets[0].server_metrics = ServerMetrics::Off;
    config.targets[0].server_metrics_every = Duration::from_secs(1);
    // What is read of them comes from below.
    config.targets[0].gpu = Some(GpuConfig {
        source: GpuSource::Nvml,
        select: GpuSelect::default(),
        every: Duration::from_secs(1),
    });
    let anchor = TimeAnchor::start();
    let simulator = SimulatorConfig {
        seed,
        hardware: Hardware { gpus: GPUS },
        ..SimulatorConfig::new(scene.profile)
    };
    let simulator = Simulator::new(simulator, anchor).expect("no log file");
    for fault in scene.faults(WELL) {
        simulator.inject(fault).expect("few faults");
    }
    let (app, engine) = before((&simulator, anchor), config);
    let watch = app.watch();
    let scraping = tokio::spawn(scrape(
        (simulator, anchor),
        (app.scrapes(), app.gpu_samples(), app.node_samples()),
    ));
    let standing = scene.stalls.map(|stalls| tokio::spawn(stand_still(stalls)));
    // A little more: the last look is every ten seconds.
    Box::pin(app.run(sleep(WELL + FOUND + Duration::from_millis(700))))
        .await
        .expect("no task dies");
    scraping.abort();
    engine.abort();
    if let Some(standing) = standing {
        standing.abort();
    }
    let watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
    let look = watch.looks().next().flatten().expect("it looked");
    look.finding.causes.clone()
}

/// What was found, by what was provoked.
#[derive(Default)]
struct Table {
    rows: BTreeMap<&'static str, BTreeMap<&'static str, u32>>,
    wrong: Vec<String>,
    ill: (u32, u32),
    healthy: (u32, u32),
}

impl Table {
    fn add(&mut self, scene: &Scene, seed: u64, found: &[Diagnosis]) {
        let row = self.rows.entry(scene.name).or_default();
        for one in found {
            *row.entry(one.cause.name()).or_default() += 1;
        }
        if found.is_empty() {
            *row.entry("nothing").or_default() += 1;
        }
        let causes: Vec<Cause> = found.iter().map(|one| one.cause).collect();
        let stray = causes.iter().any(|cause| !scene.allows(*cause));
        let is_right = match scene.cause {
            Some(cause) => causes.contains(&cause) && !stray,
            None => causes.is_empty(),
        };
        let (all, right) = match scene.cause {
            Some(_) => &mut self.ill,
            None => &mut self.healthy,
        };
        *all += 1;
        *right += u32::from(is_right);
        if !is_right {
            self.wrong
                .push(format!("{} with seed {seed}: {found:#?}", scene.name));
        }
    }

    fn print(&self) -> String {
        let mut text = String::new();
        for (scene, row) in &self.rows {
            let row: Vec<String> = row
                .iter()
                .map(|(cause, count)| format!("{cause} {count}"))
                .collect();
            writeln!(text, "{scene:<28} {}", row.join(", ")).expect("a string takes it");
        }
        text
    }

    fn hold(&self) {
        let share = |(all, right): (u32, u32)| f64::from(right) / f64::from(all.max(1));
        tell(&format!("\n{}", self.print()));
        let (ill, healthy) = (share(self.ill), share(self.healthy));
        tell(&format!(
            "right: {ill:.3} of {}, {healthy:.3} of {} healthy",
            self.ill.0, self.healthy.0
        ));
        assert!(ill >= RIGHT, "{}", self.wrong.join("\n"));
        assert!(healthy >= 1.0 - FALSE, "{}", self.wrong.join("\n"));
    }
}

async fn hold(scenes: Vec<Scene>, seeds: std::ops::Range<u64>) {
    let mut table = Table::default();
    for scene in scenes {
        for seed in seeds.clone() {
            let found = play(&scene, seed).await;
            table.add(&scene, seed, &found);
        }
    }
    table.hold();
}

/// How many seeds: one, or as many as `tests/soak causes` asks for.
fn seeds() -> std::ops::Range<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "what tests/soak asks for comes in the environment"
    )]
    let asked = std::env::var("TOKENCANARY_SEEDS");
    let count = asked.map_or(1, |text| text.parse().expect("a number of seeds"));
    1..1 + count
}

#[tokio::test(start_paused = true)]
async fn causes_in_the_engine_are_found_within_a_minute_and_no_other() {
    hold(inside(), seeds()).await;
}

#[tokio::test(start_paused = true)]
async fn causes_around_it_are_found_within_a_minute_and_no_other() {
    hold(around(), seeds()).await;
}
