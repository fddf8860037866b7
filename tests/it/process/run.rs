//! `run`: the daemon leaves a record of every arrival, whatever the server does, and stops in
//! order.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::setting::{Daemon, SOON, Simulated, Untouched, assert_whole, finish, having, records};
use crate::program::{free_address, get, scratch};

const ARRIVALS: (&str, &str) = ("tokencanary_arrivals_total", "");
const OK: (&str, &str) = ("tokencanary_requests_total", "outcome=\"ok\"");
const CONNECT: (&str, &str) = ("tokencanary_requests_total", "outcome=\"connect\"");

/// The keys of a record, as the contract has them.
const KEYS: [&str; 38] = [
    "schema",
    "sequence",
    "target",
    "endpoint",
    "probe",
    "model",
    "api",
    "cache",
    "connection",
    "reused",
    "refused_reason",
    "trace_id",
    "span_id",
    "request_id",
    "clock",
    "merged_chunks",
    "lagged",
    "intended_unix_ns",
    "start_unix_ns",
    "waits_ms",
    "phases_ms",
    "times_ms",
    "itl_ms",
    "first_chunk",
    "max_gap_ms",
    "stalls",
    "chunk_gaps_ms",
    "service_time_ms",
    "response_time_ms",
    "tokens",
    "chunks",
    "bytes",
    "outcome",
    "http_status",
    "finish_reason",
    "error",
    "server",
    "gpu",
];

/// Twenty short requests a second against `url`; `more` goes into the probe, `drain` is how
/// long requests in flight may go on.
fn configuration(folder: &Path, url: &str, (more, drain): (&str, &str)) -> String {
    format!(
        "seed: 3
drain: {drain}
targets:
  - {{ name: simulated, url: '{url}', server_metrics_every: 500ms }}
probes:
  - name: steady
    targets: [simulated]
    arrivals: {{ process: constant, rate: 20/s }}
    workload: {{ synthetic: {{ input_tokens: 16, output_tokens: 4 }}, cache: cold }}
    {more}
governor: {{ in_flight: 4 }}
export:
  files: {{ dir: '{}' }}
",
        folder.join("records").display()
    )
}

#[tokio::test]
async fn every_arrival_is_a_record_and_sigterm_drains() {
    let folder = scratch("run");
    let server = Simulated::start(&folder).await;
    let text = configuration(&folder, &server.url, ("", "4s"));
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(OK, 20).await;
    let seen = daemon.counted(ARRIVALS, 20).await;
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));

    let records = records(&folder.join("records"));
    assert!(records.len() as u64 >= seen, "{} of {seen}", records.len());
    assert_whole(&records);
    for record in &records {
        for key in KEYS {
            assert!(record.get(key).is_some(), "no `{key}` in {record}");
        }
        assert_eq!(record["schema"], "tokencanary.request/1");
    }
    let ok = records.iter().find(|record| record["outcome"] == "ok");
    let ok = ok.expect("twenty were counted");
    assert_eq!(ok["model"], "sim/model");
    assert_eq!(ok["tokens"]["output"], 4);
    assert_eq!(ok["tokens"]["requested_output"], 4);
    assert_eq!(ok["tokens"]["source"], "usage");
    // The server gives its first token after 20 ms and never sooner.
    assert!(ok["times_ms"]["ttft"].as_f64() >= Some(20.0), "{ok}");
    assert_eq!(having(&records, "outcome", "cancelled"), 0, "all could end");
    assert_eq!(daemon.program.stdout(), "");
    assert!(
        !daemon.program.stderr().contains('\u{1b}'),
        "no colour in a file"
    );
}

#[tokio::test]
async fn it_starts_before_its_server_and_outlives_it() {
    let folder = scratch("run_alone");
    let address = free_address().to_string();
    let text = configuration(&folder, &format!("http://{address}"), ("", "4s"));
    let mut daemon = Daemon::start(&folder, &text).await;
    let refused = daemon.counted(CONNECT, 5).await;

    let server = Simulated::on(&folder, &address).await;
    daemon.counted(OK, 5).await;
    let page = format!("{}api/v1/status", daemon.page);
    let named = async || {
        let status: Value = serde_json::from_str(&get(&page).await?).expect("it is JSON");
        (status["targets"][0]["model"] == "sim/model").then_some(())
    };
    daemon.program.until("name of the model", SOON, named).await;

    let refused = daemon.counted(CONNECT, refused).await;
    server.kill().await;
    daemon.counted(CONNECT, refused + 5).await;
    assert!(get(&format!("{}healthz", daemon.page)).await.is_some());
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));

    let records = records(&folder.join("records"));
    assert_whole(&records);
    let unreached = records.iter().find(|record| record["outcome"] == "connect");
    let unreached = unreached.expect("five were counted");
    assert!(unreached["error"]["message"].is_string(), "{unreached}");
    assert!(unreached["times_ms"]["ttft"].is_null(), "{unreached}");
    assert!(unreached["http_status"].is_null(), "{unreached}");
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_the_end_up() {
    let folder = scratch("run_hang");
    let server = Simulated::start(&folder).await;
    server.fault(r#"{"fault":"hang","for":"600s"}"#).await;
    let text = configuration(&folder, &server.url, ("when_full: wait", "2s"));
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(("tokencanary_in_flight", ""), 4).await;
    // An arrival is due every 50 ms, so some wait for a slot by then.
    let full = uptime(&daemon.page).await.expect("it is alive");
    let page = daemon.page.clone();
    let waiting = async || (uptime(&page).await? >= full + 0.5).then_some(());
    daemon.program.until("waiting arrival", SOON, waiting).await;
    // Cancelling takes the drain and no more; the rest is for a busy machine.
    let status = daemon.program.terminate(Duration::from_secs(6)).await;
    assert_eq!(status.code(), Some(143));

    let records = records(&folder.join("records"));
    assert_whole(&records);
    assert_eq!(having(&records, "outcome", "cancelled"), 4);
    let waiting = having(&records, "refused_reason", "shutdown");
    assert!(waiting >= 1, "no arrival was waiting");
    assert_eq!(records.len(), 4 + waiting);
    let refused = records.iter().find(|record| record["outcome"] == "refused");
    let refused = refused.expect("it has a reason, so it is there");
    assert!(refused["start_unix_ns"].is_null(), "{refused}");
    assert!(refused["times_ms"]["end"].is_null(), "{refused}");
    drop(server);
}

/// Seconds since the daemon's start, by its own clock.
async fn uptime(page: &str) -> Option<f64> {
    let status = get(&format!("{page}api/v1/status")).await?;
    let status: Value = serde_json::from_str(&status).expect("it is JSON");
    status["uptime_s"].as_f64()
}

#[tokio::test]
async fn a_taken_port_ends_it_before_anything_is_sent() {
    let folder = scratch("run_taken");
    let target = Untouched::listen();
    let page = Untouched::listen();
    let url = format!("http://{}", target.address());
    let text = configuration(&folder, &url, ("", "4s"));
    std::fs::write(folder.join("canary.yaml"), text).expect("the folder is ours");
    let taken = page.address().to_string();
    let told = finish(&folder, &["run", "-c", "canary.yaml", "--listen", &taken]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert_eq!(told.stdout, "");
    for part in ["export.http.listen: ", &taken, "wanted: ", "hint: "] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    target.check();
    page.check();
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_ends_it_before_anything_is_sent() {
    let folder = scratch("run_directory");
    let target = Untouched::listen();
    let url = format!("http://{}", target.address());
    // Nobody can make files there, not even root.
    let text = configuration(Path::new("/proc"), &url, ("", "4s"));
    std::fs::write(folder.join("canary.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["run", "-c", "canary.yaml"]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert_eq!(told.stdout, "");
    for part in ["export.files.dir: `/proc/records`: ", "wanted: ", "hint: "] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    target.check();
}

#[tokio::test]
async fn a_second_run_into_the_same_records_ends_before_anything_is_sent() {
    let folder = scratch("run_shared");
    let server = Simulated::start(&folder).await;
    let text = configuration(&folder, &server.url, ("", "4s"));
    let mut daemon = Daemon::start(&folder, &text).await;
    let target = Untouched::listen();
    let url = format!("http://{}", target.address());
    let text = configuration(&folder, &url, ("", "4s"));
    std::fs::write(folder.join("second.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["run", "-c", "second.yaml"]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    let part = "another run of tokencanary writes its records there";
    assert!(told.stderr.contains(part), "{}", told.stderr);
    target.check();
    daemon.program.terminate(SOON).await;
    drop(server);
}

#[tokio::test]
async fn a_pipe_in_the_place_of_the_records_ends_it() {
    let folder = scratch("run_pipe");
    let records = folder.join("records");
    std::fs::create_dir(&records).expect("the folder is ours");
    let pipe = records.join("requests.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("there is `mkfifo`").success());
    let target = Untouched::listen();
    let url = format!("http://{}", target.address());
    let text = configuration(&folder, &url, ("", "4s"));
    std::fs::write(folder.join("canary.yaml"), text).expect("the folder is ours");
    let told = finish(&folder, &["run", "-c", "canary.yaml"]).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.stderr.contains("is no file"), "{}", told.stderr);
    target.check();
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let folder = scratch("run_twice");
    let server = Simulated::start(&folder).await;
    server.fault(r#"{"fault":"hang","for":"600s"}"#).await;
    // The drain alone would take longer than the test waits.
    let text = configuration(&folder, &server.url, ("", "10m"));
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(("tokencanary_in_flight", ""), 1).await;
    daemon.program.signal("TERM");
    let told = daemon.program.stdout_file().with_extension("err");
    let heard = async || {
        let text = std::fs::read_to_string(&told).ok()?;
        text.contains("once more to stop at once").then_some(())
    };
    daemon.program.until("first signal", SOON, heard).await;
    daemon.program.signal("INT");
    assert_eq!(daemon.program.ended(SOON).await.code(), Some(130));
    drop(server);
}
