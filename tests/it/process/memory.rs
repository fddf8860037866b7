//! The daemon's memory does not grow with the number of requests: everything it keeps has a
//! size that was fixed when it started.
//!
//! `tests/soak` runs the same test with larger counts, through the two variables below.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::setting::counter;
use crate::program::{Program, free_address, get, scratch, tokencanary};

/// Growth that is allowed between the two readings, bytes: the allocator's, not ours.
const SLACK: u64 = 5 << 20;
/// Where it is worth the name: the counts of a short run.
const FIRST: u64 = 20_000;
const SECOND: u64 = 200_000;
/// Slowest rate at which the daemon may go through the load, requests per second, on a busy
/// machine.
const SLOWEST: u64 = 300;
const SOON: Duration = Duration::from_secs(30);

/// A count from the environment, where `tests/soak` puts it.
fn count(variable: &str, default: u64) -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests' own setting, not the product's"
    )]
    let given = std::env::var(variable);
    given.map_or(default, |text| {
        text.parse().expect("the soak script writes a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn memory_stays_flat() {
    let first = count("TOKENCANARY_SOAK_FIRST", FIRST);
    let second = count("TOKENCANARY_SOAK_SECOND", SECOND);
    let folder = scratch("memory");
    let (simulator, url) = simulator(&folder).await;
    let listen = free_address();
    let mut canary = canary(&folder, &url, listen).await;

    let before = resident_after(&mut canary, listen, first).await;
    let after = resident_after(&mut canary, listen, second).await;
    assert!(
        after <= before + SLACK,
        "{before} bytes resident after {first} requests, {after} after {second}"
    );
    let page = get(&format!("http://{listen}/metrics"))
        .await
        .expect("it is alive");
    let told = total(&page, "process_resident_memory_bytes");
    assert!(
        told.abs_diff(after) < after / 4,
        "the page says {told} bytes are resident, the kernel said {after}"
    );
    canary.terminate(SOON).await;
    drop(simulator);
}

/// A server without delays in a process of its own, and its URL.
async fn simulator(folder: &Path) -> (Program, String) {
    let address = free_address();
    let mut command = tokencanary();
    command.args([
        "simulate",
        "--profile",
        "instant",
        "--listen",
        &address.to_string(),
    ]);
    let mut simulator = Program::start("simulator", folder, &mut command);
    let url = format!("http://{address}");
    let health = format!("{url}/health");
    simulator
        .until("answer from /health", SOON, async || get(&health).await)
        .await;
    (simulator, url)
}

async fn canary(folder: &Path, url: &str, listen: SocketAddr) -> Program {
    let file = folder.join("canary.yaml");
    let text = format!(
        "seed: 7
targets:
  - {{ name: simulated, url: '{url}', server_metrics_every: 500ms }}
probes:
  - name: flood
    targets: [simulated]
    when_full: wait
    arrivals: {{ process: closed, concurrency: 16 }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 1 }}, cache: cold }}
governor: {{ requests_per_day: 1000000000, tokens_per_day: 1000000M, in_flight: 16 }}
export:
  http: {{ listen: '{listen}' }}
  files: {{ dir: '{}', max_size: 10MB, keep: 2 }}
",
        folder.join("records").display()
    );
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    let healthy = format!("http://{listen}/healthz");
    canary
        .until("answer from /healthz", SOON, async || get(&healthy).await)
        .await;
    canary
}

/// Resident bytes of the daemon once it has had `requests` arrivals.
async fn resident_after(canary: &mut Program, listen: SocketAddr, requests: u64) -> u64 {
    let page = format!("http://{listen}/metrics");
    let limit = SOON + Duration::from_secs(requests / SLOWEST);
    let what = format!("{requests} arrivals");
    canary
        .until(&what, limit, async || {
            let text = get(&page).await?;
            (total(&text, "tokencanary_arrivals_total") >= requests).then_some(())
        })
        .await;
    let status = fs::read_to_string(format!("/proc/{}/status", canary.pid())).expect("it is alive");
    resident(&status).expect("Linux reports `VmRSS`")
}

/// The sum of a counter over all its series.
fn total(page: &str, name: &str) -> u64 {
    counter(page, name, "")
}

fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib << 10)
}

#[test]
fn counters_and_memory_are_read_from_their_pages() {
    let page = "# TYPE a_total counter\na_total{x=\"1\"} 3\na_total{x=\"2\"} 4\na_total_more 9\n";
    assert_eq!(total(page, "a_total"), 7);
    assert_eq!(resident("VmHWM:\t 9 kB\nVmRSS:\t    2 kB\n"), Some(2048));
}
