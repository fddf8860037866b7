//! NVIDIA Dynamo: its front end before its mocker, an engine that invents tokens.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
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
use super::super::proxy::{RecordingProxy, Route};
use super::super::states::{Gauges, Held, Read, Sample, assert_held, parsed, told, values};
use super::super::watched::{Load, Watched, watch};
use crate::program::{Program, free_address, get, scratch, tell};
use crate::receiver::Receiver;

/// Both are Python programs that import a lot.
const START: Duration = Duration::from_mins(3);
const MODEL: &str = "mocker";
/// More than the 8192 tokens of the model.
const TOO_MANY: usize = 20_000;

/// Data-parallel ranks of the worker.
const RANKS: usize = 2;
/// Records of each target.
const RECORDS: usize = 100;

struct Dynamo {
    mocker: Program,
    frontend: Program,
    url: String,
}

impl Dynamo {
    async fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[], |_| ()).await
    }

    /// With further variables of the environment for both, and what else the mocker is told.
    async fn start_with(
        folder: &Path,
        environment: &[(&str, &str)],
        more: impl FnOnce(&mut Command),
    ) -> Self {
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
        more(&mut command);
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
            mocker,
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
    let mut dynamo = Dynamo::start_with(&folder, &environment, |_| ()).await;
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

/// What the front end says of the model that is asked for, once it was.
fn of_frontend(samples: &[Sample]) -> Gauges {
    let is_ours =
        |labels: &BTreeMap<String, String>| labels.get("model").is_some_and(|model| model == MODEL);
    let known = [
        ("running", "dynamo_frontend_active_requests"),
        ("waiting", "dynamo_frontend_queued_requests"),
    ];
    let known = known.into_iter().filter_map(|(gauge, name)| {
        let found = values(samples, name, is_ours);
        Some((gauge, found.into_iter().reduce(|one, more| one + more)?))
    });
    known.collect()
}

/// What its engines say, whatever else is on the page: all ranks together. A rank has no rows before
/// its first request; until one has, there is what the worker itself says.
fn of_engines(samples: &[Sample]) -> Gauges {
    let of = |name: &str| values(samples, name, |_| true);
    let usage = of("vllm:kv_cache_usage_perc");
    if usage.is_empty() {
        let name = "dynamo_component_inflight_requests";
        let running = values(samples, name, |labels| {
            let endpoint = labels.get("dynamo_endpoint");
            endpoint.is_some_and(|endpoint| endpoint == "generate")
        });
        return Gauges::from([("running", running.iter().sum())]);
    }
    let ranks = f64::from(u32::try_from(usage.len()).expect("few"));
    Gauges::from([
        ("running", of("vllm:num_requests_running").iter().sum()),
        ("waiting", of("vllm:num_requests_waiting").iter().sum()),
        ("kv_usage", usage.iter().sum::<f64>() / ranks),
    ])
}

/// The page of the front end, that of its worker, and both as one page. The last is the engines':
/// what the front end counts of the same requests is not added to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn states_are_on_the_pages_and_no_request_counts_twice() {
    let folder = scratch("dynamo_pages");
    let (dynamo, worker) = with_ranks(&folder).await;
    let pages = [format!("{}/metrics", dynamo.url), worker];
    let route = |path, upstream: &[String]| Route {
        path,
        upstream: upstream.to_vec(),
        bearer: None,
    };
    let routes = vec![
        route("/frontend", &pages[..1]),
        route("/worker", &pages[1..]),
        route("/both", &pages),
    ];
    let proxy = RecordingProxy::start_with(routes).await;
    let targets = ["frontend", "worker", "both"].map(|name| {
        let page = proxy.url(&format!("/{name}"));
        let keys = format!(
            "url: '{}', model: {MODEL}, server_metrics: '{page}'",
            dynamo.url
        );
        (name, keys)
    });
    let load = Load {
        rate: 2.5,
        output_tokens: 60,
        records: RECORDS,
    };
    let watched = watch(&folder, (&targets, &[]), &load).await;
    let python = format!("{}/python", component("TOKENCANARY_DYNAMO"));
    let read: [(&str, &str, Read); 3] = [
        ("frontend", "dynamo_frontend", of_frontend),
        ("worker", "vllm", of_engines),
        ("both", "vllm", of_engines),
    ];
    for (name, engine, read) in read {
        assert_eq!(watched.said[name]["engine"], engine);
        let pages = proxy.pages(&format!("/{name}"));
        let samples = parsed(&python, &pages);
        let pages = told(&pages, &samples, read);
        let least = Held {
            states: RECORDS * 2,
            telling: 30,
        };
        assert_held(name, (&watched.records[name], &pages), &least);
        if name == "both" {
            let newest = samples.last().expect("pages were read");
            let rows = values(newest, "vllm:num_requests_running", |_| true);
            assert_eq!(rows.len(), RANKS, "each rank has a row");
            assert_told_apart(&samples);
        }
    }
    assert_counted_once(&watched);
}

/// A free loopback address whose port is below 32768, which is the most that a worker takes; the
/// system gives none of these by itself.
fn low_address() -> SocketAddr {
    let drawn = std::iter::repeat_with(|| (Ipv4Addr::LOCALHOST, free_address().port() / 2));
    let mut free = drawn.filter(|address| TcpListener::bind(address).is_ok());
    SocketAddr::from(free.next().expect("some port is free"))
}

/// One with a worker of two ranks, in which two requests each have room; and the page of the worker.
async fn with_ranks(folder: &Path) -> (Dynamo, String) {
    let worker = low_address();
    let more = |command: &mut Command| {
        command.env("DYN_SYSTEM_PORT", worker.port().to_string());
        command.args(["--max-num-seqs", "2"]);
        command.args(["--data-parallel-size", &RANKS.to_string()]);
    };
    let mut dynamo = Dynamo::start_with(folder, &[], more).await;
    let page = format!("http://{worker}/metrics");
    dynamo
        .mocker
        .until("page of the worker", START, async || get(&page).await)
        .await;
    (dynamo, page)
}

/// Pages on which the front end's requests, added to the engines', would be another number.
fn assert_told_apart(samples: &[Vec<Sample>]) {
    let running = |page: &Vec<Sample>| of_frontend(page).get("running").copied();
    let is_busy = |page: &&Vec<Sample>| running(page) > Some(0.0);
    let busy = samples.iter().filter(is_busy).count();
    assert!(busy >= 20, "only {busy} of {} pages", samples.len());
    tell(&format!(
        "{busy} of {} pages of both have requests at the front end, too",
        samples.len()
    ));
}

/// All three pages are of the same requests: added up they would be twice as many.
fn assert_counted_once(watched: &Watched) {
    let answered = |name: &str| {
        let minute = &watched.said[name]["last_minute"];
        assert_eq!(minute["suspect"]["doubled_counts"], Value::Null, "{minute}");
        let count = &minute["latencies"]["ttft"]["n"];
        count
            .as_f64()
            .unwrap_or_else(|| panic!("no first tokens: {minute}"))
    };
    let [frontend, worker, both] = ["frontend", "worker", "both"].map(answered);
    tell(&format!(
        "first tokens in the last minute: {frontend} at the front end, {worker} at the worker, {both} on the page of both"
    ));
    assert!(worker > 50.0, "{worker}");
    for other in [frontend, both] {
        // Each page is read at moments of its own.
        assert!((other / worker - 1.0).abs() < 0.2, "{other}, {worker}");
    }
}
