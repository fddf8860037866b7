//! NVIDIA Dynamo: its front end before its mocker, an engine that invents tokens.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tokencanary::measurement::{Api, Outcome};

use super::super::asking::{
    CHAT, COMPLETIONS, OUTPUT, Question, ask_and_keep, assert_error, assert_same,
};
use super::super::components::component;
use super::super::joined::trace;
use crate::program::{Program, free_address, get, scratch};
use crate::receiver::Receiver;

/// Both are Python programs that import a lot.
const START: Duration = Duration::from_mins(3);
const MODEL: &str = "mocker";
/// More than the 8192 tokens of the model.
const TOO_MANY: usize = 20_000;

struct Dynamo {
    _mocker: Program,
    frontend: Program,
    url: String,
}

impl Dynamo {
    async fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[]).await
    }

    /// With further variables of the environment for both.
    async fn start_with(folder: &Path, environment: &[(&str, &str)]) -> Self {
        let python = format!("{}/python", component("TOKENCANARY_DYNAMO"));
        let address = free_address();
        let port = address.port().to_string();
        let program = |module: &str| {
            let mut command = Command::new(&python);
            command.args(["-m", module]);
            command.args(["--discovery-backend", "file", "--request-plane", "tcp"]);
            command.args(["--event-plane", "zmq"]);
            // Without these it listens on the machine's own address.
            for host in [
                "TCP_RPC_HOST",
                "SYSTEM_HOST",
                "TCP_RESPONSE_STREAM_HOST",
                "EVENT_PLANE_HOST",
            ] {
                command.env(format!("DYN_{host}"), "127.0.0.1");
            }
            command
                .env("DYN_FILE_KV", folder.join("kv"))
                .env("HF_HUB_OFFLINE", "1")
                .env("OTEL_SERVICE_NAME", module)
                .envs(environment.iter().copied());
            command
        };
        let mut command = program("dynamo.mocker");
        command.args(["--model-path", &component("TOKENCANARY_TINY_MODEL")]);
        command.args(["--model-name", MODEL, "--max-model-len", "8192"]);
        let mut mocker = Program::start("mocker", folder, &mut command);
        let mut command = program("dynamo.frontend");
        command.args(["--http-host", "127.0.0.1", "--http-port", &port]);
        let mut frontend = Program::start("frontend", folder, &mut command);
        let url = format!("http://{address}");
        let models = format!("{url}/v1/models");
        // Where the one says which model it has, and the other looks.
        let cards = folder.join("kv/v1/mdc");
        let announced = async || has_file(&cards).then_some(());
        mocker.until("announced model", START, announced).await;
        let served = async || {
            let models: Value = serde_json::from_str(&get(&models).await?).ok()?;
            (models["data"][0]["id"] == MODEL).then_some(())
        };
        frontend.until("model", START, served).await;
        Self {
            _mocker: mocker,
            frontend,
            url,
        }
    }
}

/// Whether there is a file in `folder` or below it.
fn has_file(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.is_file() || has_file(&path))
}

#[tokio::test]
async fn every_answer_is_read_as_it_is() {
    let dynamo = Dynamo::start(&scratch("dynamo")).await;
    for (api, places) in [(Api::Chat, &CHAT), (Api::Completions, &COMPLETIONS)] {
        for streaming in [true, false] {
            let question = Question::new(api, streaming, MODEL);
            let asked = ask_and_keep(&dynamo.url, &question).await;
            assert_same(&question, &asked, places);
            assert_eq!(asked.0.tokens.output, Some(OUTPUT), "{:?}", asked.0);

            let unknown = Question::new(api, streaming, "nobody");
            let asked = ask_and_keep(&dynamo.url, &unknown).await;
            assert_error(&asked, 404, "/message");
        }
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_an_error_inside_a_good_stream() {
    let dynamo = Dynamo::start(&scratch("dynamo_long")).await;
    for api in [Api::Chat, Api::Completions] {
        let long = Question {
            words: TOO_MANY,
            ..Question::new(api, true, MODEL)
        };
        let asked = ask_and_keep(&dynamo.url, &long).await;
        assert!(asked.1.done, "{:?}", asked.1);
        assert_error(&asked, 200, "/error/message");
        let whole = Question {
            streaming: false,
            ..long
        };
        assert_error(&ask_and_keep(&dynamo.url, &whole).await, 500, "/message");
    }
}

#[tokio::test]
async fn a_stream_without_usage_still_has_a_count() {
    let dynamo = Dynamo::start(&scratch("dynamo_no_usage")).await;
    let question = Question {
        usage: false,
        ..Question::new(Api::Chat, true, MODEL)
    };
    let (record, answer) = ask_and_keep(&dynamo.url, &question).await;
    assert_eq!(answer.last("/usage"), None, "{answer:?}");
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    assert_eq!(record.tokens.input, None, "{record:?}");
    assert!(record.tokens.output.is_some(), "{record:?}");
    assert_eq!(record.chunks.len(), answer.texts(CHAT.text), "{record:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_spans_of_the_server_hang_below_ours() {
    let folder = scratch("dynamo_traces");
    let (receiver, collector) = Receiver::start().await;
    let environment = [
        ("DYN_LOGGING_JSONL", "true"),
        ("OTEL_EXPORT_ENABLED", "true"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector),
    ];
    let mut dynamo = Dynamo::start_with(&folder, &environment).await;
    let target = format!("url: '{}', model: {MODEL}", dynamo.url);
    let traced = trace(&folder, (&target, &[]), (&receiver, &collector)).await;
    traced
        .assert_joined(
            &mut dynamo.frontend,
            ("dynamo.frontend", "http-request"),
            Some(("dynamo.mocker", "handle_payload")),
        )
        .await;
}
