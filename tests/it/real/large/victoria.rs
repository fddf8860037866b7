//! `VictoriaMetrics` as the store of metrics: what it answers, under the names that a scrape of
//! Prometheus has, is held against the records.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::super::components::component;
use crate::process::setting::{said, shows_tokens};
use crate::program::{Program, free_address, get, scratch, tokencanary};

/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_secs(90);
const REQUESTS: usize = 300;
/// Bucket width of our histograms, and of the bounds that text has.
const FINE: f64 = 1.021_897_148_654_116_6;
const COARSE: f64 = std::f64::consts::SQRT_2;

/// Starts it with the names of Prometheus; the second is its URL.
async fn victoria(folder: &Path) -> (Program, String) {
    victoria_on(folder, free_address()).await
}

/// The same on `address`.
pub(super) async fn victoria_on(folder: &Path, address: SocketAddr) -> (Program, String) {
    let mut command = Command::new(component("TOKENCANARY_VICTORIA"));
    command
        .arg(format!("-httpListenAddr={address}"))
        .arg(format!(
            "-storageDataPath={}",
            folder.join("data").display()
        ))
        .args(["-retentionPeriod=1", "-opentelemetry.usePrometheusNaming"]);
    let mut program = Program::start("victoria", folder, &mut command);
    let url = format!("http://{address}");
    let health = format!("{url}/health");
    program
        .until("answer from /health", SOON, async || get(&health).await)
        .await;
    (program, url)
}

/// The one value of `query` now.
pub(super) async fn value(url: &str, query: &str) -> Option<f64> {
    // What has just come is not shown before it is flushed.
    get(&format!("{url}/internal/force_flush")).await?;
    let mut url = reqwest::Url::parse(url).expect("made above");
    url.set_path("/prometheus/api/v1/query");
    url.query_pairs_mut()
        .append_pair("query", query)
        .append_pair("latency_offset", "1ms");
    let answer: Value = serde_json::from_str(&get(url.as_str()).await?).ok()?;
    let results = answer["data"]["result"].as_array()?;
    assert!(results.len() <= 1, "`{query}`: {results:?}");
    results.first()?["value"][1].as_str()?.parse().ok()
}

/// Runs a canary that sends its metrics to `victoria`, and gives its TTFTs in seconds, sorted.
async fn run(folder: &Path, victoria: &str, keys: &str) -> Vec<f64> {
    let mut command = tokencanary();
    command.args(["simulate", "--profile", "small", "--listen", "127.0.0.1:0"]);
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
    arrivals: {{ process: poisson, rate: 40/s }}
    workload: {{ synthetic: {{ input_tokens: 'log_normal(256, 200)', output_tokens: 8 }}, cache: cold }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 100 }}
export:
  http: {{ listen: '127.0.0.1:0' }}
  otlp: {{ metrics_endpoint: '{victoria}/opentelemetry/v1/metrics', every: 500ms, {keys} }}
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
    let account = text.lines().find(|line| line.starts_with("otlp_metrics: "));
    let account = account.unwrap_or_else(|| panic!("no account:\n{text}"));
    assert!(account.ends_with("dropped 0, failed 0"), "{account}");
    let text = fs::read_to_string(&records).expect("there are records");
    let mut ttfts: Vec<f64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a record is JSON"))
        .filter(shows_tokens)
        .filter_map(|record| record["times_ms"]["ttft"].as_f64())
        .map(|ms| ms / 1e3)
        .collect();
    ttfts.sort_by(f64::total_cmp);
    ttfts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn counts_sums_and_quantiles_are_those_of_the_records() {
    for (keys, width) in [
        ("compression: gzip", FINE),
        ("histograms: explicit", COARSE),
    ] {
        let folder = scratch(&format!("victoria_{}", keys.replace(": ", "_")));
        let (mut program, url) = victoria(&folder).await;
        let ttfts = run(&folder, &url, keys).await;
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let count = ttfts.len() as f64;
        let name = "tokencanary_request_ttft_seconds";
        let found = program
            .until("all requests", SOON, async || {
                let found = value(&url, &format!("sum({name}_count)")).await;
                found.filter(|found| *found >= count)
            })
            .await;
        assert!((found - count).abs() < 0.5, "{found} of {count}");
        let sum = value(&url, &format!("sum({name}_sum)")).await;
        let (sum, whole) = (sum.expect("it is there"), ttfts.iter().sum::<f64>());
        assert!((sum - whole).abs() < 1e-3 * whole, "{sum} is not {whole}");
        for (q, rank) in [("0.5", 50), ("0.95", 95)] {
            let query = format!("histogram_quantile({q}, sum({name}_bucket) by (le, vmrange))");
            let found = value(&url, &query).await.expect("it is there");
            let exact = ttfts[(ttfts.len() * rank).div_ceil(100) - 1];
            let ratio = (found / exact).max(exact / found);
            assert!(ratio <= width, "{q}: {found} s, {exact} s in the records");
            println!("seen: {keys}: p{rank} {found:.6} s, {exact:.6} s in the records");
        }
        println!("seen: {keys}: {found} requests, sum {sum:.4} s of {whole:.4} s");
    }
}
