//! The `LiteLLM` proxy before a llama.cpp server.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tokencanary::measurement::Api;

use super::super::asking::{
    CHAT, COMPLETIONS, OUTPUT, Question, ask, ask_and_keep, assert_error, assert_same,
};
use super::super::components::{LlamaServer, component};
use super::super::joined::trace;
use crate::program::{Program, free_address, get, scratch};
use crate::receiver::Receiver;

/// It imports a lot, and looks at its database of prices.
const START: Duration = Duration::from_mins(4);
const KEY: &str = "sk-canary";
/// More than the 1024 tokens of a slot of the server behind it.
const TOO_MANY: usize = 3000;

struct LiteLlm {
    _llama: LlamaServer,
    proxy: Program,
    url: String,
}

impl LiteLlm {
    async fn start(folder: &Path) -> Self {
        Self::start_with(folder, ("", &[])).await
    }

    /// With further lines of its configuration, and variables of the environment.
    async fn start_with(folder: &Path, (more, environment): (&str, &[(&str, &str)])) -> Self {
        let llama = LlamaServer::start(folder).await;
        let address: SocketAddr = free_address();
        let file = folder.join("litellm.yaml");
        let model = |name: &str, provider: &str, url: &str| {
            format!(
                "- model_name: {name}\n  litellm_params: {{ model: {provider}/tiny, api_base: '{url}/v1', api_key: none }}\n"
            )
        };
        let nobody = format!("http://{}", free_address());
        let text = format!(
            "model_list:\n{}{}{}general_settings: {{ master_key: {KEY} }}\n{more}",
            model("tiny", "openai", &llama.url),
            model("text", "text-completion-openai", &llama.url),
            model("dead", "openai", &nobody),
        );
        fs::write(&file, text).expect("the folder is ours");
        let mut command = Command::new(format!("{}/litellm", component("TOKENCANARY_LITELLM")));
        command
            .arg("--config")
            .arg(&file)
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            // Else it first tries for a while to download its list of prices.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .envs(environment.iter().copied());
        let mut proxy = Program::start("litellm", folder, &mut command);
        let url = format!("http://{address}");
        let alive = format!("{url}/health/liveliness");
        proxy
            .until("answer from /health/liveliness", START, async || {
                get(&alive).await
            })
            .await;
        Self {
            _llama: llama,
            proxy,
            url,
        }
    }
}

/// One start serves all: it takes half a minute.
#[tokio::test]
async fn every_answer_is_read_as_it_is() {
    let litellm = LiteLlm::start(&scratch("litellm")).await;
    for (api, model, places) in [
        (Api::Chat, "tiny", &CHAT),
        (Api::Completions, "text", &COMPLETIONS),
    ] {
        for streaming in [true, false] {
            let question = Question {
                key: KEY,
                ..Question::new(api, streaming, model)
            };
            let asked = ask_and_keep(&litellm.url, &question).await;
            assert_same(&question, &asked, places);
            assert_eq!(asked.0.tokens.output, Some(OUTPUT), "{:?}", asked.0);

            let unknown = Question {
                model: "nobody",
                ..question.clone()
            };
            let asked = ask_and_keep(&litellm.url, &unknown).await;
            assert_error(&asked, 400, "/error/message");

            let long = Question {
                words: TOO_MANY,
                ..question.clone()
            };
            let asked = ask_and_keep(&litellm.url, &long).await;
            assert_error(&asked, 400, "/error/message");

            let nobody = Question {
                key: "sk-wrong",
                ..question
            };
            let record = ask(&litellm.url, &nobody).await;
            assert!(matches!(record.http_status, Some(400 | 401)), "{record:?}");
            assert_eq!(record.outcome.name(), "http_status", "{record:?}");
        }
    }
    for streaming in [true, false] {
        let dead = Question {
            key: KEY,
            ..Question::new(Api::Chat, streaming, "dead")
        };
        let asked = ask_and_keep(&litellm.url, &dead).await;
        assert!(asked.1.status >= 500, "{:?}", asked.1);
        assert_error(&asked, asked.1.status, "/error/message");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn its_spans_hang_below_ours() {
    let folder = scratch("litellm_traces");
    let (receiver, collector) = Receiver::start().await;
    let endpoint = format!("{collector}/v1/traces");
    let environment = [
        ("OTEL_EXPORTER", "otlp_http"),
        ("OTEL_ENDPOINT", &*endpoint),
        ("OTEL_SERVICE_NAME", "litellm"),
    ];
    let more = "litellm_settings: { callbacks: [otel] }\n";
    let mut litellm = LiteLlm::start_with(&folder, (more, &environment)).await;
    let target = format!(
        "url: '{}', model: tiny, api_key: {{ env: LITELLM_KEY }}",
        litellm.url
    );
    let key = [("LITELLM_KEY", KEY)];
    let traced = trace(&folder, (&target, &key), (&receiver, &collector)).await;
    let head = ("litellm", "Received Proxy Server Request");
    let deeper = Some(("litellm", "litellm_request"));
    traced.assert_joined(&mut litellm.proxy, head, deeper).await;
}
