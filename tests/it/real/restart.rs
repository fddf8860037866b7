//! A real llama.cpp server that is killed and started again: its page tells no start of a process,
//! and its counters begin anew.

use serde_json::Value;
use tokio::time::{Duration, sleep};

use super::components::LlamaServer;
use crate::process::setting::{Daemon, SOON, counter};
use crate::program::{get, scratch};

const OK: (&str, &str) = ("tokencanary_requests_total", "outcome=\"ok\"");

#[tokio::test]
async fn a_restart_is_marked_and_counts_for_nobody() {
    let folder = scratch("restart_llama");
    let llama = LlamaServer::start(&folder).await;
    let text = format!(
        "targets:
  - {{ name: llama, url: '{}', model: tiny, server_metrics_every: 500ms }}
probes:
  - name: short
    targets: [llama]
    arrivals: {{ process: constant, rate: 2/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 2 }} }}
    slo: {{ success: 99% }}
governor: {{ in_flight: 2 }}
",
        llama.url
    );
    let mut daemon = Daemon::start(&folder, &text).await;
    daemon.counted(OK, 6).await;
    // Its counters have to be on a page before it goes.
    sleep(Duration::from_secs(2)).await;
    let llama = llama.restart(&folder).await;
    let before = daemon.counted(OK, 6).await;
    daemon.counted(OK, before + 10).await;

    let marks = get(&format!("{}api/v1/marks", daemon.page)).await;
    let marks: Value = serde_json::from_str(&marks.expect("it answers")).expect("it is JSON");
    let restarts = marks["marks"].as_array().expect("a list").iter();
    let restarts = restarts.filter(|mark| mark["kind"] == "restart");
    assert_eq!(restarts.count(), 1, "{marks}");
    let page = get(&format!("{}metrics", daemon.page)).await;
    let page = page.expect("it answers");
    let excused = |result| counter(&page, "tokencanary_requests_excused_total", result);
    // It may be back before the next request is due.
    if excused("failed") > 0 {
        assert!((1..=5).contains(&excused("ok")), "its first answers");
    }
    let slo = |name| counter(&page, name, "slo=\"success\"");
    let events = slo("tokencanary_slo_events_total");
    assert_eq!(events, slo("tokencanary_slo_good_total"));
    daemon.program.terminate(SOON).await;
    drop(llama);
}
