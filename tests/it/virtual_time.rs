//! The whole pipeline against the simulator over an in-memory pipe, with a paused clock: times
//! are exact, and minutes pass in milliseconds.

mod causes;
mod conservation;
mod exactness;
mod files;
mod load;
mod omission;
mod pod;
mod restart;
mod spread;
mod stall;

pub(crate) use self::pod::swap;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokencanary::aggregate::Live;
use tokencanary::app::{App, Extent, Outputs, RunReport, Setup};
use tokencanary::clock::{MonoTime, TimeAnchor};
use tokencanary::config::{
    Arrivals, Balance, BaseUrl, Config, DEFAULT_STALL, ExportConfig, GovernorConfig, Limits,
    NetworkConfig, PhaseConfig, ProbeConfig, RequestConfig, ServerMetrics, StartConfig,
    TargetConfig, WhenFull, WorkloadConfig,
};
use tokencanary::measurement::{Api, CacheMode, ConnectionPolicy, Observed, RequestRecord, Slo};
use tokencanary::simulator::{Fault, Simulator, SimulatorConfig};
use tokencanary::transport::{Connect, Endpoint, Opened, Opening, Progress, Wire};
use tokio::task::AbortHandle;

/// A network in which every host is the simulator, but for `stuck`, which never answers.
struct Pipes(Simulator);

impl Connect for Pipes {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            if endpoint.url().host() == "stuck" {
                std::future::pending::<()>().await;
            }
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let simulator = self.0.clone();
            tokio::spawn(async move { simulator.serve_connection(theirs).await });
            Ok(Opened {
                wire: Wire::Pipe(ours),
                resolved: None,
                connected: progress.now(),
                tls: None,
                http2: false,
            })
        })
    }
}

/// One run in virtual time.
struct World {
    simulator: SimulatorConfig,
    faults: Vec<Fault>,
    config: Config,
    extent: Extent,
    outputs: Outputs,
}

/// The program with `config` before `simulator`, whose engine runs until its task is aborted.
pub(crate) fn before(with: (&Simulator, TimeAnchor), config: Config) -> (App, AbortHandle) {
    before_until(with, config, (Extent::default(), Outputs::default()))
}

/// The same, with an end of its own and what it leaves behind.
fn before_until(
    (simulator, anchor): (&Simulator, TimeAnchor),
    config: Config,
    (extent, outputs): (Extent, Outputs),
) -> (App, AbortHandle) {
    let engine = tokio::spawn({
        let simulator = simulator.clone();
        async move { simulator.run().await }
    });
    let setup = Setup {
        command: "test",
        config,
        anchor,
        connect: Arc::new(Pipes(simulator.clone())),
        extent,
        outputs,
    };
    let here = tokio::runtime::Handle::current();
    let app = App::build(setup, (here.clone().into(), here)).expect("builds");
    (app, engine.abort_handle())
}

/// What it left.
struct Left {
    report: RunReport,
    live: Arc<Mutex<Live>>,
    simulator: Simulator,
}

impl Left {
    /// The last records, oldest first.
    fn records(&self) -> Vec<RequestRecord> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records: Vec<_> = live
            .last_requests()
            .map(|observed: &Arc<Observed>| observed.record.clone())
            .collect();
        records.sort_by_key(|record| record.sequence);
        records
    }
}

impl World {
    /// Boxed: the state of a whole run is large.
    fn run(self) -> Pin<Box<dyn Future<Output = Left>>> {
        self.run_until(std::future::pending())
    }

    /// The same, told to stop when `stop` is done.
    fn run_until(
        self,
        stop: impl Future<Output = ()> + 'static,
    ) -> Pin<Box<dyn Future<Output = Left>>> {
        Box::pin(self.play(stop))
    }

    async fn play(self, stop: impl Future<Output = ()>) -> Left {
        let anchor = TimeAnchor::start();
        let simulator = Simulator::new(self.simulator, anchor).expect("no log file");
        for fault in self.faults {
            simulator.inject(fault).expect("few faults");
        }
        let (app, engine) = before_until(
            (&simulator, anchor),
            self.config,
            (self.extent, self.outputs),
        );
        let live = app.live();
        let report = app.run(stop).await.expect("no task dies");
        engine.abort();
        Left {
            report,
            live,
            simulator,
        }
    }
}

pub(crate) fn config(arrivals: Arrivals, when_full: WhenFull, in_flight: u32) -> Config {
    Config {
        seed: Some(7),
        drain: Duration::from_secs(4),
        targets: vec![TargetConfig {
            name: "sim".to_owned(),
            urls: vec![BaseUrl::parse("http://sim").expect("good")],
            balance: Balance::default(),
            network: NetworkConfig::default(),
            api: Api::Chat,
            request: RequestConfig::default(),
            tokenizer: None,
            model: Some(tokencanary::simulator::DEFAULT_MODEL.to_owned()),
            api_key: None,
            headers: Vec::new(),
            server_metrics: ServerMetrics::Off,
            server_metrics_every: Duration::from_secs(5),
            gpu: None,
            node: None,
            node_every: Duration::from_secs(15),
            pod_info: None,
            start: StartConfig::NONE,
        }],
        probes: vec![ProbeConfig {
            name: "probe".to_owned(),
            targets: vec!["sim".to_owned()],
            streaming: true,
            when_full,
            connection: ConnectionPolicy::Pooled,
            phases: vec![PhaseConfig::endless(arrivals)],
            workload: WorkloadConfig::synthetic(16, Some(2), CacheMode::Cold),
            limits: Limits::PROBE,
            stall: DEFAULT_STALL,
            slo: Slo::NONE,
        }],
        governor: GovernorConfig {
            requests_per_day: None,
            tokens_per_day: None,
            in_flight,
        },
        export: ExportConfig::default(),
    }
}

pub(crate) fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos(ms * 1_000_000)
}

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}
