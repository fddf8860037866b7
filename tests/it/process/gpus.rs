//! The GPUs of a target: on records, in metrics and over the API, and printed by `check --gpu`.

use std::fs;

use serde_json::Value;

use super::setting::{Daemon, SOON, Simulated, finish, lines, records};
use crate::program::{free_address, get, scratch};

const READ: (&str, &str) = ("tokencanary_gpu_scrapes_total", "result=\"ok\"");
const OK: (&str, &str) = ("tokencanary_requests_total", "outcome=\"ok\"");

fn configuration(url: &str, gpu: &str, more: &str) -> String {
    format!(
        "targets:
  - {{ name: a, url: '{url}', server_metrics: off, node: '{url}/node/metrics', node_every: 500ms, gpu: {gpu} }}
probes:
  - name: p
    targets: [a]
    arrivals: {{ process: constant, rate: 20/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 10 }} }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 100 }}
{more}"
    )
}

/// The exporter of `server`'s host.
fn exporter(server: &Simulated, select: &str) -> String {
    format!(
        "{{ dcgm: '{}/dcgm/metrics', {select}, every: 500ms }}",
        server.url
    )
}

/// What the page says of the GPU of the target and of its host.
fn assert_page(page: &str) {
    assert!(
        page.contains("tokencanary_node_cpu_busy_ratio{target=\"a\"} 0."),
        "{page}"
    );
    assert!(
        page.contains("tokencanary_node_memory_available_ratio{target=\"a\"} 0.71875"),
        "{page}"
    );
    let series = |name: &str| page.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        series("hw_gpu_utilization_ratio{"),
        1,
        "one of four on the page: {page}"
    );
    assert!(page.contains("tokencanary_gpus{target=\"a\"} 1"), "{page}");
    assert!(page.contains("hw_id=\"GPU-5ca1ab1e-0000-4000-8000-000000000000\""));
    assert_eq!(
        series("tokencanary_gpu_imbalance_ratio{"),
        0,
        "there is one"
    );
    assert!(page.contains("tokencanary_gpu_throttled{target=\"a\",gpu=\"0\""));
}

fn assert_connections(records: &[Value]) {
    // The connection of each is known too: the kernel is asked when a request has ended.
    let of_tcp = |record: &&Value| !record["tcp"].is_null();
    let known: Vec<&Value> = records.iter().filter(of_tcp).collect();
    assert!(
        known.len() > records.len() / 2,
        "{} of {}",
        known.len(),
        records.len()
    );
    for record in known {
        let rtt = record["tcp"]["rtt_ms"].as_f64().expect("a time");
        assert!(rtt > 0.0 && rtt < 1_000.0, "{record}");
        assert_eq!(
            record["tcp"]["retransmits"].as_u64().unwrap_or(0),
            0,
            "{record}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_record_has_the_gpus_of_its_target_and_no_others() {
    let folder = scratch("gpu_records");
    let server = Simulated::start(&folder).await;
    let files = format!(
        "export: {{ files: {{ dir: '{}' }} }}\n",
        folder.join("records").display()
    );
    let gpu = exporter(&server, "pod: canary-*, namespace: inference");
    let mut daemon = Daemon::start(&folder, &configuration(&server.url, &gpu, &files)).await;
    daemon.counted(READ, 2).await;
    server
        .fault(r#"{"fault":"throttle","factor":2,"for":"60s"}"#)
        .await;
    let before = daemon.counted(OK, 1).await;
    daemon.counted(OK, before + 60).await;
    let page = get(&format!("{}metrics", daemon.page))
        .await
        .expect("it answers");
    let status = get(&format!("{}api/v1/status", daemon.page))
        .await
        .expect("it answers");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));

    assert_page(&page);
    let status: Value = serde_json::from_str(&status).expect("it is JSON");
    let gpu = &status["targets"][0]["gpu"];
    assert_eq!(
        (&gpu["gpus"], &gpu["throttled"]),
        (&1.into(), &true.into()),
        "{status}"
    );
    assert_eq!(gpu["each"][0]["fields"]["sm_clock"], 990e6);

    let records = records(&folder.join("records"));
    // The last ones were held back at the end.
    let answered = records
        .iter()
        .rev()
        .find(|record| record["outcome"] == "ok");
    let last = answered.expect("there are some");
    for instant in ["intended", "first_token", "end"] {
        let state = &last["gpu"][instant];
        assert_eq!(state["throttled"], true, "{instant}: {last}");
        assert_eq!(state["sm_clock_hz"], 990e6, "{instant}: {last}");
        let age = state["age_ms"].as_f64().expect("an age");
        assert!((0.0..=1_500.0).contains(&age), "{instant}: {last}");
    }
    assert!(last["gpu"]["intended"]["energy_j"].as_f64() > Some(0.0));
    assert_connections(&records);
}

/// Beside its server the canary asks the kernel of the one machine they have.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_may_be_this_machine() {
    let folder = scratch("host_this");
    let server = Simulated::start(&folder).await;
    let page = format!("'{}/node/metrics'", server.url);
    let gpu = exporter(&server, "index: [0]");
    let text = configuration(&server.url, &gpu, "").replace(&page, "this");
    let mut daemon = Daemon::start(&folder, &text).await;
    let read = ("tokencanary_node_scrapes_total", "result=\"ok\"");
    daemon.counted(read, 3).await;
    let page = get(&format!("{}metrics", daemon.page)).await;
    let page = page.expect("it answers");
    let value = |name: &str| {
        let mut lines = page.lines().filter_map(|line| line.strip_prefix(name));
        let value = lines.next().and_then(|rest| rest.strip_prefix(' '));
        value.and_then(|value| value.parse::<f64>().ok())
    };
    let busy = value("tokencanary_node_cpu_busy_ratio{target=\"a\"}");
    assert!((0.0..=1.05).contains(&busy.expect("it is known")), "{page}");
    // Read by another reader of the same files at about the same time.
    let share = value("tokencanary_node_memory_available_ratio{target=\"a\"}");
    let of_ours = |name: &str| value(&format!("tokencanary_host_memory_{name}_bytes"));
    let ours = of_ours("available").zip(of_ours("total"));
    let ours = ours.map(|(available, total)| available / total);
    let apart = share.expect("it is known") - ours.expect("it is known");
    assert!(apart.abs() < 0.2, "{page}");
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gpus_that_cannot_be_read_are_counted_and_hurt_nothing() {
    let folder = scratch("gpu_missing");
    let server = Simulated::start(&folder).await;
    for (gpu, result) in [
        (exporter(&server, "pod: other-0"), "not_selected"),
        (
            format!("{{ dcgm: '{}/metrics', every: 100ms }}", server.url),
            "unrecognised",
        ),
        (
            format!("{{ amd: '{}/nowhere', every: 100ms }}", server.url),
            "status",
        ),
        (
            format!("{{ dcgm: 'http://{}/m', every: 100ms }}", free_address()),
            "unreachable",
        ),
    ] {
        let mut daemon = Daemon::start(&folder, &configuration(&server.url, &gpu, "")).await;
        let label = format!("result=\"{result}\"");
        daemon.counted((READ.0, &label), 2).await;
        daemon.counted(OK, 5).await;
        let page = get(&format!("{}metrics", daemon.page))
            .await
            .expect("it answers");
        assert!(!page.contains("tokencanary_gpus"), "{result}");
        assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_prints_every_field_and_fails_if_gpus_are_missing() {
    let folder = scratch("gpu_check");
    let server = Simulated::start(&folder).await;
    let write = |gpu: &str| {
        let file = folder.join("canary.yaml");
        fs::write(&file, configuration(&server.url, gpu, "")).expect("the folder is ours");
    };
    write(&exporter(&server, "index: [0, 1]"));
    let found = finish(&folder, &["check", "--gpu", "-c", "canary.yaml"]).await;
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(
        found.stdout.contains("a: 2 GPUs, from http://"),
        "{found:?}"
    );
    for field in [
        "  GPU 0 NVIDIA H100",
        "  GPU 1 ",
        "utilization",
        "dram_active",
        "power_limit          –",
    ] {
        assert!(found.stdout.contains(field), "{field} in {}", found.stdout);
    }
    let json = finish(
        &folder,
        &["check", "--gpu", "-c", "canary.yaml", "--output", "json"],
    )
    .await;
    let rows = lines(&json.stdout);
    let ours: Vec<_> = rows.iter().filter(|row| row["of"] == "a").collect();
    assert_eq!(ours.len(), 2, "{json:?}");
    assert!(ours[0]["fields"]["power_limit"].is_null() && ours[0]["fields"]["power"].is_f64());

    write(&exporter(&server, "pod: other-0"));
    let missing = finish(&folder, &["check", "--gpu", "-c", "canary.yaml"]).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(
        missing
            .stderr
            .contains("no GPU of the page is one of those asked for"),
        "{missing:?}"
    );

    // Whatever this machine has: GPUs, or a line that says why not.
    let here = finish(&folder, &["check", "--gpu"]).await;
    assert_eq!(here.code, Some(0), "{here:?}");
    let said = format!("{}{}", here.stdout, here.stderr);
    assert!(said.contains("this machine: "), "{here:?}");
}
