//! The two clients, each in a process of its own: the canary's, and the bare reader that only
//! looks for the first token and the end. Both send the same requests over kept connections.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokencanary::measurement::{ClockSource, RequestRecord};
use tokio::time::sleep;

use super::metrology::bare::Reader;
use super::metrology::canary::Canary;
use super::proc::{cpu_seconds, resident_kib};
use super::server::Written;

/// What a client is to do.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Ours, or the bare reader.
    pub(crate) ours: bool,
    pub(crate) address: SocketAddr,
    /// Requests under way at once.
    pub(crate) streams: usize,
    /// Requests on each, after one that does not count.
    pub(crate) rounds: usize,
    /// Over which the streams begin, one after the other.
    pub(crate) ramp: Duration,
    /// When memory is looked at, after the ramp.
    pub(crate) weigh_after: Option<Duration>,
    /// Whether the server keeps its times.
    pub(crate) times: bool,
}

/// What it found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) requests: usize,
    /// CPU of this process over all requests that count, seconds.
    pub(crate) cpu: f64,
    /// KiB more than before the streams, for each of them.
    pub(crate) memory: Option<f64>,
    /// TTFT at the client minus TTFT by the server's own clock, µs.
    pub(crate) added: Vec<f64>,
    /// TTFT at the client, µs.
    pub(crate) ttft: Vec<f64>,
    /// Stamp of an `exact` chunk minus the server's clock before its write, µs.
    pub(crate) stamps: Vec<f64>,
    pub(crate) merged: usize,
    pub(crate) chunks: usize,
    /// Requests whose chunks have stamps of the kernel.
    pub(crate) kernel: usize,
}

/// One request as a client saw it.
struct Seen {
    id: String,
    ttft_us: f64,
    /// Chunk instants, Unix nanoseconds, and whether each is exact.
    chunks: Vec<(u64, bool)>,
    kernel: bool,
}

/// Does `task` and prints what was found.
#[expect(clippy::print_stdout, reason = "the parent reads it")]
pub(crate) async fn run(task: Task) {
    let found = if task.ours {
        ours(task).await
    } else {
        bare(task).await
    };
    println!(
        "{}",
        serde_json::to_string(&found).expect("numbers and lists")
    );
}

async fn ours(task: Task) -> Found {
    let canary = Canary::new(task.address);
    let seen = RefCell::new(Vec::new());
    let stream = async |place| {
        sleep(start_of(task, place)).await;
        for _ in 0..task.rounds {
            let record = canary.record().await;
            if task.times {
                let one = see(&canary, &record);
                seen.borrow_mut().push(one);
            }
        }
    };
    // The first opens what is opened once; the others each open their connection.
    canary.record().await;
    let before = resident_kib();
    if task.weigh_after.is_none() {
        join_all((0..task.streams).map(|_| canary.record())).await;
    }
    fetch_times(task).await;
    let cpu = cpu_seconds();
    let (_, memory) =
        futures_util::future::join(join_all((0..task.streams).map(stream)), weigh(task, before))
            .await;
    let cpu = cpu_seconds() - cpu;
    found(task, (cpu, memory), seen.into_inner()).await
}

async fn bare(task: Task) -> Found {
    let mut readers = Vec::new();
    let before = resident_kib();
    for number in 0..task.streams {
        readers.push(Reader::connect(task.address, number).await);
    }
    if task.weigh_after.is_none() {
        join_all(readers.iter_mut().map(Reader::exchange)).await;
    }
    fetch_times(task).await;
    let seen = RefCell::new(Vec::new());
    let stream = async |(place, mut reader): (usize, Reader)| {
        sleep(start_of(task, place)).await;
        for _ in 0..task.rounds {
            let one = reader.exchange().await;
            if task.times {
                seen.borrow_mut().push(Seen {
                    id: one.request,
                    ttft_us: one.ttft,
                    chunks: Vec::new(),
                    kernel: false,
                });
            }
        }
    };
    let cpu = cpu_seconds();
    let streams = join_all(readers.into_iter().enumerate().map(stream));
    let (_, memory) = futures_util::future::join(streams, weigh(task, before)).await;
    let cpu = cpu_seconds() - cpu;
    found(task, (cpu, memory), seen.into_inner()).await
}

#[expect(clippy::cast_precision_loss, reason = "some thousand streams")]
fn start_of(task: Task, place: usize) -> Duration {
    task.ramp.mul_f64(place as f64 / task.streams as f64)
}

/// KiB for each stream at the moment asked for.
#[expect(clippy::cast_precision_loss, reason = "some thousand streams")]
async fn weigh(task: Task, before: f64) -> Option<f64> {
    sleep(task.ramp + task.weigh_after?).await;
    Some((resident_kib() - before) / task.streams as f64)
}

fn see(canary: &Canary, record: &RequestRecord) -> Seen {
    let wall = canary.anchor().wall();
    let chunks = record.chunks.as_slice().iter();
    Seen {
        id: record.ids.request_id(),
        ttft_us: record.ttft().expect("a token came").as_secs_f64() * 1e6,
        chunks: chunks
            .map(|chunk| (wall.unix_ns(chunk.at), !chunk.is_merged()))
            .collect(),
        kernel: record.clock == ClockSource::Kernel,
    }
}

async fn found(task: Task, (cpu, memory): (f64, Option<f64>), seen: Vec<Seen>) -> Found {
    let mut found = Found {
        requests: task.streams * task.rounds,
        cpu,
        memory,
        ..Found::default()
    };
    let times = fetch_times(task).await;
    let times: HashMap<&str, &Written> = times.iter().map(|one| (&*one.id, one)).collect();
    for one in &seen {
        let written = times[&*one.id];
        found.ttft.push(one.ttft_us);
        found
            .added
            .push(one.ttft_us - micros(written.read, written.tokens[0]));
        found.kernel += usize::from(one.kernel);
        found.chunks += one.chunks.len();
        assert!(one.chunks.is_empty() || one.chunks.len() == written.tokens.len());
        for ((at, exact), wrote) in one.chunks.iter().zip(&written.tokens) {
            if *exact {
                found.stamps.push(micros(*wrote, *at));
            } else {
                found.merged += 1;
            }
        }
    }
    found
}

/// Microseconds from one instant to another, in nanoseconds; negative if it is earlier.
#[expect(clippy::cast_precision_loss, reason = "the difference is small")]
fn micros(from: u64, to: u64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64 / 1e3
}

/// What the server kept since the last time.
async fn fetch_times(task: Task) -> Vec<Written> {
    if !task.times {
        return Vec::new();
    }
    // Fails only if it was done already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("the options are fixed");
    let answer = client
        .get(format!("http://{}/times", task.address))
        .send()
        .await;
    let text = answer
        .expect("it is there")
        .text()
        .await
        .expect("it is whole");
    Written::parse(&text)
}
