//! Real receivers that are killed and started again under load, with a queue of 64: what that
//! costs is counted to the span, the memory of the daemon stays flat, and what it measures is what
//! a second daemon measures at the same time, whose receivers stay.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::super::collector::Rotel;
use super::victoria::{value, victoria_on};
use crate::process::outage::{Canary, Ended, Setting};
use crate::process::setting::shows_tokens;
use crate::program::{Program, free_address, scratch, tell};
use crate::receiver::Receiver;

/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_mins(1);
/// From the first request to the outage, its end, and the end of the load.
const DOWN: Duration = Duration::from_secs(15);
const UP: Duration = Duration::from_secs(35);
const END: Duration = Duration::from_secs(75);
/// Arrivals per second, spans that wait at most.
const RATE: u32 = 40;
const QUEUE: usize = 64;
/// The most by which the memory of the daemon may grow in the outage: the queue holds 64 spans of
/// a few KiB, a message of metrics some 100 KiB.
const GROWTH: u64 = 4 << 20;
/// Two samples of one distribution are further apart than this, times the root of (1/n + 1/m),
/// once in a thousand times (Kolmogorov and Smirnov).
const KOLMOGOROV: f64 = 1.95;

/// Bytes of memory that `program` has.
fn memory(program: &Program) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid()));
    let status = status.expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = words
        .and_then(|word| word.parse().ok())
        .expect("the kernel says it");
    kib * 1024
}

async fn canary(folder: PathBuf, otlp: String) -> Canary {
    fs::create_dir_all(&folder).expect("the folder is ours");
    let setting = Setting {
        server: &["--profile", "small"],
        arrivals: &format!("{{ process: poisson, rate: {RATE}/s }}"),
        sizes: "{ input_tokens: 'log_normal(256, 200)', output_tokens: 8 }",
        otlp: &otlp,
    };
    Canary::start_in(&folder, &setting, &[]).await
}

/// Waits until `until`, and gives the most memory that `program` had on the way.
async fn most_memory(program: &Program, until: Instant) -> u64 {
    let mut most = 0;
    while Instant::now() < until {
        most = most.max(memory(program));
        sleep(Duration::from_millis(100)).await;
    }
    most
}

/// Milliseconds at `pointer` of all good requests, ascending.
fn values(ended: &Ended, pointer: &str) -> Vec<f64> {
    let good = ended.records.iter().filter(|one| shows_tokens(one));
    let mut values: Vec<f64> = good
        .filter_map(|record| record.pointer(pointer)?.as_f64())
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The largest distance between the distributions of `a` and `b`, both ascending, and the one
/// that chance exceeds once in a thousand times.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn distance(a: &[f64], b: &[f64]) -> (f64, f64) {
    let below = |all: &[f64], value: f64| {
        all.partition_point(|one| *one <= value) as f64 / all.len() as f64
    };
    let largest = a
        .iter()
        .chain(b)
        .map(|value| (below(a, *value) - below(b, *value)).abs())
        .fold(0.0, f64::max);
    let (n, m) = (a.len() as f64, b.len() as f64);
    (largest, KOLMOGOROV * (1.0 / n + 1.0 / m).sqrt())
}

fn median(values: &[f64]) -> f64 {
    values[values.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_receivers_cost_what_is_counted_and_nothing_else() {
    let folder = scratch("outages");
    let (receiver, upstream) = Receiver::start().await;
    let mut rotel = Rotel::start(&folder, &upstream).await;
    let address = free_address();
    let (mut victoria, url) = victoria_on(&folder, address).await;
    let (_control_receiver, elsewhere) = Receiver::start().await;
    let hurt = canary(
        folder.join("hurt"),
        format!(
            "{{ endpoint: 'http://{}', metrics_endpoint: '{url}/opentelemetry/v1/metrics', queue: {QUEUE}, every: 500ms }}",
            rotel.http
        ),
    );
    let calm = canary(
        folder.join("calm"),
        format!("{{ endpoint: '{elsewhere}', queue: {QUEUE}, every: 500ms }}"),
    );
    let (hurt, calm) = tokio::join!(hurt, calm);
    let start = Instant::now();

    sleep_until(start + DOWN).await;
    let before = memory(&hurt.daemon);
    // As a crash, and as whoever rolls out a new version of a collector.
    victoria.signal("KILL");
    victoria.ended(SOON).await;
    rotel.program.terminate(SOON).await;
    let most = most_memory(&hurt.daemon, start + UP).await;
    let held_before = receiver.spans().len();
    rotel = Rotel::start_on(&folder, &upstream, (rotel.http, rotel.grpc)).await;
    let (mut victoria, _) = victoria_on(&folder, address).await;
    sleep_until(start + END).await;
    let after = memory(&hurt.daemon);
    let (hurt, calm) = tokio::join!(hurt.stop(), calm.stop());

    assert_spans(&hurt, &mut rotel.program, &receiver, held_before).await;
    calm.assert_counted(&calm.span_ids(|_| true).into_iter().collect::<Vec<_>>());
    assert_eq!(calm.traces.sent, calm.traces.accepted, "{:?}", calm.traces);

    // What else the machine does holds up both alike.
    let (lagged, beside) = (hurt.lagged(), calm.lagged());
    tell(&format!(
        "lagged: {lagged} records, {beside} without the outage"
    ));
    let slack = 2 + hurt.records.len() / 50;
    assert!(lagged <= beside + slack, "{lagged} lagged, {beside} beside");

    let ttfts = values(&hurt, "/times_ms/ttft");
    assert_told(&mut victoria, &url, &ttfts).await;

    let grown = most.saturating_sub(before);
    tell(&format!(
        "memory: {before} bytes before, at most {most} in the outage, {after} at the end"
    ));
    assert!(grown <= GROWTH, "{before} grew to {most}");
    assert!(after <= before + 2 * GROWTH, "{before} grew to {after}");

    assert_alike(&hurt, &calm);
}

/// What is behind the collector is what was sent, and what was not is counted.
async fn assert_spans(hurt: &Ended, rotel: &mut Program, receiver: &Receiver, before: usize) {
    let account = hurt.traces;
    let lost = account.dropped + account.failed;
    // 20 s of 40 a second, and up to 5 s more before it is tried again, less what is held.
    assert!((300..1200).contains(&lost), "{account:?}");
    assert!(hurt.metrics.failed > 0, "{:?}", hurt.metrics);
    let arrived = async || {
        let held: BTreeSet<String> = receiver.spans().into_iter().collect();
        (held.len() >= account.sent).then_some(held)
    };
    let held = rotel.until("all spans", SOON, arrived).await;
    let all = receiver.spans().len();
    hurt.assert_counted(&held.into_iter().collect::<Vec<_>>());
    tell(&format!(
        "spans: {account:?}; behind the collector {all}, {} of them more than once, {before} when it was down",
        all - account.sent
    ));
    tell(&format!(
        "points: {:?}; events: {:?}",
        hurt.metrics, hurt.logs
    ));
}

/// The two canaries saw the same server.
fn assert_alike(hurt: &Ended, calm: &Ended) {
    for (name, pointer) in [
        ("TTFT", "/times_ms/ttft"),
        ("ITL", "/itl_ms"),
        ("response time", "/response_time_ms"),
    ] {
        let (with, without) = (values(hurt, pointer), values(calm, pointer));
        let (apart, chance) = distance(&with, &without);
        tell(&format!(
            "{name}: {} values with the outage, {} without, medians {:.3} and {:.3} ms, D = {apart:.4} of {chance:.4}",
            with.len(),
            without.len(),
            median(&with),
            median(&without)
        ));
        assert!(apart <= chance, "{name}: {apart} is more than {chance}");
    }
}

/// What the store says at the end is all that was: it was told again what it had lost.
#[expect(clippy::cast_precision_loss, reason = "a small count")]
async fn assert_told(victoria: &mut Program, url: &str, ttfts: &[f64]) {
    let (count, sum) = (ttfts.len() as f64, ttfts.iter().sum::<f64>() / 1e3);
    let name = "tokencanary_request_ttft_seconds";
    let look = async || {
        let found = value(url, &format!("sum({name}_count)")).await;
        found.filter(|found| *found >= count)
    };
    let found = victoria.until("all requests", SOON, look).await;
    assert!((found - count).abs() < 0.5, "{found} of {count}");
    let told = value(url, &format!("sum({name}_sum)")).await;
    let told = told.expect("it is there");
    assert!((told - sum).abs() < 1e-3 * sum, "{told} is not {sum}");
    tell(&format!(
        "metrics: {found} requests, {told:.3} s, in the store that was killed; {sum:.3} s in the records"
    ));
}

#[test]
fn two_samples_of_one_distribution_are_near_and_others_are_not() {
    let even: Vec<f64> = (0..1000).map(f64::from).collect();
    let odd: Vec<f64> = even.iter().map(|value| value + 0.5).collect();
    let (apart, chance) = distance(&even, &odd);
    assert!((apart - 0.001).abs() < 1e-9 && apart < chance);
    let later: Vec<f64> = even.iter().map(|value| value + 100.0).collect();
    let (apart, chance) = distance(&even, &later);
    assert!(
        (apart - 0.1).abs() < 1e-9 && apart > chance,
        "{apart} {chance}"
    );
}
