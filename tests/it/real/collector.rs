//! A real collector between the canary and a receiver of the test's own: what it takes over HTTP
//! or gRPC it hands on, so that what arrives is what it understood.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::components::component;
use crate::process::setting::{said, shows_tokens};
use crate::program::{Program, free_address, scratch, tokencanary};
use crate::receiver::Receiver;

/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_mins(1);
/// Requests that have to be measured before it is stopped.
const REQUESTS: usize = 120;

/// rotel: takes OTLP over both, hands it on over HTTP.
pub(super) struct Rotel {
    pub(super) program: Program,
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
}

impl Rotel {
    pub(super) async fn start(folder: &Path, upstream: &str) -> Self {
        Self::start_on(folder, upstream, (free_address(), free_address())).await
    }

    /// On the addresses given, for HTTP and for gRPC.
    pub(super) async fn start_on(
        folder: &Path,
        upstream: &str,
        (http, grpc): (SocketAddr, SocketAddr),
    ) -> Self {
        let mut command = Command::new(component("TOKENCANARY_ROTEL"));
        command
            .args(["start", "--exporter", "otlp"])
            .args(["--otlp-exporter-protocol", "http"])
            .args(["--otlp-exporter-endpoint", upstream])
            .args(["--otlp-http-endpoint", &http.to_string()])
            .args(["--otlp-grpc-endpoint", &grpc.to_string()])
            .arg("--pid-file")
            .arg(folder.join("rotel.pid"))
            .arg("--log-file")
            .arg(folder.join("rotel.log"));
        let mut program = Program::start("rotel", folder, &mut command);
        for address in [http, grpc] {
            program
                .until("open port", SOON, async || {
                    tokio::net::TcpStream::connect(address).await.ok()
                })
                .await;
        }
        Self {
            program,
            http,
            grpc,
        }
    }
}

/// Runs a canary against a simulated server, and against nobody, sending as `otlp` says, and stops
/// it.
async fn run(folder: &Path, otlp: &str, receiver: &Receiver) -> Vec<Value> {
    let mut command = tokencanary();
    command
        .args(["simulate", "--profile", "fixed", "--ttft", "20ms"])
        .args(["--itl", "2ms", "--listen", "127.0.0.1:0"]);
    let mut simulator = Program::start("simulator", folder, &mut command);
    let url = said(&mut simulator, "listening on ").await;
    let records = folder.join("records");
    let file = folder.join("canary.yaml");
    let text = format!(
        "seed: 7
targets:
  - {{ name: simulated, url: '{url}', server_metrics: off }}
  - {{ name: nobody, url: 'http://{}', model: none, server_metrics: off }}
probes:
  - name: steady
    targets: [simulated]
    arrivals: {{ process: constant, rate: 40/s }}
    workload: {{ synthetic: {{ input_tokens: 32, output_tokens: 8 }}, cache: paired }}
  - name: lost
    targets: [nobody]
    arrivals: {{ process: constant, rate: 2/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 8 }} }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 100 }}
export:
  http: {{ listen: '127.0.0.1:0' }}
  otlp: {{ {otlp}, every: 500ms }}
  files: {{ dir: '{}' }}
",
        free_address(),
        records.display()
    );
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    canary
        .until("spans behind the collector", SOON, async || {
            (receiver.spans().len() >= REQUESTS).then_some(())
        })
        .await;
    let status = canary.terminate(SOON).await;
    assert_eq!(status.code(), Some(143), "{}", canary.stderr());
    for signal in ["otlp_traces", "otlp_metrics", "otlp_logs"] {
        let begin = format!("{signal}: accepted ");
        let text = canary.stderr();
        let line = text.lines().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("no account of {signal}:\n{text}"));
        assert!(line.ends_with("rejected 0, dropped 0, failed 0"), "{line}");
    }
    let text = fs::read_to_string(records.join("requests.jsonl")).expect("there are records");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"))
        .collect()
}

async fn assert_all_arrives(name: &str, otlp: impl FnOnce(&Rotel) -> String) {
    let folder = scratch(name);
    let (receiver, upstream) = Receiver::start().await;
    let mut rotel = Rotel::start(&folder, &upstream).await;
    let records = run(&folder, &otlp(&rotel), &receiver).await;

    let mut wanted: Vec<_> = records
        .iter()
        .map(|record| record["span_id"].as_str().expect("a text").to_owned())
        .collect();
    wanted.sort();
    let look = async || {
        let mut held = receiver.spans();
        held.sort();
        (held.len() >= wanted.len()).then_some(held)
    };
    let held = rotel.program.until("all spans", SOON, look).await;
    assert_eq!(held, wanted);

    let ok: Vec<f64> = records
        .iter()
        .filter(|record| shows_tokens(record))
        .filter_map(|record| record["times_ms"]["ttft"].as_f64())
        .collect();
    let look = async || {
        let (count, sum, counted) = receiver.last("tokencanary.request.ttft")?;
        (count >= ok.len() as u64).then_some((count, sum, counted))
    };
    let found = rotel.program.until("all metrics", SOON, look).await;
    let (count, sum, counted) = found;
    assert_eq!((count, counted), (ok.len() as u64, ok.len() as u64));
    let whole = ok.iter().sum::<f64>() / 1e3;
    assert!((sum - whole).abs() < 1e-3 * whole, "{sum} is not {whole}");

    let failed = records
        .iter()
        .filter(|record| record["outcome"] == "connect")
        .count();
    let logs = receiver.held().logs.clone();
    let told = |name: &str| logs.iter().filter(|one| *one == name).count();
    assert_eq!(told("tokencanary.target.state"), 1, "{logs:?}");
    let requests = told("tokencanary.request.failed");
    assert_eq!(requests, failed.min(10), "{failed} failed: {logs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_real_collector_takes_all_of_it_over_http() {
    assert_all_arrives("rotel_http", |rotel| {
        format!("endpoint: 'http://{}', compression: gzip", rotel.http)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_real_collector_takes_all_of_it_over_grpc() {
    assert_all_arrives("rotel_grpc", |rotel| {
        format!(
            "endpoint: 'http://{}', protocol: grpc, compression: gzip",
            rotel.grpc
        )
    })
    .await;
}
