//! Phoenix as the trace backend, over HTTP and over gRPC: it shows every span, whole.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::components::component;
use crate::process::setting::said;
use crate::program::{Program, free_address, get, scratch, tokencanary};

/// It imports a lot and makes its tables first.
const START: Duration = Duration::from_mins(5);
/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_secs(90);
const REQUESTS: usize = 60;

/// Starts it; its URLs over HTTP and over gRPC.
async fn phoenix(folder: &Path) -> (Program, String, String) {
    let (http, grpc) = (free_address(), free_address());
    let mut command = Command::new(component("TOKENCANARY_PHOENIX"));
    command
        .arg("serve")
        .env("PHOENIX_WORKING_DIR", folder.join("phoenix"))
        .env("PHOENIX_HOST", "127.0.0.1")
        .env("PHOENIX_PORT", http.port().to_string())
        .env("PHOENIX_GRPC_PORT", grpc.port().to_string())
        .env("PHOENIX_TELEMETRY_ENABLED", "false");
    let mut program = Program::start("phoenix-server", folder, &mut command);
    let url = format!("http://{http}");
    let health = format!("{url}/healthz");
    program
        .until("answer from /healthz", START, async || get(&health).await)
        .await;
    (program, url, format!("http://{grpc}"))
}

/// The spans it shows.
async fn spans(url: &str) -> Option<Vec<Value>> {
    let page = format!("{url}/v1/projects/default/spans?limit=1000");
    let answer: Value = serde_json::from_str(&get(&page).await?).ok()?;
    Some(answer["data"].as_array()?.clone())
}

/// Runs a canary that sends its spans as `otlp` says, and gives its records.
async fn run(folder: &Path, otlp: &str) -> Vec<Value> {
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
probes:
  - name: steady
    targets: [simulated]
    arrivals: {{ process: constant, rate: 20/s }}
    workload: {{ synthetic: {{ input_tokens: 32, output_tokens: 8 }}, cache: paired }}
export:
  http: {{ listen: '127.0.0.1:0' }}
  otlp: {{ {otlp} }}
  files: {{ dir: '{}' }}
",
        records.display()
    );
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    let records = records.join("requests.jsonl");
    let lines = || {
        fs::read_to_string(&records)
            .unwrap_or_default()
            .lines()
            .count()
    };
    canary
        .until("records", SOON, async || {
            (lines() >= REQUESTS).then_some(())
        })
        .await;
    let status = canary.terminate(SOON).await;
    assert_eq!(status.code(), Some(143), "{}", canary.stderr());
    let text = canary.stderr();
    let account = text.lines().find(|line| line.starts_with("otlp_traces: "));
    let account = account.unwrap_or_else(|| panic!("no account:\n{text}"));
    assert!(
        account.ends_with("rejected 0, dropped 0, failed 0"),
        "{account}"
    );
    let text = fs::read_to_string(&records).expect("there are records");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_span_is_there_with_its_attributes_and_events() {
    let folder = scratch("phoenix");
    let (mut program, http, grpc) = phoenix(&folder).await;
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for (name, otlp) in [
        ("http", format!("traces_endpoint: '{http}/v1/traces'")),
        ("grpc", format!("traces_endpoint: '{grpc}', protocol: grpc")),
    ] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("the folder is ours");
        let records = run(&folder, &otlp).await;
        let id = |record: &Value| record["span_id"].as_str().expect("a text").to_owned();
        wanted.extend(records.iter().map(id));
        let found = program
            .until("all spans", SOON, async || {
                spans(&http)
                    .await
                    .filter(|spans| spans.len() >= wanted.len())
            })
            .await;
        let ids: BTreeSet<_> = found
            .iter()
            .filter_map(|span| span["context"]["span_id"].as_str())
            .map(str::to_owned)
            .collect();
        assert_eq!((ids.len(), &ids), (found.len(), &wanted));
        for record in &records {
            let own = id(record);
            let span = found.iter().find(|span| span["context"]["span_id"] == *own);
            let span = span.expect("compared above");
            assert_eq!(span["context"]["trace_id"], record["trace_id"]);
            let attributes = span["attributes"].to_string();
            assert!(attributes.contains("tokencanary.ttft"), "{attributes}");
            let events = span["events"].to_string();
            assert!(events.contains("tokencanary.first_token"), "{events}");
        }
        println!(
            "seen: {} spans over {name}, all of them there",
            records.len()
        );
    }
}
