//! The main job with real input: `tokencanary run` against a real inference server, with a real
//! Prometheus scraping it and a real OTLP receiver taking its spans. Every number it hands out
//! is held against the records, and every record against what was really sent.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::components::{LlamaServer, OtelTap, Prometheus, SpanIds};
use super::proxy::{Page, RecordingProxy, unix_ns};
use crate::program::{Program, free_address, get, scratch, tokencanary};

/// Requests that have to be measured before anything is compared.
const REQUESTS: usize = 300;
/// Bucket width of the histogram: 32 buckets to a factor of two.
const BUCKET: f64 = 1.021_897_148_654_116_6;
/// For the whole load, on a busy machine.
const LOAD: Duration = Duration::from_mins(7);
/// For what takes an instant.
const SOON: Duration = Duration::from_secs(30);
/// Time from the last byte being handed to the socket to the end of the canary's read.
const READ_NS: u64 = 50_000_000;
/// A sample is used for three scrape intervals of 500 ms.
const STALE_NS: u64 = 1_500_000_000;

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
        proxy.metrics_url(),
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
    assert_states(&records, &proxy.pages());
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
fn read(path: &Path) -> Vec<Value> {
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
fn assert_ended_well(record: &Value) {
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

/// The state on each record is that of the last page read before its intended time.
fn assert_states(records: &[Value], pages: &[Page]) {
    let busy = pages
        .iter()
        .filter(|page| {
            page.value("llamacpp:requests_processing")
                .is_some_and(|running| running > 0.0)
        })
        .count();
    assert!(busy >= 20, "only {busy} of {} pages show load", pages.len());

    let mut checked = 0;
    let mut telling = 0;
    for record in records {
        let intended = record["intended_unix_ns"]
            .as_u64()
            .expect("every arrival has one");
        let state = &record["server"]["intended"];
        let candidates = candidates(pages, intended);
        if state.is_null() {
            assert!(
                candidates.contains(&None),
                "no state although a page was there: {record}"
            );
            continue;
        }
        assert!(
            state["kv_usage"].is_null(),
            "the page has no KV usage: {record}"
        );
        let found = [&state["running"], &state["waiting"]]
            .map(|value| value.as_f64().expect("both are on the page"));
        let matching = candidates
            .iter()
            .flatten()
            .any(|page| is_state(page, found));
        assert!(
            matching,
            "{found:?} is not on the page read last before {intended}: {record}"
        );
        checked += 1;
        telling += usize::from(!is_state_of_a_neighbour(pages, intended, found));
    }
    assert!(
        checked >= REQUESTS * 9 / 10,
        "only {checked} records have a state"
    );
    assert!(
        telling >= 20,
        "only {telling} records would show it if a wrong page were taken"
    );
}

/// Whether the page before the last one, or the one after it, says the same.
fn is_state_of_a_neighbour(pages: &[Page], intended: u64, found: [f64; 2]) -> bool {
    let before = pages.partition_point(|page| page.sent_unix_ns <= intended);
    let neighbours = [before.checked_sub(2), Some(before)];
    let mut pages = neighbours
        .into_iter()
        .flatten()
        .filter_map(|index| pages.get(index));
    pages.any(|page| is_state(page, found))
}

fn is_state(page: &Page, [running, waiting]: [f64; 2]) -> bool {
    let same = |name, found: f64| {
        page.value(name)
            .is_some_and(|value| value.total_cmp(&found).is_eq())
    };
    same("llamacpp:requests_processing", running) && same("llamacpp:requests_deferred", waiting)
}

/// The pages that may have been the last one read before `intended`: the last one sent before,
/// and, where that one may still have been on its way, the one before it. `None` stands for no
/// usable page.
fn candidates(pages: &[Page], intended: u64) -> Vec<Option<&Page>> {
    let before = pages.partition_point(|page| page.sent_unix_ns <= intended);
    let mut possible = Vec::new();
    for index in (0..=before).rev() {
        let Some(page) = index.checked_sub(1).map(|position| &pages[position]) else {
            possible.push(None);
            break;
        };
        let age = intended - page.sent_unix_ns;
        if age + READ_NS > STALE_NS {
            possible.push(None);
        }
        if age <= STALE_NS + READ_NS {
            possible.push(Some(page));
        }
        if age > READ_NS {
            break;
        }
    }
    possible
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sent_ms: u64, running: u32) -> Page {
        let body =
            format!("llamacpp:requests_processing {running}\nllamacpp:requests_deferred 0\n");
        Page {
            sent_unix_ns: sent_ms * 1_000_000,
            body: body.into_bytes(),
        }
    }

    fn running(pages: &[Page], intended_ms: u64) -> Vec<Option<f64>> {
        candidates(pages, intended_ms * 1_000_000)
            .into_iter()
            .map(|page| page.and_then(|page| page.value("llamacpp:requests_processing")))
            .collect()
    }

    #[test]
    fn only_a_page_still_on_its_way_leaves_a_choice() {
        let pages = [page(1_000, 1), page(1_500, 2), page(2_000, 3)];
        assert_eq!(running(&pages, 900), [None]);
        assert_eq!(running(&pages, 1_010), [Some(1.0), None]);
        assert_eq!(running(&pages, 1_400), [Some(1.0)]);
        assert_eq!(running(&pages, 1_520), [Some(2.0), Some(1.0)]);
        assert_eq!(running(&pages, 1_600), [Some(2.0)]);
        assert_eq!(running(&pages, 3_400), [Some(3.0)]);
        assert_eq!(running(&pages, 4_000), [None]);
    }

    #[test]
    fn the_p95_of_300_values_is_the_285th() {
        let values: Vec<f64> = (1..=300).rev().map(f64::from).collect();
        assert!((p95(&values) - 285.0).abs() < f64::EPSILON);
        assert!((p95(&values[..20]) - 299.0).abs() < f64::EPSILON);
    }
}
