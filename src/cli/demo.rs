//! `demo`: everything at once on this machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpListener;

use super::run::drive;
use super::{Exit, say};
use crate::app::simulate::{SimulatePlan, Simulated, Speed};
use crate::app::{Extent, Outputs, Runtimes, Setup, draw_seed, tcp};
use crate::clock::TimeAnchor;
use crate::config::{
    Arrivals, Balance, BaseUrl, Config, DEFAULT_STALL, ExportConfig, GovernorConfig, GpuConfig,
    GpuSelect, GpuSource, Limits, NetworkConfig, NodeSource, PhaseConfig, ProbeConfig,
    RequestConfig, ServerMetrics, StartConfig, TargetConfig, WhenFull, WorkloadConfig,
};
use crate::measurement::{Api, CacheMode, ConnectionPolicy, Slo, SloLimit, SloMetric};

/// The port of the page, if it is free.
const PAGE: u16 = 9464;

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Port of the page and `/metrics` on 127.0.0.1; another free one is taken if it is in use.
    #[arg(long, default_value_t = PAGE, value_name = "PORT")]
    port: u16,
    /// Seed of arrivals, prompts and the simulated server.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let runtimes = Runtimes::start()?;
    let anchor = TimeAnchor::start();
    let seed = args.seed.unwrap_or_else(draw_seed);
    let simulated = Simulated::start(SimulatePlan {
        seed,
        gpus: 2,
        ..SimulatePlan::new((Ipv4Addr::LOCALHOST, 0).into(), Speed::Demo)
    })?;
    runtimes.other.block_on(async {
        let listener = match page(args.port).await {
            Ok(listener) => listener,
            Err(error) => {
                say(&format!(
                    "--port: `{}` cannot be listened on: {error}\n  wanted: a port that this user may listen on\n  hint: `--port 0` picks a free one",
                    args.port
                ));
                return Ok(Exit::Usage);
            }
        };
        greet(simulated.address, listener.local_addr()?, seed);
        let setup = Setup {
            command: "demo",
            config: config(simulated.address, seed)?,
            anchor,
            connect: tcp(),
            extent: Extent::default(),
            outputs: Outputs {
                listener: Some(listener),
                ..Outputs::default()
            },
        };
        drive(setup, &runtimes).await
    })
}

/// Listens on `port`, or on any free port if it is taken.
async fn page(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            say(&format!("port {port} is taken; using another"));
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await
        }
        bound => bound,
    }
}

fn greet(simulated: SocketAddr, page: SocketAddr, seed: u64) {
    say(&format!(
        "tokencanary demo (seed {seed})

  open       http://{page}/
  metrics    http://{page}/metrics
  server     http://{simulated}  (simulated)

  make it slow for half a minute and watch:
    curl -d '{{\"fault\":\"slow_prefill\",\"factor\":3,\"for\":\"30s\"}}' http://{simulated}/sim/faults
  or as slow in other ways: \"throttle\", \"gpu_full\", \"host_stall\", \"decode_bandwidth\",
  \"model_change\"; there are more (docs/simulator.md)

  Ctrl-C ends it
"
    ));
}

fn config(simulated: SocketAddr, seed: u64) -> anyhow::Result<Config> {
    let target = TargetConfig {
        name: "simulated".to_owned(),
        urls: vec![BaseUrl::parse(&format!("http://{simulated}"))?],
        balance: Balance::default(),
        network: NetworkConfig::default(),
        api: Api::Chat,
        request: RequestConfig::default(),
        tokenizer: None,
        model: None,
        api_key: None,
        headers: Vec::new(),
        server_metrics: ServerMetrics::Auto,
        server_metrics_every: Duration::from_secs(1),
        gpu: Some(GpuConfig {
            source: GpuSource::Exporter(format!("http://{simulated}/dcgm/metrics")),
            select: GpuSelect {
                pod: Some("canary-sim-0".to_owned()),
                ..GpuSelect::default()
            },
            every: Duration::from_secs(1),
        }),
        node: Some(NodeSource::Page(format!("http://{simulated}/node/metrics"))),
        node_every: Duration::from_secs(2),
        pod_info: None,
        start: StartConfig::default(),
    };
    Ok(Config {
        seed: Some(seed),
        drain: Duration::from_secs(4),
        targets: vec![target],
        probes: vec![
            probe("short-chat", 2.0, (128, 64), CacheMode::Cold),
            probe("long-prompt", 0.5, (2048, 32), CacheMode::Cold),
            probe("follow-up", 1.0, (512, 48), CacheMode::Warm),
        ],
        governor: GovernorConfig {
            requests_per_day: Some(500_000),
            tokens_per_day: Some(500_000_000),
            in_flight: 16,
        },
        export: ExportConfig::default(),
    })
}

const fn at_most(ms: u64, objective: f64) -> SloLimit {
    SloLimit {
        at_most: Duration::from_millis(ms),
        objective: Some(objective),
    }
}

fn probe(name: &str, rate: f64, (input, output): (u32, u32), cache: CacheMode) -> ProbeConfig {
    ProbeConfig {
        name: name.to_owned(),
        targets: vec!["simulated".to_owned()],
        streaming: true,
        when_full: WhenFull::Refuse,
        connection: ConnectionPolicy::Pooled,
        phases: vec![PhaseConfig::endless(Arrivals::Poisson { rate })],
        workload: WorkloadConfig::synthetic(input, Some(output), cache),
        limits: Limits::PROBE,
        stall: DEFAULT_STALL,
        slo: Slo::NONE
            .with_limit(SloMetric::Ttft, at_most(500, 0.95))
            .with_limit(SloMetric::Itl, at_most(50, 0.95))
            .with_success(0.99),
    }
}
