//! A restart of the server that takes minutes, and an outage of the same length: the first raises
//! nothing, the second counts.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokencanary::aggregate::slo::SUCCESS;
use tokencanary::clock::{MonoTime, TimeAnchor};
use tokencanary::config::{Format, ServerMetrics, from_text};
use tokencanary::measurement::server::{Scrape, ScrapeResult};
use tokencanary::measurement::{MarkKind, Outcome, Sample, TargetState};
use tokencanary::scrape::read_page;
use tokencanary::simulator::{Fault, FaultKind, Profile, Simulator, SimulatorConfig};
use tokio::sync::mpsc;
use tokio::time::{interval, sleep};

use super::before;
use super::causes::page;

/// When it begins, how long it lasts, and when all is over.
const WELL: Duration = Duration::from_mins(4);
const AWAY: Duration = Duration::from_mins(3);
const END: Duration = Duration::from_mins(10);

const CONFIG: &str = "
seed: 5
targets: [{ name: sim, url: 'http://sim', model: sim/canary-0.6b }]
probes:
  - name: chat
    targets: [sim]
    arrivals: { process: constant, rate: 12/min }
    workload: { synthetic: { input_tokens: 128, output_tokens: 16 } }
    limits: { first_token: 10s, total: 60s }
    slo: { ttft: 500ms at p95, success: 99% }
governor: { in_flight: 8 }
";

/// Reads the page once a second, where there is one.
async fn scrape((simulator, anchor): (Simulator, TimeAnchor), scrapes: mpsc::Sender<Scrape>) {
    let mut ticks = interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        let asked = anchor.now();
        let read = read_page(&page(&simulator, "/metrics").await, None);
        let at = anchor.now();
        let is_page = read.page.engine.is_some();
        let scrape = Scrape {
            target_index: 0,
            at,
            result: if is_page {
                ScrapeResult::Ok
            } else {
                ScrapeResult::Status
            },
            sample: is_page.then(|| Sample {
                target_index: 0,
                asked,
                at,
                state: read.state,
                page: Arc::new(read.page),
            }),
        };
        if scrapes.send(scrape).await.is_err() {
            return;
        }
    }
}

/// What is left of a run.
struct Left {
    /// Failed requests, whether they count or not.
    failed: u64,
    /// Those that count, and all that do.
    counted: (u64, u64),
    /// Good ones and failures that do not.
    excused: [u64; 2],
    /// Good answers by the objective of success, of how many.
    success: (u64, u64),
    state: Option<TargetState>,
    marks: Vec<MarkKind>,
    /// Causes that were ever found, the unknown one included.
    found: Vec<&'static str>,
}

async fn play(kind: FaultKind) -> Left {
    let mut config = from_text(CONFIG, Format::Yaml, "scene").expect("good");
    config.targets[0].server_metrics = ServerMetrics::Off;
    let anchor = TimeAnchor::start();
    let simulator = SimulatorConfig::new(Profile::demo());
    let simulator = Simulator::new(simulator, anchor).expect("no log file");
    let fault = Fault {
        kind,
        from: MonoTime::ZERO + WELL,
        lasts: AWAY,
    };
    simulator.inject(fault).expect("few faults");
    let (app, engine) = before((&simulator, anchor), config);
    let (live, watch) = (app.live(), app.watch());
    let scraping = tokio::spawn(scrape((simulator, anchor), app.scrapes()));
    Box::pin(app.run(sleep(END))).await.expect("no task dies");
    scraping.abort();
    engine.abort();
    let found = watch
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .found()
        .map(|(_, cause, _)| cause.map_or("unknown", |cause| cause.name()))
        .collect();
    let live = live.lock().unwrap_or_else(PoisonError::into_inner);
    let totals = live.streams()[0].totals();
    let success = totals.slo().standings().find(|one| one.name == SUCCESS);
    let success = success.expect("it has such an objective");
    Left {
        failed: [Outcome::HttpStatus, Outcome::StreamCut]
            .map(|outcome| totals.by_outcome(outcome))
            .iter()
            .sum(),
        counted: (totals.failures(), success.events),
        excused: totals.excused(),
        success: (success.good, success.events),
        state: live.addresses()[0].state.map(|(state, _)| state),
        marks: live.marks().iter().map(|mark| mark.kind).collect(),
        found,
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_three_minutes_raises_nothing() {
    let left = play(FaultKind::Restart { version: None }).await;
    // One request in five seconds for three minutes.
    assert!((35..=37).contains(&left.failed), "{}", left.failed);
    assert_eq!(left.excused, [5, left.failed]);
    assert_eq!(left.counted.0, 0);
    let (good, events) = left.success;
    assert_eq!(good, events, "no error budget is spent");
    assert!(events > 70, "{events}");
    assert_eq!(left.state, Some(TargetState::Serving));
    assert_eq!(left.marks, [MarkKind::Restart]);
    assert!(left.found.is_empty(), "{:?}", left.found);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_three_minutes_counts() {
    let gone = FaultKind::Status {
        code: 503,
        retry_after: None,
    };
    let left = play(gone).await;
    assert!((35..=37).contains(&left.failed), "{}", left.failed);
    assert_eq!(left.excused, [0, 0]);
    assert_eq!(left.counted.0, left.failed);
    let (good, events) = left.success;
    assert_eq!(events - good, left.failed);
    assert_eq!(left.state, Some(TargetState::Serving));
    assert_eq!(left.marks, []);
}
