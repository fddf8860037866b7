//! `demo` does the main job with no set-up: metrics, page, another port if one is taken, and an
//! orderly end.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokencanary::export::catalog;

use super::setting::{SOON, counter, post, said};
use crate::program::{Program, get, scratch, tokencanary};

const PROBES: [&str; 3] = ["short-chat", "long-prompt", "follow-up"];
/// It ends within this time after Ctrl-C.
const END: Duration = Duration::from_secs(5);

/// A demo, and the URL of its page.
async fn demo(name: &str, folder: &Path, port: &str) -> (Program, String) {
    let mut command = tokencanary();
    command.args(["demo", "--seed", "5", "--port", port]);
    let mut program = Program::start(name, folder, &mut command);
    let page = said(&mut program, "open       ").await;
    (program, page)
}

#[tokio::test]
async fn every_stream_is_counted_within_a_minute() {
    let folder = scratch("demo");
    let (mut demo, page) = demo("demo", &folder, "0").await;
    let metrics = format!("{page}metrics");
    for probe in PROBES {
        let label = format!("probe=\"{probe}\"");
        let name = "tokencanary_request_ttft_seconds_count";
        let counted = async || (counter(&get(&metrics).await?, name, &label) > 0).then_some(());
        demo.until(&label, SOON, counted).await;
    }
    assert_whole(&mut demo, &metrics).await;
    let html = get(&page).await.expect("it is alive");
    assert!(html.to_lowercase().starts_with("<!doctype html"), "{html}");
    let streams = get(&format!("{page}api/v1/streams")).await;
    let streams: Value = serde_json::from_str(&streams.expect("it is alive")).expect("it is JSON");
    let rows = streams["streams"].as_array().expect("a list");
    let named: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["probe"].as_str())
        .collect();
    assert_eq!(named, PROBES);
    assert_energy(&page).await;
    for row in rows {
        let ttft = &row["since_start"]["ttft"];
        assert!(ttft["n"].as_u64() > Some(0), "{row}");
    }
    assert_eq!(demo.terminate(END).await.code(), Some(143));
    assert_eq!(demo.stdout(), "", "nothing but results goes to stdout");
    assert!(
        !demo.stderr().contains('\u{1b}'),
        "no colour outside a terminal"
    );
}

/// What a token costs is that of the server: power over the rate of all its tokens.
async fn assert_energy(page: &str) {
    let status = get(&format!("{page}api/v1/status")).await;
    let status: Value = serde_json::from_str(&status.expect("it is alive")).expect("it is JSON");
    let target = &status["targets"][0];
    let energy = &target["gpu"]["energy"];
    assert_eq!(energy["source"], "energy_counter", "{target}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{target}"));
    let rate = &target["said"]["last_minute"]["per_second"]["generation_tokens"];
    let expected = number(&energy["power_w"]) / number(rate);
    let found = number(&energy["per_output_token_j"]);
    // The rate is that of the whole minute, the energy that of what readings cover of it.
    assert!((0.5..2.0).contains(&(found / expected)), "{target}");
    assert!(number(&energy["per_request_j"]) > found, "{target}");
}

/// What the page of a demo has no series of, and why.
const WITHOUT_SERIES: [&str; 11] = [
    // Nothing changes on the simulated server.
    "tokencanary_mark_time_seconds",
    // Nothing is encrypted.
    "tokencanary_tls_certificate_expiry_seconds",
    // Nothing is wrong, as a rule.
    "tokencanary_diagnosis_confidence",
    // No questions are asked.
    "tokencanary_known_answers_total",
    // Nothing is exported.
    "tokencanary_export_items_total",
    "tokencanary_export_failures_total",
    // The simulated engine moves no cache to the host.
    "tokencanary_server_swapped",
    // Names of an option of OTLP.
    "gen_ai_client_operation_duration_seconds",
    "gen_ai_client_operation_time_to_first_chunk_seconds",
    "gen_ai_client_operation_time_per_output_chunk_seconds",
    "gen_ai_client_token_usage",
];

/// What is known of a server on the machine of its canary.
const OF_PROCESSES: [&str; 3] = [
    "tokencanary_server_process",
    "tokencanary_server_cgroup_",
    "tokencanary_node_numa_",
];

/// Every metric of the catalog is on the page.
async fn assert_whole(demo: &mut Program, metrics: &str) {
    let missing = async || {
        let page = get(metrics).await?;
        let has = |name: &str| page.lines().any(|line| line.starts_with(name));
        let missing: Vec<&str> = catalog::ALL
            .iter()
            .map(|metric| metric.prometheus)
            .filter(|name| !WITHOUT_SERIES.contains(name) && !has(name))
            // Not every machine has control groups of version 2, or a limit in them.
            .filter(|name| !name.starts_with("tokencanary_cgroup_"))
            // The demo's server is one that a page tells of, not this machine's.
            .filter(|name| !OF_PROCESSES.iter().any(|of| name.starts_with(of)))
            .collect();
        Some(missing)
    };
    let none = async || missing().await.filter(Vec::is_empty);
    demo.until("page with every metric of the catalog", SOON, none)
        .await;
}

#[tokio::test]
async fn a_taken_port_is_told_and_another_used() {
    let folder = scratch("demo_twice");
    let (first, page) = demo("first", &folder, "0").await;
    let port = page.trim_end_matches('/').rsplit(':').next();
    let port = port.expect("it names its port");
    let (second, other) = demo("second", &folder, port).await;
    assert_ne!(page, other);
    let told = format!("port {port} is taken; using another");
    assert!(second.stderr().contains(&told), "{}", second.stderr());
    assert!(get(&format!("{page}healthz")).await.is_some());
    assert!(get(&format!("{other}healthz")).await.is_some());
    drop((first, second));
}

#[tokio::test]
async fn ctrl_c_ends_it_while_requests_are_in_flight() {
    let folder = scratch("demo_ctrl_c");
    let (mut demo, page) = demo("demo", &folder, "0").await;
    let server = said(&mut demo, "server     ").await;
    // What has begun goes on after two seconds, well within the drain.
    let freeze = r#"{"fault":"freeze","for":"2s"}"#;
    post(&format!("{server}/sim/faults"), freeze).await;
    let metrics = format!("{page}metrics");
    let busy =
        async || (counter(&get(&metrics).await?, "tokencanary_in_flight", "") > 0).then_some(());
    demo.until("request in flight", SOON, busy).await;
    demo.signal("INT");
    assert_eq!(demo.ended(END).await.code(), Some(130));
    assert!(demo.stderr().contains("stopping"), "{}", demo.stderr());
    assert!(!demo.stderr().contains("did not end"), "{}", demo.stderr());
}
