//! What a scraper gets from the running binary: exemplars that lead to spans which were sent,
//! counters of objectives, and none of either where they were not asked for.

use std::path::Path;

use serde_json::Value;

use super::setting::{Daemon, SOON, Simulated, counter, records};
use crate::program::{free_address, get, http_client, scratch};

const ARRIVALS: (&str, &str) = ("tokencanary_arrivals_total", "");
const GOOD: (&str, &str) = ("tokencanary_slo_good_total", "slo=\"all\"");

/// Fifty requests a second at `url`, with `probe` and `export` as further lines.
fn configuration(folder: &Path, url: &str, (probe, export): (&str, &str)) -> String {
    format!(
        "targets:
  - {{ name: a, url: '{url}', server_metrics: off }}
probes:
  - name: p
    targets: [a]
    arrivals: {{ process: constant, rate: 50/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 3 }} }}
{probe}governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 100 }}
export:
  files: {{ dir: '{}' }}
{export}",
        folder.join("records").display()
    )
}

/// The page as Prometheus asks for it unless it is told otherwise.
pub(crate) async fn open_metrics(page: &str) -> String {
    let client = http_client().timeout(SOON).build();
    let client = client.expect("the options are fixed");
    let asked = client.get(format!("{page}metrics")).header(
        "accept",
        "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
    );
    let answer = asked.send().await.expect("it answers");
    answer.text().await.expect("it is text")
}

/// An exemplar: name of the sample, trace id, span id, value.
pub(crate) type Exemplar = (String, String, String, f64);

pub(crate) fn exemplars(page: &str) -> Vec<Exemplar> {
    let one = |line: &str| {
        let (sample, exemplar) = line.split_once(" # {trace_id=\"")?;
        let (name, _) = sample.split_once('{')?;
        let (trace, rest) = exemplar.split_once("\",span_id=\"")?;
        let (span, rest) = rest.split_once("\"} ")?;
        let value = rest.split(' ').next()?.parse().ok()?;
        Some((name.to_owned(), trace.to_owned(), span.to_owned(), value))
    };
    page.lines().filter_map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exemplars_are_requests_whose_spans_leave_and_objectives_are_counted() {
    let folder = scratch("scrape_exemplars");
    let server = Simulated::start(&folder).await;
    let otlp = format!("  otlp: {{ endpoint: 'http://{}' }}\n", free_address());
    let slo = "    slo: { ttft: 5s at p95, itl: 4s at p95, success: 99% }\n";
    let text = configuration(&folder, &server.url, (slo, &otlp));
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(GOOD, 50).await;

    let page = open_metrics(&daemon.page).await;
    let good = counter(&page, GOOD.0, GOOD.1);
    let events = counter(&page, "tokencanary_slo_events_total", GOOD.1);
    assert!((50..=events).contains(&good), "{good} of {events}");
    let limits = counter(&page, "tokencanary_slo_limit_seconds", "slo=\"ttft\"");
    assert_eq!(limits, 5);
    assert!(page.contains("\ntarget_info{service_name=\"tokencanary\",service_version="));
    let found = exemplars(&page);
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));

    let records = records(&folder.join("records"));
    let ttft = found
        .iter()
        .filter(|(name, ..)| name == "tokencanary_request_ttft_seconds_bucket");
    assert!((1..=10).contains(&ttft.clone().count()), "{page}");
    for (name, trace, span, value) in &found {
        let of = |record: &&Value| record["trace_id"] == trace.as_str();
        let record = records.iter().find(of).expect("it leads to a record");
        assert_eq!(record["span_id"], span.as_str());
        let ms = match name.as_str() {
            "tokencanary_request_ttft_seconds_bucket"
            | "tokencanary_request_ttft_or_failure_seconds_bucket" => &record["times_ms"]["ttft"],
            "tokencanary_request_itl_seconds_bucket" => &record["itl_ms"],
            "tokencanary_request_response_time_seconds_bucket"
            | "tokencanary_request_response_time_or_failure_seconds_bucket" => {
                &record["response_time_ms"]
            }
            other => panic!("exemplars of `{other}`"),
        };
        let ms = ms.as_f64().expect("an ok record has it");
        assert!(
            (value * 1e3 - ms).abs() < 0.001,
            "{name}: {value} s, {record}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_asked_for_is_not_on_the_page() {
    let folder = scratch("scrape_plain");
    let server = Simulated::start(&folder).await;
    let text = configuration(&folder, &server.url, ("", ""));
    let mut daemon = Daemon::start(&folder, &text).await;
    let url = format!("{}metrics", daemon.page);
    let early = get(&url).await.expect("it answers");
    for outcome in ["ok", "connect", "timeout_total", "stream_cut"] {
        let series = format!("outcome=\"{outcome}\"");
        assert!(
            early.lines().any(|line| line.contains(&series)),
            "{outcome} is there from the start"
        );
    }
    daemon.counted(ARRIVALS, 20).await;
    let page = open_metrics(&daemon.page).await;
    assert!(!page.contains("trace_id"), "no spans are sent");
    assert!(!page.contains("\ntokencanary_slo_"), "nothing was wanted");
    assert!(page.ends_with("\n# EOF\n"));
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}
