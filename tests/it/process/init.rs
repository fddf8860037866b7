//! `init`: what it writes after a look at a server, that `check` passes on it and `run` starts
//! with it; and that nothing is written where there is nothing to write.

mod servers;

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::time::Instant;

use self::servers::{KEY, Like, router, secure_server, server, strange_server};
use super::setting::{Daemon, Finished, SOON, Simulated, Untouched, finish, finish_command};
use crate::program::{blessing, free_address, get, scratch, tokencanary};

const FILE: &str = "canary.yaml";

/// Runs `init --url URL` with `more` in `folder`.
async fn init(folder: &Path, url: &str, more: &[&str]) -> Finished {
    let mut command = tokencanary();
    command.args(["init", "--url", url]).args(more);
    command.env("CANARY_KEY", KEY).current_dir(folder);
    finish_command(command).await
}

/// The file that was written, on which `check` passes.
async fn checked(folder: &Path, told: &Finished) -> String {
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.stdout, "");
    let mut command = tokencanary();
    command.args(["check", "-c", FILE]);
    command.env("CANARY_KEY", KEY).current_dir(folder);
    let passed = finish_command(command).await;
    let file = fs::read_to_string(folder.join(FILE)).expect("it was written");
    assert_eq!(passed.code, Some(0), "{passed:?}\n{file}");
    file
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

/// Nothing was written, and the end is `code` with these words.
#[track_caller]
fn assert_refused(folder: &Path, told: &Finished, (code, parts): (i32, &[&str])) {
    assert_eq!(told.code, Some(code), "{told:?}");
    assert_eq!(told.stdout, "");
    assert_has(&told.stderr, parts);
    assert!(!folder.join(FILE).exists(), "{told:?}");
}

/// `text` without the port that the server happened to have.
fn steady(text: &str, url: &str) -> String {
    let (_, port) = url.rsplit_once(':').expect("an address has a port");
    text.replace(&format!(":{port}"), &format!(":{}", "0".repeat(port.len())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_a_simulated_server_is_as_agreed_and_run_starts_with_it() {
    let folder = scratch("init_simulated");
    let server = Simulated::start(&folder).await;
    let told = init(&folder, &format!("{}/v1", server.url), &[]).await;
    let file = checked(&folder, &told).await;
    assert_has(
        &told.stderr,
        &[
            "vllm: `chat` is answered by `sim/model`\n",
            "a day takes 8,640 requests",
            "written to canary.yaml; next: `tokencanary check -c canary.yaml`",
        ],
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/init/simulated.yaml");
    let steady = steady(&file, &server.url);
    if blessing() {
        fs::create_dir_all(golden.parent().expect("a file is in a folder"))
            .expect("the tree can be written to");
        fs::write(&golden, &steady).expect("the tree can be written to");
    }
    let agreed = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(steady, agreed, "`TOKENCANARY_BLESS=1` writes it anew");

    let printed = init(&folder, &server.url, &["-o", "-"]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert_eq!(printed.stdout, file, "the same on standard output");

    let mut daemon = Daemon::start(&folder, &file).await;
    let ready = get(&format!("{}readyz", daemon.page)).await;
    assert_eq!(ready.as_deref().map(str::trim), Some("ready"));
    let status = get(&format!("{}api/v1/status", daemon.page)).await;
    assert_has(&status.expect("it answers"), &["\"local\"", &server.url]);
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test]
async fn a_gateway_gets_its_key_and_is_not_asked_for_lengths() {
    let folder = scratch("init_gateway");
    let url = server(Like::Gateway).await;
    let refused = init(&folder, &url, &[]).await;
    assert_refused(&folder, &refused, (1, &["401", "--api-key-env NAME"]));
    let refused = init(&folder, &url, &["--model", "b/first"]).await;
    assert_refused(
        &folder,
        &refused,
        (1, &["`chat`: http_status", "--api-key-env NAME"]),
    );
    let unset = init(&folder, &url, &["--api-key-env", "NO_SUCH_VARIABLE"]).await;
    let parts = ["--api-key-env", "cannot be read", "`NO_SUCH_VARIABLE` set"];
    assert_refused(&folder, &unset, (2, &parts));

    let told = init(&folder, &url, &["--api-key-env", "CANARY_KEY"]).await;
    let file = checked(&folder, &told).await;
    assert_has(
        &file,
        &[
            "    model: b/first ",
            "the server lists 2 others: `a/second`, `c/third`",
            "    api_key: { env: CANARY_KEY } ",
            "      exact_length: false ",
            "so `exact_length` is off",
            "# - engine: not known",
        ],
    );
    assert!(!file.contains(KEY) && !told.stderr.contains(KEY));
    let more = "2 more models are listed; `--model NAME` asks for another";
    assert_has(&told.stderr, &[more]);

    let other = [
        "--api-key-env",
        "CANARY_KEY",
        "--model",
        "c/third",
        "--force",
    ];
    let file = checked(&folder, &init(&folder, &url, &other).await).await;
    assert_has(&file, &["    model: c/third ", "`b/first`, `a/second`"]);
    fs::remove_file(folder.join(FILE)).expect("it is ours");
    let unknown = ["--api-key-env", "CANARY_KEY", "--model", "nope"];
    let told = init(&folder, &url, &unknown).await;
    assert_refused(
        &folder,
        &told,
        (2, &["--model: ", "`b/first`", "not `nope`"]),
    );
}

#[tokio::test]
async fn what_a_server_refuses_is_left_out() {
    let folder = scratch("init_hosted");
    let url = server(Like::Hosted).await;
    let file = checked(&folder, &init(&folder, &url, &[]).await).await;
    let parts = [
        "      exact_length: false ",
        "      length: max_completion_tokens ",
        "    streaming: false ",
        "service_time",
    ];
    assert_has(&file, &parts);
}

#[tokio::test]
async fn each_server_is_asked_in_its_own_protocol() {
    for (like, parts) in [
        (
            Like::Ollama,
            &[
                "# - engine: ollama 0.12.0",
                "    api: ollama ",
                "    model: qwen3:0.6b ",
                "another one: `a:1b`",
                "/api/ps",
                "never published by this engine: `running`",
                "`kv_usage` (so never told: `kv_cache_pressure`)",
                "`ollama` knows no exact length",
            ][..],
        ),
        (
            Like::Tgi,
            &[
                "# - engine: tgi 1.4.0",
                "    api: tgi ",
                "requests of this protocol name none",
                "  - name: short-tgi ",
            ],
        ),
        (
            Like::Llama,
            &[
                "# - engine: llama_cpp b6000-abc",
                "/metrics gives `status`",
                "started with `--metrics`",
                "    api: chat ",
            ],
        ),
        (
            Like::Embeddings,
            &[
                "    api: embeddings ",
                "    model: bge ",
                "output_tokens: 1 }",
            ],
        ),
    ] {
        let folder = scratch(&format!("init_own_{like:?}"));
        let url = server(like).await;
        let file = checked(&folder, &init(&folder, &url, &[]).await).await;
        // Long comments go on in the next line.
        assert_has(&file.replace("\n#   ", " "), parts);
    }
}

#[tokio::test]
async fn a_server_without_a_list_wants_a_name() {
    let folder = scratch("init_unlisted");
    let url = server(Like::Unlisted).await;
    let told = init(&folder, &url, &[]).await;
    let parts = ["--model: ", "/v1/models` answered 404", "--model NAME"];
    assert_refused(&folder, &told, (2, &parts));
    let file = checked(&folder, &init(&folder, &url, &["-m", "mine"]).await).await;
    assert_has(&file, &["    model: mine ", "gives `not_found`"]);

    let folder = scratch("init_empty");
    let url = server(Like::Empty).await;
    let told = init(&folder, &url, &[]).await;
    assert_refused(&folder, &told, (2, &["--model: ", "lists no model"]));
    let told = init(&folder, &url, &["--api", "gemini"]).await;
    assert_refused(&folder, &told, (2, &["--model: missing"]));
}

#[tokio::test]
async fn over_tls_and_over_a_socket_it_looks_the_same_way() {
    let folder = scratch("init_tls");
    let url = secure_server(Like::Llama, &folder).await;
    let told = init(&folder, &url, &[]).await;
    assert_refused(
        &folder,
        &told,
        (1, &["`chat`: tls", "`tls.ca`", "`--tls-ca FILE`"]),
    );
    let told = init(&folder, &url, &["--tls-ca", "ca.pem"]).await;
    let file = checked(&folder, &told).await;
    assert_has(&file, &["    tls: { ca: ca.pem } ", "- name: local "]);

    let folder = scratch("init_socket");
    // The path of a socket is short; that of the folder may not be.
    let short = tempfile::tempdir().expect("a folder");
    let socket = short.path().join("models");
    let listener = UnixListener::bind(&socket).expect("the folder is ours");
    tokio::spawn(async move { axum::serve(listener, router(Like::Llama)).await });
    let url = format!("unix://{}", socket.display());
    let file = checked(&folder, &init(&folder, &url, &[]).await).await;
    assert_has(&file, &[&format!("    url: {url} "), "- engine: llama_cpp"]);
}

#[tokio::test]
async fn a_slow_server_is_asked_less_often_and_waited_for_longer() {
    let folder = scratch("init_slow");
    let server = Simulated::start(&folder).await;
    let fault = r#"{"fault":"gateway_delay","delay":"2500ms","for":"10m"}"#;
    server.fault(fault).await;
    let file = checked(&folder, &init(&folder, &server.url, &[]).await).await;
    let parts = [
        "rate: 1/min }",
        "first_token: 30s",
        "a day takes 1,440 requests",
    ];
    assert_has(&file, &parts);
}

#[tokio::test]
async fn a_name_that_would_be_more_stays_a_name() {
    let folder = scratch("init_hostile");
    let url = server(Like::Hostile).await;
    let file = checked(&folder, &init(&folder, &url, &[]).await).await;
    let keys = file
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()));
    let keys: Vec<&str> = keys.filter_map(|line| line.split(':').next()).collect();
    assert_eq!(keys, ["targets", "probes", "governor", "export"], "{file}");
}

#[tokio::test]
async fn what_is_no_inference_server_is_told_and_nothing_is_written() {
    let folder = scratch("init_none");
    let down = format!("http://{}", free_address());
    let told = init(&folder, &down, &[]).await;
    let url = format!("--url: `{down}`: `chat`: connect");
    assert_refused(&folder, &told, (1, &[&url, "hint: no connection"]));

    let html = server(Like::Html).await;
    let told = init(&folder, &html, &["--model", "m"]).await;
    assert_refused(
        &folder,
        &told,
        (
            1,
            &["`chat`: malformed", "tried in vain, too: `completions`"],
        ),
    );
    let told = init(&folder, &html, &[]).await;
    assert_refused(&folder, &told, (2, &["--model: ", "no list of models"]));

    let listing = server(Like::Listing).await;
    let told = init(&folder, &listing, &[]).await;
    let parts = [
        "`chat`: http_status",
        "`a` was asked for, the first of 2 that are listed; `--model NAME`",
    ];
    assert_refused(&folder, &told, (1, &parts));

    for more in [&[][..], &["--model", "m"]] {
        let strange = strange_server().await;
        let told = init(&folder, &strange, more).await;
        let url = format!("--url: `{strange}`: `chat`: ");
        assert_refused(&folder, &told, (1, &[&url, "wanted: an answer"]));
    }

    let loading = server(Like::Loading).await;
    let told = init(&folder, &loading, &[]).await;
    let list = format!("--url: `{loading}/v1/models` answered 503 and no list");
    assert_refused(&folder, &told, (1, &[&list, "is it loading"]));
    let told = init(&folder, &loading, &["--model", "m"]).await;
    assert_refused(&folder, &told, (1, &["`chat`: http_status", "503"]));

    let moved = server(Like::Moved).await;
    let told = init(&folder, &moved, &[]).await;
    let leads = [
        "/v1/models` answered 308, which leads to `https://elsewhere/`",
        "no redirect is followed",
    ];
    assert_refused(&folder, &told, (1, &leads));
    let told = init(&folder, &moved, &["--model", "m"]).await;
    assert_refused(
        &folder,
        &told,
        (1, &["http_status", "a redirect is not followed"]),
    );
}

#[tokio::test]
async fn endless_and_silent_servers_are_given_up() {
    let folder = scratch("init_endless");
    let url = server(Like::Endless).await;
    let file = checked(&folder, &init(&folder, &url, &["--model", "m"]).await).await;
    assert_has(&file, &["    model: m ", "# - metrics: none are read"]);

    let folder = scratch("init_silent");
    let url = server(Like::Silent).await;
    let begun = Instant::now();
    let told = init(&folder, &url, &["--timeout", "1s"]).await;
    assert_refused(
        &folder,
        &told,
        (1, &["`chat`: timeout_", "`--timeout` waits longer"]),
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "{told:?}");
}

#[tokio::test]
async fn a_file_that_is_there_is_kept_and_bad_flags_send_nothing() {
    let folder = scratch("init_kept");
    let untouched = Untouched::listen();
    let url = format!("http://{}", untouched.address());
    fs::write(folder.join(FILE), "mine: 1\n").expect("the folder is ours");
    for (more, parts) in [
        (
            &[][..],
            &["--output: `canary.yaml`: it is there already", "--force"][..],
        ),
        (&["-o", "a.toml"], &["--output: `a.toml`", "`.yaml`"]),
        (&["-o", "no/a.yaml"], &["its folder is not there"]),
        (
            &["-o", "-", "--api-key-file", "no"],
            &["--api-key-file", "no such file"],
        ),
        (&["-o", "-", "--model", ""], &["--model: not understood"]),
        (&["-o", "-", "--api", "raw"], &["--api"]),
        (&["-o", "-", "--timeout", "5"], &["--timeout"]),
    ] {
        let told = init(&folder, &url, more).await;
        assert_eq!(told.code, Some(2), "{more:?}: {told:?}");
        assert_has(&told.stderr, parts);
    }
    fs::write(folder.join("ca.pem"), "no certificate").expect("the folder is ours");
    let secure = url.replace("http:", "https:");
    let told = init(&folder, &secure, &["-o", "-", "--tls-ca", "ca.pem"]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert_has(&told.stderr, &["--tls-ca: ", "wanted: "]);
    let kept = fs::read_to_string(folder.join(FILE)).expect("it is there");
    assert_eq!(kept, "mine: 1\n");
    untouched.check();
    let told = finish(&folder, &["init", "--url", "ftp://h", "--force"]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert_has(
        &told.stderr,
        &["--url: `ftp://h`", "wanted: `http://host:port`"],
    );
}
