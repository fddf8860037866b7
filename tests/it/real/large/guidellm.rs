//! guidellm beside our own benchmark on one server.

use std::process::Command;

use super::super::components::component;
use super::peers::{REQUESTS, Reported, Server, TOKENS, assert_alike, finish, json};
use crate::program::scratch;

#[tokio::test]
async fn one_stream_is_reported_alike() {
    let folder = scratch("guidellm");
    let server = Server::start(&folder).await;
    let model = component("TOKENCANARY_TINY_MODEL");
    let mut command = Command::new(component("TOKENCANARY_GUIDELLM"));
    command
        .arg("run")
        .args([
            "--backend",
            &format!("kind=openai_http,target={},model=mock", server.url),
        ])
        .args(["--profile", "kind=concurrent,streams=1"])
        .args([
            "--constraint",
            &format!("kind=max_requests,count={REQUESTS}"),
        ])
        .args([
            "--data",
            &format!("kind=synthetic_text,prompt_tokens=16,output_tokens={TOKENS}"),
        ])
        .args(["--tokenizer", &format!("kind=hf_auto,model={model}")])
        .args([
            "--output",
            "kind=json,path=theirs.json",
            "--disable-console",
        ])
        .current_dir(&folder);
    finish("guidellm", &folder, &mut command).await;
    let report = json(&folder.join("theirs.json"));
    let metrics = &report["benchmarks"][0]["metrics"];
    let of = |pointer: &str| {
        let value = metrics.pointer(pointer).and_then(serde_json::Value::as_f64);
        value.unwrap_or_else(|| panic!("no `{pointer}` in {metrics}"))
    };
    let requests = &metrics["request_totals"]["successful"];
    let theirs = Reported {
        requests: requests.as_u64().expect("it is counted"),
        output_tokens: of("/output_token_count/successful/mean"),
        ttft_p50: of("/time_to_first_token_ms/successful/percentiles/p50"),
        itl_p50: of("/inter_token_latency_ms/successful/percentiles/p50"),
    };
    assert_alike(server.benched(&folder).await, theirs);
}
