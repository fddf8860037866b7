//! `AIPerf` beside our own benchmark on one server.

use std::process::Command;

use super::super::components::component;
use super::peers::{REQUESTS, Reported, Server, TOKENS, assert_alike, finish, json};
use crate::program::scratch;

#[tokio::test]
async fn one_stream_is_reported_alike() {
    let folder = scratch("aiperf");
    let server = Server::start(&folder).await;
    let (requests, tokens) = (REQUESTS.to_string(), TOKENS.to_string());
    let mut command = Command::new(component("TOKENCANARY_AIPERF"));
    command
        .args(["profile", "--model", "mock", "--url", &server.url])
        .args(["--endpoint-type", "chat", "--streaming"])
        .args(["--tokenizer", &component("TOKENCANARY_TINY_MODEL")])
        .args(["--concurrency", "1", "--request-count", &requests])
        .args(["--isl", "16", "--osl", &tokens, "--use-server-token-count"])
        .args(["--ui", "none", "--no-gpu-telemetry", "--no-server-metrics"])
        .args(["--artifact-dir", "theirs"])
        .current_dir(&folder);
    finish("aiperf", &folder, &mut command).await;
    let summary = json(&folder.join("theirs/profile_export_aiperf.json"));
    let metric = |name: &str, what: &str| {
        let value = summary[name][what].as_f64();
        value.unwrap_or_else(|| panic!("no `{what}` of `{name}` in {summary}"))
    };
    let theirs = Reported {
        requests: metric_count(metric("request_count", "avg")),
        output_tokens: metric("output_sequence_length", "avg"),
        ttft_p50: metric("time_to_first_token", "p50"),
        itl_p50: metric("inter_token_latency", "p50"),
    };
    assert_alike(server.benched(&folder).await, theirs);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small count"
)]
fn metric_count(value: f64) -> u64 {
    value as u64
}
