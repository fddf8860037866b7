//! Phoenix as the trace backend, over HTTP and over gRPC: it shows every span, whole, and what
//! stands as an exemplar on our page and in our metrics is a span there.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::components::component;
use crate::process::outage::{Canary, Setting};
use crate::process::scrape::{exemplars, open_metrics};
use crate::process::setting::said;
use crate::program::{Program, free_address, get, scratch, tokencanary};
use crate::receiver::Receiver;

/// It imports a lot and makes its tables first.
const START: Duration = Duration::from_mins(5);
/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_secs(90);
const REQUESTS: usize = 60;

/// Starts it; its URLs over HTTP and over gRPC.
async fn phoenix(folder: &Path) -> (Program, String, String) {
    phoenix_on(folder, (free_address(), free_address())).await
}

/// The same on addresses for HTTP and for gRPC.
async fn phoenix_on(
    folder: &Path,
    (http, grpc): (SocketAddr, SocketAddr),
) -> (Program, String, String) {
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

/// The spans it shows, page by page.
async fn spans(url: &str) -> Option<Vec<Value>> {
    let pages = format!("{url}/v1/projects/default/spans?limit=1000");
    let mut page = pages.clone();
    let mut all = Vec::new();
    loop {
        let answer: Value = serde_json::from_str(&get(&page).await?).ok()?;
        all.extend(answer["data"].as_array()?.iter().cloned());
        match answer["next_cursor"].as_str() {
            Some(cursor) => page = format!("{pages}&cursor={cursor}"),
            None => return Some(all),
        }
    }
}

/// What a run of the canary left behind.
struct Ran {
    records: Vec<Value>,
    /// Trace id, span id and value in seconds of what stands for TTFTs, on the page and in the
    /// metrics over OTLP.
    on_page: Vec<(String, String, f64)>,
    in_metrics: Vec<(String, String, f64)>,
}

/// Runs a canary that sends its spans as `otlp` says, and its metrics to a receiver of ours.
async fn run(folder: &Path, otlp: &str) -> Ran {
    let mut command = tokencanary();
    command
        .args(["simulate", "--profile", "fixed", "--ttft", "20ms"])
        .args(["--itl", "2ms", "--listen", "127.0.0.1:0"]);
    let mut simulator = Program::start("simulator", folder, &mut command);
    let url = said(&mut simulator, "listening on ").await;
    let (receiver, metrics) = Receiver::start().await;
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
  otlp: {{ {otlp}, metrics_endpoint: '{metrics}/v1/metrics', every: 500ms }}
  files: {{ dir: '{}' }}
",
        records.display()
    );
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    let page = said(&mut canary, "page and metrics on ").await;
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
    let on_page = exemplars(&open_metrics(&page).await);
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
    Ran {
        records: text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a record is JSON"))
            .collect(),
        on_page: on_page
            .into_iter()
            .filter(|(name, ..)| name == "tokencanary_request_ttft_seconds_bucket")
            .map(|(_, trace, span, value)| (trace, span, value))
            .collect(),
        in_metrics: receiver.exemplars("tokencanary.request.ttft"),
    }
}

/// The span of `found` with these ids.
fn span_of<'a>(found: &'a [Value], trace: &Value, span: &Value) -> &'a Value {
    let has =
        |one: &&Value| one["context"]["trace_id"] == *trace && one["context"]["span_id"] == *span;
    let one = found.iter().find(has);
    one.unwrap_or_else(|| panic!("no span {span} of the trace {trace}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_span_is_there_and_every_exemplar_leads_to_one() {
    let folder = scratch("phoenix");
    let (mut program, http, grpc) = phoenix(&folder).await;
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for (name, otlp) in [
        ("http", format!("traces_endpoint: '{http}/v1/traces'")),
        (
            "grpc",
            format!("traces_endpoint: '{grpc}', traces: {{ protocol: grpc }}"),
        ),
    ] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("the folder is ours");
        let ran = run(&folder, &otlp).await;
        let ids = ran.records.iter().map(|record| record["span_id"].as_str());
        wanted.extend(ids.map(|id| id.expect("a text").to_owned()));
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
        for record in &ran.records {
            let span = span_of(&found, &record["trace_id"], &record["span_id"]);
            let attributes = &span["attributes"];
            assert_eq!(attributes["tokencanary.outcome"], record["outcome"]);
            let events = span["events"].to_string();
            assert!(events.contains("tokencanary.first_token"), "{events}");
        }
        println!(
            "seen: {} spans over {name}, all of them there",
            ran.records.len()
        );
        for (place, exemplars) in [("page", &ran.on_page), ("OTLP metrics", &ran.in_metrics)] {
            assert!(!exemplars.is_empty(), "no exemplars on the {place}");
            for (trace, span, value) in exemplars {
                let span = span_of(&found, &trace.as_str().into(), &span.as_str().into());
                let ttft = span["attributes"]["tokencanary.ttft"].as_f64();
                let ttft = ttft.unwrap_or_else(|| panic!("no TTFT: {span}"));
                assert!((ttft - value).abs() < 1e-6, "{value} s is of {span}");
            }
            println!(
                "seen: {} exemplars of the {place}, each a span there with its TTFT",
                exemplars.len()
            );
        }
    }
}

/// Its own end is orderly: what it has acknowledged it stores first. A crash of it is not tried,
/// since what is lost then is not ours to count.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restart_under_load_costs_what_is_counted() {
    let folder = scratch("phoenix_restart");
    let addresses = (free_address(), free_address());
    let (mut program, http, grpc) = phoenix_on(&folder, addresses).await;
    let (_others, elsewhere) = Receiver::start().await;
    let setting = Setting {
        server: &["--profile", "small"],
        arrivals: "{ process: poisson, rate: 20/s }",
        sizes: "{ input_tokens: 32, output_tokens: 4 }",
        otlp: &format!(
            "{{ endpoint: '{elsewhere}', traces_endpoint: '{grpc}', traces: {{ protocol: grpc }}, queue: 64 }}"
        ),
    };
    let canary = folder.join("canary");
    fs::create_dir_all(&canary).expect("the folder is ours");
    let canary = Canary::start_in(&canary, &setting, &[]).await;
    let some = async || spans(&http).await.filter(|spans| spans.len() >= 100);
    let before = program.until("spans", SOON, some).await.len();
    let began = Instant::now();
    program.terminate(SOON).await;
    let (mut program, http, _) = phoenix_on(&folder, addresses).await;
    let away = began.elapsed();
    let more = async || {
        spans(&http)
            .await
            .filter(|spans| spans.len() >= before + 300)
    };
    program.until("spans after the restart", SOON, more).await;
    let ended = canary.stop().await;

    let account = ended.traces;
    assert!(account.dropped + account.failed > 0, "{account:?}");
    let ids = async || {
        let found = spans(&http).await?;
        let ids = found.iter().map(|span| span["context"]["span_id"].as_str());
        let ids: BTreeSet<String> = ids.flatten().map(str::to_owned).collect();
        (ids.len() >= account.sent).then_some(ids)
    };
    let held = program.until("all spans", SOON, ids).await;
    ended.assert_counted(&held.into_iter().collect::<Vec<_>>());
    println!("seen: away for {away:?}: {account:?}; what was sent is there");
}
