//! A configuration written after a look at a real llama.cpp server, on which `check` passes.

use std::fs;

use super::components::LlamaServer;
use crate::process::setting::{Finished, finish};
use crate::program::scratch;

fn passes(told: &Finished) {
    assert_eq!(told.code, Some(0), "{told:?}");
}

#[tokio::test]
async fn a_real_server_is_recognised_and_its_file_is_checked() {
    let folder = scratch("init_llama");
    let llama = LlamaServer::start(&folder).await;
    let url = format!("{}/v1", llama.url);
    passes(&finish(&folder, &["init", "--url", &url]).await);
    let file = fs::read_to_string(folder.join("canary.yaml")).expect("it was written");
    for part in [
        "# - engine: llama_cpp b",
        "# - model: `tiny`\n",
        "# - protocol: `chat` was answered\n",
        "# - length: an answer has the 32 tokens that are asked for\n",
        &format!("# - metrics: {}/metrics\n", llama.url),
        "never published by this engine: ",
        "`preemptions` (so never told: `preemption`)",
        &format!("    url: {} ", llama.url),
        "    model: tiny ",
        // How often depends on how fast it was.
        "arrivals: { process: poisson, rate: ",
    ] {
        assert!(file.contains(part), "no `{part}` in {file}");
    }
    let told = finish(&folder, &["check", "-c", "canary.yaml"]).await;
    passes(&told);
    assert!(told.stdout.contains("server: llama_cpp b"), "{told:?}");

    for api in ["completions", "llamacpp"] {
        let name = format!("{api}.yaml");
        let asked = ["init", "--url", &llama.url, "--api", api, "-o", &name];
        passes(&finish(&folder, &asked).await);
        passes(&finish(&folder, &["check", "-c", &name]).await);
        let file = fs::read_to_string(folder.join(&name)).expect("it was written");
        assert!(file.contains(&format!("    api: {api} ")), "{file}");
        assert_eq!(
            file.contains("    model: tiny "),
            api == "completions",
            "{file}"
        );
    }
}
