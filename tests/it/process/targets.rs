//! How targets stand, and marks of what changed on them.

use serde_json::Value;

use super::setting::{Daemon, SOON, Simulated, counter, having, records};
use crate::program::{get, http_client, scratch};

const OK: (&str, &str) = ("tokencanary_requests_total", "outcome=\"ok\"");
const EXCUSED: &str = "tokencanary_requests_excused_total";

fn configuration(folder: &std::path::Path, url: &str) -> String {
    format!(
        "targets:
  - {{ name: simulated, url: '{url}', server_metrics_every: 200ms }}
probes:
  - name: steady
    targets: [simulated]
    arrivals: {{ process: constant, rate: 10/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }} }}
    slo: {{ success: 99% }}
governor: {{ in_flight: 4 }}
export:
  files: {{ dir: '{}' }}
",
        folder.join("records").display()
    )
}

/// What is at `path` of the daemon's API.
async fn api(daemon: &Daemon, path: &str) -> Option<Value> {
    let text = get(&format!("{}api/v1/{path}", daemon.page)).await?;
    Some(serde_json::from_str(&text).expect("it is JSON"))
}

/// Waits until the target is in `state`.
async fn stands(daemon: &mut Daemon, state: &str) {
    let url = format!("{}api/v1/status", daemon.page);
    let look = async || {
        let status: Value = serde_json::from_str(&get(&url).await?).expect("it is JSON");
        (status["targets"][0]["states"][0]["state"] == state).then_some(())
    };
    daemon.program.until(state, SOON, look).await;
}

#[tokio::test]
async fn a_restart_is_marked_and_counts_for_nobody() {
    let folder = scratch("targets_restart");
    let server = Simulated::start(&folder).await;
    let text = configuration(&folder, &server.url);
    let mut daemon = Daemon::start(&folder, &text).await;
    let before = daemon.counted(OK, 20).await;
    stands(&mut daemon, "serving").await;
    server.fault("{\"fault\":\"restart\",\"for\":\"3s\"}").await;
    stands(&mut daemon, "starting").await;
    stands(&mut daemon, "serving").await;
    daemon.counted(OK, before + 20).await;
    let marks = api(&daemon, "marks").await.expect("it answers");
    let kinds: Vec<&Value> = marks["marks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|mark| mark["kind"] == "restart" && mark["target"] == "simulated")
        .collect();
    assert_eq!(kinds.len(), 1, "{marks}");

    let page = get(&format!("{}metrics", daemon.page)).await;
    let page = page.expect("it answers");
    let excused = counter(&page, EXCUSED, "result=\"failed\"");
    assert!(excused >= 10, "{excused} failed while it was away");
    assert_eq!(counter(&page, EXCUSED, "result=\"ok\""), 5);
    let slo = |name| counter(&page, name, "slo=\"success\"");
    let (events, good) = (
        slo("tokencanary_slo_events_total"),
        slo("tokencanary_slo_good_total"),
    );
    assert_eq!(events, good, "no error budget is spent");
    assert_eq!(
        counter(&page, "tokencanary_target_state", "state=\"serving\""),
        1
    );
    assert_eq!(
        counter(&page, "tokencanary_target_state", "state=\"down\""),
        0
    );
    let at = counter(&page, "tokencanary_mark_time_seconds", "kind=\"restart\"");
    assert!(at > 1_700_000_000, "{at}");

    daemon.program.terminate(SOON).await;
    let records = records(&folder.join("records"));
    let never = records.iter().filter(|record| record["counts"] == "never");
    assert!(never.count() >= 10);
    assert!(having(&records, "target_state", "starting") >= 10);
    assert_eq!(having(&records, "target_state", "warming"), 5);
}

#[tokio::test]
async fn a_pipeline_says_what_it_did_and_nonsense_is_refused() {
    let folder = scratch("targets_marks");
    let server = Simulated::start(&folder).await;
    let text = configuration(&folder, &server.url);
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(OK, 1).await;
    let client = http_client().timeout(SOON).build().expect("fixed options");
    let url = format!("{}api/v1/marks", daemon.page);
    let post = async |kind: &str, body: String| {
        let request = client.post(&url).header("content-type", kind).body(body);
        let answer = request.send().await.expect("it answers");
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a text"))
    };
    let json = "application/json; charset=utf-8";
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(257));
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(20_000));
    for (kind, body, status, said) in [
        ("text/plain", "{\"text\":\"a\"}".to_owned(), 415, "JSON"),
        (json, "nonsense".to_owned(), 400, "no JSON object"),
        (json, "[\"a\",null,1]".to_owned(), 400, "no JSON object"),
        (json, "{\"text\":".to_owned(), 400, "EOF"),
        (
            json,
            "{\"text\":\"\\u0007\"}".to_owned(),
            400,
            "1 characters",
        ),
        (json, "{}".to_owned(), 400, "missing field `text`"),
        (json, "{\"text\":\"a\",\"tags\":[]}".to_owned(), 400, "tags"),
        (json, "{\"text\":\" \"}".to_owned(), 400, "1 characters"),
        (json, long, 400, "257 characters"),
        (json, huge, 413, ""),
        (
            json,
            "{\"text\":\"a\",\"target\":\"b\"}".to_owned(),
            400,
            "no target `b`",
        ),
        (
            json,
            format!("{{\"text\":\"a\",\"at_unix_ms\":{}}}", u64::MAX),
            400,
            "at_unix_ms",
        ),
    ] {
        let (got, answer) = post(kind, body.clone()).await;
        assert_eq!(got, status, "{body:.60}: {answer}");
        assert!(answer.contains(said), "{body:.60}: {answer}");
    }
    let good = "{\"text\":\"qwen\\u001b[31m 2.1\\nx\",\"target\":\"simulated\",\"at_unix_ms\":1700000000123}";
    let (status, answer) = post(json, good.to_owned()).await;
    assert_eq!(status, 201, "{answer}");
    let (status, _) = post(json, "{\"text\":\"all of it\"}".to_owned()).await;
    assert_eq!(status, 201);
    let marks = api(&daemon, "marks").await.expect("it answers");
    let first = &marks["marks"][1];
    assert_eq!(first["at_unix_ms"], 1_700_000_000_123_u64);
    assert_eq!(first["kind"], "posted");
    let text = first["text"].as_str().expect("a text");
    assert!(!text.contains(['\u{1b}', '\n']), "{text:?}");
    assert_eq!(marks["marks"][0]["target"], Value::Null);
    let page = get(&format!("{}metrics", daemon.page)).await;
    let page = page.expect("it answers");
    let of = |target| counter(&page, "tokencanary_mark_time_seconds", target);
    assert_eq!(of("target=\"simulated\""), 1_700_000_000);
    assert!(daemon.program.stderr().contains("all of it"));
}
