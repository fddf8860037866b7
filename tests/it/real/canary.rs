//! The main job with real input: `tokencanary run` against a real inference server, with a real
//! Prometheus scraping it and a real OTLP receiver taking its spans. Every number it hands out
//! is held against the records, and every record against what was really sent.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::components::{LlamaServer, OtelTap, Prometheus, SpanIds};
use super::proxy::{METRICS, Page, RecordingProxy, unix_ns};
use super::states::{Gauges, STALE, Told, hold};
use crate::program::{Program, free_address, get, scratch, tokencanary};

/// Requests that have to be measured before anything is compared.
const REQUESTS: usize = 300;
/// Bucket width of the histogram: 32 buckets to a factor of two.
const BUCKET: f64 = 1.021_897_148_654_116_6;
/// For the whole load, on a busy machine.
const LOAD: Duration = Duration::from_mins(7);
/// For what takes an instant.
const SOON: Duration = Duration::from_secs(30);

/// Random arrivals at a rate that keeps the server busy part of the time on a fast machine and
/// queues on a slow one, so that `running` and `waiting` move: about a minute for all requests.
fn config(
    llama: &LlamaServer,
    proxy: &RecordingProxy,
    tap: &OtelTap,
    sinks: (&str, &Path),
) -> String {
    let (listen, folder) = sinks;
    format!(
        "seed: 7
targets:
  - name: llama
    url: {}
    model: tiny
    server_metrics: {}
    server_metrics_every: 500ms
probes:
  - name: steady
    targets: [llama]
    when_full: wait
    arrivals: {{ process: poisson, rate: 5/s }}
    workload: {{ synthetic: {{ input_tokens: 24, output_tokens: 350 }}, cache: cold }}
    limits: {{ first_token: 60s, gap: 60s, total: 300s }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 8 }}
export:
  http: {{ listen: '{listen}' }}
  otlp: {{ endpoint: '{}' }}
  files: {{ dir: '{}' }}
",
        llama.url,
        proxy.url(METRICS),
        tap.url,
        folder.display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_is_measured_and_seen_by_prometheus_and_otlp() {
    let folder = scratch("real_canary");
    let llama = LlamaServer::start(&folder).await;
    let proxy = RecordingProxy::start(&llama.url).await;
    let mut tap = OtelTap::start(&folder).await;
    let listen = free_address().to_string();
    let prometheus = Prometheus::start(&folder, &listen).await;

    let file = folder.join("canary.yaml");
    let text = config(&llama, &proxy, &tap, (&listen, &folder.join("records")));
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", &folder, &mut command);
    let healthy = format!("http://{listen}/healthz");
    canary
        .until("answer from /healthz", SOON, async || get(&healthy).await)
        .await;

    let records = folder.join("records").join("requests.jsonl");
    let seen = canary
        .until(
            "histogram with enough requests in Prometheus",
            LOAD,
            async || {
                let seen = ttft_in_prometheus(&prometheus).await?;
                (seen.count >= REQUESTS).then_some(seen)
            },
        )
        .await;
    let measured = canary
        .until(
            "records of all requests in the histogram",
            SOON,
            async || Some(ok_ttfts(&read(&records))).filter(|all| all.len() >= seen.count),
        )
        .await;
    assert_within_a_bucket(seen.p95_seconds, p95(&measured[..seen.count]));

    let status = canary.terminate(SOON).await;
    assert!(
        matches!(status.code(), Some(0 | 143)),
        "{status:?}: {}",
        canary.stderr()
    );
    assert!(
        canary.stderr().contains("tokencanary::"),
        "no log: {}",
        canary.stderr()
    );
    let records = read(&records);
    records.iter().for_each(assert_ended_well);
    let sent: Vec<SpanIds> = records.iter().map(span_of).collect();
    assert!(sent.len() >= REQUESTS);
    assert_eq!(tap.spans_settled(sent.len(), SOON).await, sorted(sent));
    assert_states(&records, &proxy.pages(METRICS));
}

/// What Prometheus holds of the TTFT histogram, from one scrape.
struct Seen {
    count: usize,
    p95_seconds: f64,
}

async fn ttft_in_prometheus(prometheus: &Prometheus) -> Option<Seen> {
    // One instant for both queries, in the past, so that both see the same scrape.
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds matter, nanoseconds do not"
    )]
    let at = unix_ns() as f64 / 1e9 - 0.5;
    let count = prometheus
        .value("histogram_count(tokencanary_request_ttft_seconds)", at)
        .await?;
    let p95 = "histogram_quantile(0.95, tokencanary_request_ttft_seconds)";
    let p95_seconds = prometheus.value(p95, at).await?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small count"
    )]
    let count = count as usize;
    Some(Seen { count, p95_seconds })
}

/// The complete lines of a file of records.
pub(super) fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// TTFT in seconds of the records that feed the histogram, in the order they were written.
fn ok_ttfts(records: &[Value]) -> Vec<f64> {
    records
        .iter()
        .filter(|record| record["outcome"] == "ok")
        .map(|record| {
            record["times_ms"]["ttft"]
                .as_f64()
                .expect("an ok record has a TTFT")
                / 1e3
        })
        .collect()
}

/// The ⌈0.95 n⌉-th smallest.
fn p95(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * 95).div_ceil(100) - 1]
}

fn assert_within_a_bucket(found: f64, expected: f64) {
    let ratio = (found / expected).max(expected / found);
    assert!(
        ratio <= BUCKET,
        "p95 is {found} s in Prometheus, {expected} s in the records"
    );
}

/// The server misbehaved nowhere, and the stop was ours.
pub(super) fn assert_ended_well(record: &Value) {
    let stopped = record["outcome"] == "cancelled" || record["refused_reason"] == "shutdown";
    assert!(record["outcome"] == "ok" || stopped, "{record}");
}

/// The span of a record: every arrival has one, refused or not.
fn span_of(record: &Value) -> SpanIds {
    let id = |key: &str| {
        record[key]
            .as_str()
            .expect("every record has both ids")
            .to_owned()
    };
    SpanIds {
        trace: id("trace_id"),
        span: id("span_id"),
    }
}

fn sorted(mut spans: Vec<SpanIds>) -> Vec<SpanIds> {
    spans.sort();
    spans
}

/// The states on each record are those of the last page read before its three instants.
fn assert_states(records: &[Value], pages: &[Page]) {
    let pages: Vec<Told> = pages.iter().map(told).collect();
    let is_busy = |page: &&Told| page.gauges.get("running").is_some_and(|busy| *busy > 0.0);
    let busy = pages.iter().filter(is_busy).count();
    assert!(busy >= 20, "only {busy} of {} pages show load", pages.len());
    let held = hold(records, &pages, STALE);
    assert!(held.states >= REQUESTS * 3 * 9 / 10, "{held:?}");
    assert!(
        held.telling >= 60,
        "a wrong page would show nowhere: {held:?}"
    );
}

/// What the server says on a page; it has no more gauges of those on records.
fn told(page: &Page) -> Told {
    let gauges = [
        ("running", "llamacpp:requests_processing"),
        ("waiting", "llamacpp:requests_deferred"),
    ];
    let known = gauges.map(|(name, on_page)| {
        let value = page.value(on_page);
        (name, value.expect("every page has both"))
    });
    Told {
        sent_unix_ns: page.sent_unix_ns,
        gauges: Gauges::from(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p95_of_300_values_is_the_285th() {
        let values: Vec<f64> = (1..=300).rev().map(f64::from).collect();
        assert!((p95(&values) - 285.0).abs() < f64::EPSILON);
        assert!((p95(&values[..20]) - 299.0).abs() < f64::EPSILON);
    }
}
