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
use crate::program::{Program, free_address, get, scratch};

/// It imports a lot, and looks at its database of prices.
const START: Duration = Duration::from_mins(4);
const KEY: &str = "sk-canary";
/// More than the 1024 tokens of a slot of the server behind it.
const TOO_MANY: usize = 3000;

struct LiteLlm {
    _llama: LlamaServer,
    _proxy: Program,
    url: String,
}

impl LiteLlm {
    async fn start(folder: &Path) -> Self {
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
            "model_list:\n{}{}{}general_settings: {{ master_key: {KEY} }}\n",
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
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
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
            _proxy: proxy,
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
