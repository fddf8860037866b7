//! Pods and images of targets: what changes in a volume of the downward API, or on the page of a
//! GPU exporter, is a mark in metrics, API, log and events.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::routing::get as on_get;
use serde_json::Value;
use tokio::net::TcpListener;

use super::setting::{Daemon, SOON, Simulated, counter};
use crate::program::{get, scratch};
use crate::receiver::Receiver;
use crate::virtual_time::swap;

fn configuration(url: &str, (volume, exporter, otlp): (&Path, &str, &str)) -> String {
    format!(
        "targets:
  - {{ name: beside, url: '{url}', server_metrics: off, pod_info: '{}' }}
  - {{ name: afar, url: '{url}', server_metrics: off, gpu: {{ dcgm: '{exporter}', pod: vllm-*, every: 200ms }} }}
probes:
  - name: p
    targets: [beside, afar]
    arrivals: {{ process: constant, rate: 1/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 4 }} }}
governor: {{ in_flight: 4 }}
export:
  otlp: {{ endpoint: '{otlp}' }}
",
        volume.display()
    )
}

/// The page of an exporter whose GPUs serve these pods, each one.
fn page(pods: &[&str]) -> String {
    let rows = pods.iter().enumerate().map(|(gpu, pod)| {
        format!("DCGM_FI_DEV_GPU_UTIL{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",pod=\"{pod}\"}} 5\n")
    });
    rows.collect()
}

/// An exporter that serves what is in the text.
async fn exporter(text: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("loopback has free ports");
    let url = format!(
        "http://{}/metrics",
        listener.local_addr().expect("it is bound")
    );
    let page = move || async move { text.lock().unwrap_or_else(PoisonError::into_inner).clone() };
    let router = Router::new().route("/metrics", on_get(page));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Waits for as many marks, and gives target, kind and text of each, the newest first.
async fn marks(daemon: &mut Daemon, count: usize) -> Vec<[String; 3]> {
    let url = format!("{}api/v1/marks", daemon.page);
    let look = async || {
        let answer: Value = serde_json::from_str(&get(&url).await?).expect("it is JSON");
        let marks = answer["marks"].as_array().expect("a list");
        let told = marks.iter().map(|mark| {
            ["target", "kind", "text"].map(|key| mark[key].as_str().expect("a text").to_owned())
        });
        (marks.len() >= count).then(|| told.collect())
    };
    daemon
        .program
        .until(&format!("{count} marks"), SOON, look)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_pod_and_another_image_are_marks() {
    let folder = scratch("pods_marks");
    let server = Simulated::start(&folder).await;
    let volume = folder.join("podinfo");
    std::fs::create_dir(&volume).expect("the folder is ours");
    let label = |version| format!("app=\"vllm\"\napp.kubernetes.io/version=\"{version}\"");
    swap(
        &volume,
        "..1",
        &[("name", "vllm-0"), ("labels", &label("0.11.0"))],
    );
    let text = Arc::new(Mutex::new(page(&["vllm-a", "other"])));
    let exporter = exporter(Arc::clone(&text)).await;
    let show = |pods: &[&str]| {
        *text.lock().unwrap_or_else(PoisonError::into_inner) = page(pods);
    };
    let (receiver, otlp) = Receiver::start().await;
    let with = (&*volume, &*exporter, &*otlp);
    let mut daemon = Daemon::start(&folder, &configuration(&server.url, with)).await;
    daemon
        .counted(("tokencanary_gpu_scrapes_total", "result=\"ok\""), 2)
        .await;
    daemon
        .counted(("tokencanary_requests_total", "outcome=\"ok\""), 2)
        .await;

    let afar = |text: &str| ["afar", "pod", text].map(str::to_owned);
    // Somebody else's pod is none of the target's.
    show(&["vllm-b", "another"]);
    assert_eq!(marks(&mut daemon, 1).await, [afar("vllm-a → vllm-b")]);
    // Pages of old and new come in turn.
    let read = ("tokencanary_gpu_scrapes_total", "result=\"ok\"");
    for pod in ["vllm-a", "vllm-b"] {
        let before = daemon.counted(read, 1).await;
        show(&[pod]);
        daemon.counted(read, before + 2).await;
    }
    swap(
        &volume,
        "..2",
        &[("name", "vllm-0"), ("labels", &label("0.11.1"))],
    );
    let image = "app.kubernetes.io/version: 0.11.0 → 0.11.1";
    let beside = ["beside", "image", image].map(str::to_owned);
    assert_eq!(
        marks(&mut daemon, 2).await,
        [beside, afar("vllm-a → vllm-b")]
    );

    let page = get(&format!("{}metrics", daemon.page)).await;
    let page = page.expect("it answers");
    for labels in [
        "target=\"afar\",kind=\"pod\"",
        "target=\"beside\",kind=\"image\"",
    ] {
        let at = counter(&page, "tokencanary_mark_time_seconds", labels);
        assert!(at > 1_700_000_000, "{labels}: {at}");
    }
    let told = async || {
        let held = receiver.held();
        let marks = held.logs.iter().filter(|name| *name == "tokencanary.mark");
        (marks.count() == 2).then_some(())
    };
    daemon.program.until("two events", SOON, told).await;
    assert_eq!(daemon.program.terminate(SOON).await.code(), Some(143));
    let log = daemon.program.stderr();
    assert!(
        log.contains(image) && log.contains("vllm-a → vllm-b"),
        "{log}"
    );
    assert_eq!(log.matches("reading what the pod is").count(), 1, "{log}");
}
