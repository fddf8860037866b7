//! Metrics pages that are none, and what becomes of them: each is counted by what was wrong, the
//! load goes on, the memory stays bounded, and the state says what is missing.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::Path;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use tokio::net::TcpListener;

use super::setting::{Daemon, SOON, Simulated, counter, records};
use crate::program::{get, scratch};

/// What goes wrong, and what it is called.
const WRONG: [(&str, &str); 10] = [
    ("moved", "redirect"),
    ("secret", "unauthorized"),
    ("none", "not_found"),
    ("html", "html"),
    ("json", "json"),
    ("empty", "empty"),
    ("other", "unrecognised"),
    ("huge", "too_large"),
    ("stalls", "timeout"),
    ("half", "cut"),
];

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn page(uri: Uri) -> Response {
    let text = |kind: &'static str, body: String| ([(CONTENT_TYPE, kind)], body).into_response();
    match uri.path().trim_matches('/') {
        "moved" => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/elsewhere")]).into_response(),
        "secret" => StatusCode::UNAUTHORIZED.into_response(),
        "html" => text("text/html", "<!doctype html><p>It works!".to_owned()),
        "json" => text("application/json", "[{\"iter\":1}]".to_owned()),
        "empty" => text(TEXT, String::new()),
        "other" => text(TEXT, "go_goroutines 7\n".to_owned()),
        "huge" => {
            let line = Bytes::from("vllm:num_requests_running{engine=\"0\"} 1\n".repeat(25_000));
            let lines = stream::iter(vec![line; 100]).map(Ok::<_, Infallible>);
            ([(CONTENT_TYPE, TEXT)], Body::from_stream(lines)).into_response()
        }
        "stalls" => {
            let first = Bytes::from_static(b"vllm:num_requests_running 1\n");
            let endless =
                stream::once(async move { Ok::<_, Infallible>(first) }).chain(stream::pending());
            ([(CONTENT_TYPE, TEXT)], Body::from_stream(endless)).into_response()
        }
        "half" => text(OPEN, "vllm:num_requests_running 1\n".to_owned()),
        // Labels of a megabyte: their lines are bad, and the others stand.
        "labels" => {
            let long = "x".repeat(1 << 20);
            let lines = format!(
                "vllm:num_requests_running{{model_name=\"{long}\"}} 9\n\
                 vllm:num_requests_waiting{{model_name=\"m\"}} 4\n"
            );
            text(TEXT, lines)
        }
        "prometheus/metrics" => text(TEXT, "trtllm_num_requests_running 5\n".to_owned()),
        "metrics" => text("application/json", "[]".to_owned()),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A server of these pages; its URL.
async fn pages() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let router = Router::new().fallback(page);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Targets by name, URL and page, with ten requests a second each.
async fn daemon(folder: &Path, targets: &[(&str, &str, &str)]) -> Daemon {
    let mut rows = String::new();
    for (name, url, metrics) in targets {
        writeln!(
            rows,
            "  - {{ name: {name}, url: '{url}', model: sim/model, server_metrics: '{metrics}', server_metrics_every: 500ms }}"
        )
        .expect("a text takes all");
    }
    let names: Vec<&str> = targets.iter().map(|(name, ..)| *name).collect();
    let text = format!(
        "targets:
{rows}probes:
  - name: p
    targets: [{}]
    arrivals: {{ process: constant, rate: 10/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 12 }} }}
governor: {{ requests_per_day: 10000000, tokens_per_day: 10000M, in_flight: 100 }}
export: {{ files: {{ dir: '{}' }} }}
",
        names.join(", "),
        folder.join("records").display()
    );
    Daemon::start(folder, &text).await
}

/// What the API says of the target called `name`.
async fn said(page: &str, name: &str) -> Value {
    let status = get(&format!("{page}api/v1/status")).await;
    let status: Value = serde_json::from_str(&status.expect("it answers")).expect("it is JSON");
    let targets = status["targets"].as_array().expect("a list").clone();
    let is_it = |target: &&Value| target["name"] == name;
    targets.iter().find(is_it).expect("it is there").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_none_is_counted_by_what_was_wrong_and_the_load_goes_on() {
    let folder = scratch("pages_wrong");
    let server = Simulated::start(&folder).await;
    let pages = pages().await;
    let urls = WRONG.map(|(name, _)| format!("{pages}/{name}"));
    let targets: Vec<_> = WRONG
        .iter()
        .zip(&urls)
        .map(|((name, _), page)| (*name, server.url.as_str(), page.as_str()))
        .collect();
    let mut daemon = daemon(&folder, &targets).await;
    for (name, result) in WRONG {
        let label = format!("result=\"{result}\",target=\"{name}\"");
        daemon
            .counted(("tokencanary_scrapes_total", &label), 2)
            .await;
    }
    let page = get(&format!("{}metrics", daemon.page))
        .await
        .expect("it answers");
    for (name, result) in WRONG {
        let target = said(&daemon.page, name).await;
        assert_eq!(target["said"]["page"], result, "{target}");
        assert_eq!(target["server"], Value::Null, "{target}");
        assert_eq!(target["said"]["missing"], Value::Null, "{target}");
        let of_target = format!("target=\"{name}\"");
        assert_eq!(counter(&page, "tokencanary_server_waiting", &of_target), 0);
        assert!(!page.contains(&format!("tokencanary_server_running{{{of_target}")));
        let ok = page
            .lines()
            .filter(|line| line.starts_with("tokencanary_requests_total{"))
            .filter(|line| line.contains(&of_target) && line.contains("outcome=\"ok\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
        assert!(ok >= 5.0, "{name}: {ok} requests were answered");
    }
    let resident = counter(&page, "process_resident_memory_bytes", "");
    assert!(resident < 400_000_000, "{resident} bytes");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_of_a_megabyte_cost_their_lines_and_the_state_says_what_is_missing() {
    let folder = scratch("pages_labels");
    let server = Simulated::start(&folder).await;
    let page = format!("{}/labels", pages().await);
    let mut daemon = daemon(&folder, &[("a", &server.url, &page)]).await;
    let waiting = ("tokencanary_server_waiting", "target=\"a\"");
    assert_eq!(daemon.counted(waiting, 4).await, 4);
    let target = said(&daemon.page, "a").await;
    assert_eq!(target["server"]["running"], Value::Null);
    assert_eq!(target["server"]["waiting"], 4.0);
    assert_eq!(target["said"]["engine"], "vllm");
    let missing = target["said"]["missing"].as_array().expect("a list");
    assert!(missing.contains(&Value::from("running")), "{missing:?}");
    assert!(!missing.contains(&Value::from("waiting")), "{missing:?}");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_found_where_its_engine_keeps_it() {
    let folder = scratch("pages_elsewhere");
    let pages = pages().await;
    // Its `/metrics` is JSON. It answers no request, which is none of this test.
    let mut daemon = daemon(&folder, &[("trt", &pages, "auto")]).await;
    let running = ("tokencanary_server_running", "target=\"trt\"");
    assert_eq!(daemon.counted(running, 5).await, 5);
    let target = said(&daemon.page, "trt").await;
    assert_eq!(target["said"]["engine"], "tensorrt_llm");
    assert_eq!(target["said"]["page"], "ok");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_simulated_server_says_is_shown_in_all_roles() {
    let folder = scratch("pages_roles");
    let server = Simulated::start(&folder).await;
    let page = format!("{}/metrics", server.url);
    let mut daemon = daemon(&folder, &[("a", &server.url, &page)]).await;
    let ok = ("tokencanary_requests_total", "outcome=\"ok\"");
    daemon.counted(ok, 30).await;
    let url = daemon.page.clone();
    let compared = async || {
        let target = said(&url, "a").await;
        let own = target["said"]["last_minute"]["outside"]["own"].as_u64()?;
        (own >= 10).then_some(target)
    };
    let target = daemon
        .program
        .until("ten requests that are compared", SOON, compared)
        .await;
    let said = &target["said"];
    assert_eq!(said["engine"], "vllm");
    assert_eq!(said["missing"], Value::from(Vec::<&str>::new()), "{said}");
    let minute = &said["last_minute"];
    // The simulated engine gives the first token after 20 ms, as it says itself.
    let ttft = minute["latencies"]["ttft"]["mean_ms"].as_f64();
    assert!(
        (19.0..30.0).contains(&ttft.expect("it is there")),
        "{minute}"
    );
    let (outside, error) = (&minute["outside"]["ms"], &minute["outside"]["error_ms"]);
    let both = outside
        .as_f64()
        .zip(error.as_f64())
        .expect("both are there");
    assert!(both.0 > -both.1 - 0.5 && both.0 < 200.0, "{minute}");
    assert_eq!(minute["suspect"], serde_json::json!({}), "{minute}");
    let page = get(&format!("{}metrics", daemon.page))
        .await
        .expect("it answers");
    for name in [
        "tokencanary_server_kv_usage_max_ratio",
        "tokencanary_server_tokens_per_second",
        "tokencanary_server_preemptions",
        "tokencanary_server_latency_mean_seconds",
        "tokencanary_server_outside_seconds",
        "tokencanary_server_outside_error_seconds",
        "tokencanary_server_suspect",
        "tokencanary_server_info",
    ] {
        assert!(page.contains(&format!("\n{name}{{target=\"a\"")), "{name}");
    }
    // The simulated engine publishes neither.
    assert!(
        !page.contains("\ntokencanary_server_swapped{"),
        "absent, never zero"
    );
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
    let records = records(&folder.join("records"));
    let whole = records.iter().filter(|record| record["outcome"] == "ok");
    let mut known = 0;
    for record in whole {
        for then in ["intended", "first_token", "end"] {
            let state = &record["server"][then];
            if state.is_null() {
                continue;
            }
            known += 1;
            let age = state["age_ms"].as_f64().expect("it has one");
            assert!((0.0..=1_500.0).contains(&age), "{then}: {record}");
            assert!(state["running"].is_number(), "{then}: {record}");
            assert_eq!(state["swapped"], Value::Null, "{then}: {record}");
        }
    }
    assert!(known >= 60, "{known} states on {} records", records.len());
}
