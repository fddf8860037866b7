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
use super::super::proxy::{RecordingProxy, Route};
use super::super::states::{Gauges, Held, Sample, assert_held, parsed, told, values};
use super::super::watched::{Load, watch};
use crate::program::{Program, free_address, get, scratch};
use crate::receiver::Receiver;

/// It imports a lot, and looks at its database of prices.
const START: Duration = Duration::from_mins(4);
const KEY: &str = "sk-canary";
/// More than the 1024 tokens of a slot of the server behind it.
const TOO_MANY: usize = 3000;

/// Fewer than the hundred chunks that may be alike: a model without a mind repeats itself, and then
/// the proxy ends the stream with an error.
const OUTPUT_TOKENS: u32 = 90;
/// Records of each target.
const RECORDS: usize = 80;

struct LiteLlm {
    llama: LlamaServer,
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
        Self { llama, proxy, url }
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

/// What llama.cpp says of itself.
fn of_llama(samples: &[Sample]) -> Gauges {
    let of = |name: &str| values(samples, name, |_| true).into_iter().sum();
    Gauges::from([
        ("running", of("llamacpp:requests_processing")),
        ("waiting", of("llamacpp:requests_deferred")),
    ])
}

/// Its own page says nothing of queues, which is told as nothing; what the server behind it says
/// is of that server's page, also through this gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn states_are_on_the_page_that_is_read() {
    let folder = scratch("litellm_pages");
    let more = "litellm_settings: { callbacks: [prometheus] }\n";
    let litellm = LiteLlm::start_with(&folder, (more, &[])).await;
    let route = |path, upstream, bearer| Route {
        path,
        upstream: vec![upstream],
        bearer,
    };
    let routes = vec![
        // It sends whoever asks for /metrics there.
        route("/gateway", format!("{}/metrics/", litellm.url), Some(KEY)),
        route("/behind", format!("{}/metrics", litellm.llama.url), None),
    ];
    let proxy = RecordingProxy::start_with(routes).await;
    let targets = ["gateway", "behind"].map(|name| {
        let page = proxy.url(&format!("/{name}"));
        let keys = format!(
            "url: '{}', model: tiny, api_key: {{ env: LITELLM_KEY }}, server_metrics: '{page}'",
            litellm.url
        );
        (name, keys)
    });
    let load = Load {
        rate: 2.5,
        output_tokens: OUTPUT_TOKENS,
        records: RECORDS,
    };
    let watched = watch(&folder, (&targets, &[("LITELLM_KEY", KEY)]), &load).await;
    let python = format!("{}/python", component("TOKENCANARY_LITELLM"));
    for (name, engine) in [("gateway", "litellm"), ("behind", "llama_cpp")] {
        let said = &watched.said[name];
        assert_eq!(said["engine"], engine);
        let pages = proxy.pages(&format!("/{name}"));
        let samples = parsed(&python, &pages);
        // It has a gauge of requests in flight, but counts the reading of the page as one, too.
        let nothing = |_: &[Sample]| Gauges::new();
        let (pages, telling) = match name {
            "gateway" => (told(&pages, &samples, nothing), 0),
            _ => (told(&pages, &samples, of_llama), 30),
        };
        let least = Held {
            states: RECORDS * 2,
            telling,
        };
        assert_held(name, (&watched.records[name], &pages), &least);
        let tokens = &said["last_minute"]["per_second"]["generation_tokens"];
        assert!(tokens.as_f64() > Some(0.0), "{said}");
    }
}
