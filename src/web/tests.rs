//! The surface over a real loopback socket, asked as any client would.

mod connections;
mod streams;

use std::io::Read as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Exposure, RunInfo, SurfaceState, router, serve};
use crate::aggregate::Live;
use crate::aggregate::fixture::{RULES, failed, ms, ok, refused, stream};
use crate::analysis::Watch;
use crate::clock::TimeAnchor;
use crate::export::catalog;
use crate::export::prometheus::Gauge;
use crate::measurement::{Outcome, RefusedReason, Sample, ServerState};
use crate::telemetry::SelfMetrics;

/// Twenty good requests with a TTFT of 10 ms and an ITL of 5 ms, one failed, one held back
/// because the server was full, one because of the budget; and a server that says two of three.
fn live() -> Live {
    let stream = stream(0);
    let mut live = Live::new(vec![(Arc::clone(&stream), RULES)], 1);
    for due in 0..20 {
        live.observe(Arc::new(ok(&stream, due, &[10, 15, 20])), None);
    }
    live.observe(
        Arc::new(failed(&stream, 20, Outcome::HttpStatus, Some(503))),
        None,
    );
    live.observe(
        Arc::new(refused(&stream, 21, RefusedReason::InFlight)),
        None,
    );
    live.observe(Arc::new(refused(&stream, 22, RefusedReason::Budget)), None);
    live.sample(Sample {
        target_index: 0,
        asked: ms(0),
        at: ms(0),
        state: ServerState {
            running: Some(3.0),
            waiting: Some(0.0),
            ..ServerState::default()
        },
        page: Arc::default(),
    });
    live
}

fn state(live: Live, ready: bool) -> SurfaceState {
    SurfaceState {
        live: Arc::new(Mutex::new(live)),
        watch: Arc::new(Mutex::new(Watch::new([]))),
        anchor: TimeAnchor::start(),
        own: SelfMetrics::new().expect("our metrics do not collide"),
        gauges: Arc::new(|| {
            vec![Gauge {
                metric: &catalog::IN_FLIGHT,
                labels: vec![("target", "t".to_owned())],
                value: 2.0,
            }]
        }),
        marked: Arc::new(drop),
        ready: Arc::new(AtomicBool::new(ready)),
        info: RunInfo {
            version: "1.2.3",
            command: "run",
            seed: 42,
            started_unix_ns: 1_795_953_601_000_000_000,
        },
    }
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the answer is JSON")
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is text")
    }

    fn has(&self, header: &str) -> bool {
        self.head
            .lines()
            .any(|line| line.eq_ignore_ascii_case(header))
    }
}

/// Serves `state` and sends it `lines` as the head of one request.
async fn send(state: SurfaceState, exposure: Exposure, lines: &str) -> Answer {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let stop = CancellationToken::new();
    let server = serve(
        listener,
        router(state, exposure),
        stop.clone().cancelled_owned(),
    );
    let client = async {
        let mut stream = TcpStream::connect(address)
            .await
            .expect("the server listens");
        let host = if lines.contains("\r\nhost:") {
            ""
        } else {
            "host: localhost\r\n"
        };
        let request = format!("{lines}\r\n{host}connection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("the server reads");
        let mut all = Vec::new();
        stream
            .read_to_end(&mut all)
            .await
            .expect("the server answers");
        stop.cancel();
        all
    };
    let (ended, all) = tokio::join!(server, client);
    ended.expect("the server stops in order");
    let end = all
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .expect("a whole head came");
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    Answer {
        status: head[9..12].parse().expect("a status is a number"),
        head,
        body: all[end + 4..].to_vec(),
    }
}

async fn get(path: &str) -> Answer {
    send(
        state(live(), true),
        Exposure::Loopback,
        &format!("GET {path} HTTP/1.1"),
    )
    .await
}

#[tokio::test]
async fn a_page_of_elsewhere_that_leads_here_is_told_nothing() {
    for (path, own, other) in [
        ("/", 200, 403),
        ("/api/v1/requests", 200, 403),
        ("/nothing", 404, 403),
        ("/metrics", 200, 200),
        ("/healthz", 200, 200),
    ] {
        for (host, status) in [("127.0.0.1:9464", own), ("evil.example:9464", other)] {
            let lines = format!("GET {path} HTTP/1.1\r\nhost: {host}");
            let answer = send(state(live(), true), Exposure::Loopback, &lines).await;
            assert_eq!(answer.status, status, "{host}{path}");
        }
    }
}

#[tokio::test]
async fn status_says_what_runs_and_what_became_of_its_requests() {
    let answer = get("/api/v1/status").await;
    assert_eq!(answer.status, 200);
    assert!(answer.has("cache-control: no-store"), "{}", answer.head);
    let status = answer.json();
    assert_eq!(status["version"], "1.2.3");
    assert_eq!(status["seed"], 42);
    assert_eq!(status["started_unix_ms"], 1_795_953_601_000_u64);
    assert_eq!(
        status["counts"],
        json!({"requests": 23, "ok": 20, "failed": 1, "refused": 2, "cancelled": 0, "lagged": 0}),
        "each request is counted once"
    );
    let target = &status["targets"][0];
    assert_eq!(target["name"], "t");
    assert_eq!(target["model"], Value::Null);
    assert_eq!(target["in_flight"], 2.0);
    assert_eq!(target["server"]["running"], 3.0);
    assert_eq!(target["server"]["kv_usage"], Value::Null);
    assert!(target["server"]["age_ms"].is_number());
}

#[tokio::test]
async fn requests_come_newest_first_and_no_more_than_asked() {
    let answer = get("/api/v1/requests?limit=4").await.json();
    let rows = answer["requests"].as_array().expect("a list");
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["refused", "refused", "http_status", "ok"]);
    assert_eq!(rows[0]["refused_reason"], "budget");
    assert_eq!(rows[2]["http_status"], 503);
    let good = &rows[3];
    assert_eq!(good["schema"], "tokencanary.request/1");
    assert_eq!(good["waits_ms"]["slot"], 1.0);
    assert_eq!(good["times_ms"]["ttft"], 10.0);
    assert_eq!(good["itl_ms"], 5.0);
    assert_eq!(good["trace_id"], "00000000000000000000000000000001");
    let all = get("/api/v1/requests").await.json();
    assert_eq!(all["requests"].as_array().map(Vec::len), Some(23));
}

#[tokio::test]
async fn a_bad_query_is_told_what_was_wanted() {
    for query in [
        "limit=0",
        "limit=many",
        "limit=201",
        "limit=-1",
        "limt=5",
        "limit=1&limit=2",
    ] {
        let answer = get(&format!("/api/v1/requests?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(
            answer.json()["error"]["wanted"],
            "`limit` as a whole number from 1 to 200, or nothing",
            "{query}"
        );
    }
    let answer = get("/api/v1/requests?limit=many").await.json();
    assert_eq!(
        answer["error"]["message"],
        "`limit=many` is not such a number"
    );
}

#[tokio::test]
async fn an_unknown_path_or_method_gets_json() {
    for path in ["/api/v1/nothing", "/assets/other.js", "/metrics/"] {
        let answer = get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(
            answer.json()["error"]["message"],
            format!("nothing is at `{path}`")
        );
    }
    let lines = "POST /metrics HTTP/1.1";
    let answer = send(state(live(), true), Exposure::Loopback, lines).await;
    assert_eq!(answer.status, 405);
    let wanted = "`GET`, or `POST` at `/api/v1/marks`";
    assert_eq!(answer.json()["error"]["wanted"], wanted);
}

#[tokio::test]
async fn the_page_brings_all_it_needs_and_allows_nothing_else() {
    let page = get("/").await;
    assert_eq!(page.status, 200);
    assert!(
        page.has("content-type: text/html; charset=utf-8"),
        "{}",
        page.head
    );
    assert!(
        page.head
            .contains("content-security-policy: default-src 'self'")
    );
    let text = page.text();
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "nothing from elsewhere"
    );
    assert!(
        !text.contains(" style=") && !text.contains(" onload="),
        "the policy forbids these"
    );
    for (path, kind) in [
        ("/assets/app.js", "text/javascript; charset=utf-8"),
        ("/assets/app.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        assert!(
            text.contains(&format!("\"{path}\"")),
            "the page names {path}"
        );
        let asset = get(path).await;
        assert_eq!(asset.status, 200, "{path}");
        assert!(
            asset.has(&format!("content-type: {kind}")),
            "{}",
            asset.head
        );
        assert!(
            !asset.text().contains("innerHTML"),
            "values are never parsed as markup"
        );
    }
}

#[tokio::test]
async fn metrics_come_in_the_format_that_is_asked_for() {
    let text = get("/metrics").await;
    assert!(
        text.has("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        text.head
    );
    assert!(
        text.text()
            .contains("tokencanary_request_ttft_seconds_count"),
        "{}",
        text.text()
    );
    assert!(text.text().contains("tokencanary_build_info"));
    let lines = "GET /metrics HTTP/1.1\r\naccept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let proto = send(state(live(), true), Exposure::Loopback, lines).await;
    assert!(
        proto
            .head
            .contains("content-type: application/vnd.google.protobuf;"),
        "{}",
        proto.head
    );
    assert!(
        proto
            .body
            .windows(32)
            .any(|window| window == b"tokencanary_request_ttft_seconds")
    );
}

#[tokio::test]
async fn metrics_are_packed_for_whom_it_is_acceptable() {
    let asked = "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\naccept-encoding: gzip";
    let packed = send(state(live(), true), Exposure::Loopback, asked).await;
    for header in [
        "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        "content-encoding: gzip",
        "vary: accept, accept-encoding",
    ] {
        assert!(packed.has(header), "{}", packed.head);
    }
    let mut page = String::new();
    GzDecoder::new(&packed.body[..])
        .read_to_string(&mut page)
        .expect("whole and good");
    assert!(page.ends_with("# EOF\n") && page.len() > 4 * packed.body.len());
    assert!(page.contains("\n# TYPE tokencanary_arrivals counter\n"));
    // 2026-11-29T12:00:01Z, when the run of `state` began.
    assert!(page.contains(" 1795953601.000\n"));
    let plain = get("/metrics").await;
    assert!(!plain.head.contains("content-encoding"), "{}", plain.head);
}

#[tokio::test]
async fn readiness_follows_the_load_and_health_does_not() {
    for (ready, status) in [(true, 200), (false, 503)] {
        let ask = |path| send(state(live(), ready), Exposure::Loopback, path);
        assert_eq!(ask("GET /readyz HTTP/1.1").await.status, status);
        assert_eq!(ask("GET /healthz HTTP/1.1").await.status, 200);
    }
}

#[tokio::test]
async fn beyond_loopback_only_metrics_and_health_answer() {
    for (path, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/", 404),
        ("/assets/app.js", 404),
        ("/api/v1/status", 404),
        ("/api/v1/streams", 404),
        ("/api/v1/requests", 404),
    ] {
        let lines = format!("GET {path} HTTP/1.1");
        let answer = send(state(live(), true), Exposure::Beyond, &lines).await;
        assert_eq!(answer.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_stuck_client_does_not_hold_the_stop() {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let stop = CancellationToken::new();
    let routes = router(state(live(), true), Exposure::Loopback);
    let server = serve(listener, routes, stop.clone().cancelled_owned());
    let client = async {
        let mut stuck = TcpStream::connect(address)
            .await
            .expect("the server listens");
        stuck
            .write_all(b"GET /metrics HTTP/1.1\r\nho")
            .await
            .expect("the server reads");
        let mut other = TcpStream::connect(address)
            .await
            .expect("the server listens");
        other
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .expect("the server reads");
        let mut first = [0; 15];
        other
            .read_exact(&mut first)
            .await
            .expect("the server answers the other");
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        stop.cancel();
        stuck
    };
    let both = async { tokio::join!(server, client) };
    let (ended, _stuck) = tokio::time::timeout(Duration::from_secs(5), both)
        .await
        .expect("the stop is bounded");
    ended.expect("the server stops in order");
}
