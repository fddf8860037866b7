//! What reaches the server, of a data set, of a trace and of our own making: for every flag and
//! key that says so, seen on the wire.

mod agents;
mod bad;
mod fidelity;
mod folders;
mod keys;
mod prompts;
mod questions;
mod schedule;
mod sessions;
mod sets;
mod timed;
mod warm_up;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokencanary::app::{App, Extent, Outputs, RunReport, Setup};
use tokencanary::cli::benchmark;
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{Config, Format, ServerMetrics, from_text};
use tokencanary::measurement::{Observed, RequestRecord};
use tokencanary::simulator::{Fault, Profile, Simulator, SimulatorConfig};
use tokencanary::transport::{Connect, Endpoint, Opened, Opening, Progress, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// A network to the simulator on which everything that is said can be read.
#[derive(Clone)]
struct Tapped {
    simulator: Simulator,
    anchor: TimeAnchor,
    heard: Arc<Mutex<Vec<Arc<Mutex<Line>>>>>,
}

/// What was said on one connection: ours with the time, theirs.
#[derive(Default)]
struct Line {
    ours: Vec<u8>,
    /// Time and length of each piece.
    pieces: Vec<(u64, usize)>,
    theirs: Vec<u8>,
}

impl Connect for Tapped {
    fn open<'a>(&'a self, _: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            let (client, outer) = tokio::io::duplex(1 << 20);
            let (inner, server) = tokio::io::duplex(1 << 20);
            let simulator = self.simulator.clone();
            tokio::spawn(async move { simulator.serve_connection(server).await });
            let line = Arc::new(Mutex::new(Line::default()));
            self.heard
                .lock()
                .expect("nobody panics")
                .push(Arc::clone(&line));
            let (from_client, to_client) = tokio::io::split(outer);
            let (from_server, to_server) = tokio::io::split(inner);
            let (anchor, theirs) = (self.anchor, Arc::clone(&line));
            tokio::spawn(carry(from_client, to_server, move |bytes| {
                let mut line = line.lock().expect("nobody panics");
                line.ours.extend_from_slice(bytes);
                let ms = anchor.now().as_nanos() / 1_000_000;
                line.pieces.push((ms, bytes.len()));
            }));
            tokio::spawn(carry(from_server, to_client, move |bytes| {
                theirs
                    .lock()
                    .expect("nobody panics")
                    .theirs
                    .extend_from_slice(bytes);
            }));
            Ok(Opened {
                wire: Wire::Pipe(client),
                resolved: None,
                connected: progress.now(),
                tls: None,
                http2: false,
            })
        })
    }
}

async fn carry(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    hear: impl Fn(&[u8]),
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        hear(&buffer[..read]);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    to.shutdown().await.unwrap_or_default();
}

/// One request as the server got it.
#[derive(Debug, Clone)]
struct Sent {
    /// When its first byte came, in milliseconds.
    at: u64,
    body: Value,
    /// As it was written.
    raw: String,
    /// Number of the connection.
    connection: usize,
}

impl Sent {
    /// The text of its last message.
    fn text(&self) -> &str {
        let messages = self.body["messages"].as_array().expect("chat");
        messages.last().expect("one")["content"]
            .as_str()
            .expect("a text")
    }

    fn words(&self) -> Vec<&str> {
        self.text().split(' ').collect()
    }

    /// Role and text of all its messages.
    fn messages(&self) -> Vec<(&str, &str)> {
        let messages = self.body["messages"].as_array().expect("chat").iter();
        messages.map(role_and_text).collect()
    }
}

fn role_and_text(message: &Value) -> (&str, &str) {
    let field = |name: &str| message[name].as_str().expect("a text");
    (field("role"), field("content"))
}

/// What a run left.
struct Played {
    report: RunReport,
    records: Vec<RequestRecord>,
    /// In the order in which they came.
    sent: Vec<Sent>,
    /// The texts of all answers, in no order.
    answers: Vec<String>,
}

impl Played {
    fn times(&self) -> Vec<u64> {
        self.sent.iter().map(|sent| sent.at).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.sent.iter().map(Sent::text).collect()
    }

    fn counts(&self) -> Vec<usize> {
        self.sent.iter().map(|sent| sent.words().len()).collect()
    }
}

/// A file or a directory that is gone when this is.
struct Given(PathBuf);

impl Given {
    fn new(content: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("tokencanary-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).expect("a temporary file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("plain letters")
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let removed = if self.0.is_dir() {
            std::fs::remove_dir_all(&self.0)
        } else {
            std::fs::remove_file(&self.0)
        };
        removed.expect("it is there");
    }
}

/// Tokens a millisecond apart, the first after `ttft`.
const fn server(ttft: u64) -> Profile {
    Profile::fixed(Duration::from_millis(ttft), Duration::from_millis(1))
}

/// `bench` of the file `content` with `flags`.
async fn bench(content: &str, flags: &str) -> Played {
    bench_at(content, flags, (server(1), Vec::new())).await
}

async fn bench_at(content: &str, flags: &str, at: (Profile, Vec<Fault>)) -> Played {
    let file = Given::new(content);
    let (config, extent) = planned(&file, flags).expect("good flags");
    play((config, extent), at).await.expect("it begins")
}

fn planned(file: &Given, flags: &str) -> Result<(Config, Extent), String> {
    let common = "--url http://sim -m sim/canary-0.6b --random-seed 7 --input-file";
    let given = common.split(' ').chain([file.path()]);
    let (mut config, extent) = benchmark(given.chain(flags.split_whitespace()))?;
    config.targets[0].server_metrics = ServerMetrics::Off;
    Ok((config, extent))
}

/// A probe whose workload is the file `content` with `keys`, and with `arrivals`.
async fn probe(content: &str, (keys, arrivals): (&str, &str), count: Option<u64>) -> Played {
    let file = Given::new(content);
    let text = format!(
        "seed: 7
targets: [{{ name: sim, url: 'http://sim', model: sim/canary-0.6b, server_metrics: off }}]
governor: {{ in_flight: 1000, requests_per_day: 1M, tokens_per_day: 1G }}
probes:
- name: probe
  targets: [sim]
  when_full: wait
  workload: {{ file: {{ path: {}, {keys} }} }}
  arrivals: {{ {arrivals} }}
",
        file.path()
    );
    let config = from_text(&text, Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.export.http = None;
    let extent = Extent {
        count,
        ..Extent::default()
    };
    play((config, extent), (server(1), Vec::new()))
        .await
        .expect("it begins")
}

async fn play(
    (config, extent): (Config, Extent),
    (profile, faults): (Profile, Vec<Fault>),
) -> anyhow::Result<Played> {
    let anchor = TimeAnchor::start();
    let simulator = Simulator::new(SimulatorConfig::new(profile), anchor)?;
    for fault in faults {
        simulator.inject(fault)?;
    }
    let engine = tokio::spawn({
        let simulator = simulator.clone();
        async move { simulator.run().await }
    });
    let network = Tapped {
        simulator,
        anchor,
        heard: Arc::default(),
    };
    let setup = Setup {
        command: "test",
        config,
        anchor,
        connect: Arc::new(network.clone()),
        extent,
        outputs: Outputs {
            summary: true,
            ..Outputs::default()
        },
    };
    let here = tokio::runtime::Handle::current();
    let app = App::build(setup, (here.clone().into(), here))?;
    let live = app.live();
    let report = Box::pin(app.run(std::future::pending())).await?;
    engine.abort();
    let live = live.lock().expect("nobody panics");
    let last = live.last_requests();
    let mut records: Vec<RequestRecord> = last
        .map(|observed: &Arc<Observed>| observed.record.clone())
        .collect();
    records.sort_by_key(|record| record.sequence);
    let heard = network.heard.lock().expect("nobody panics");
    let mut sent = Vec::new();
    let mut answers = Vec::new();
    for (connection, heard) in heard.iter().enumerate() {
        let heard = heard.lock().expect("nobody panics");
        sent.extend(requests(&heard, connection));
        answers.extend(said(&heard.theirs));
    }
    sent.sort_by_key(|sent| sent.at);
    Ok(Played {
        report,
        records,
        sent,
        answers,
    })
}

/// The requests of one connection.
fn requests(line: &Line, connection: usize) -> Vec<Sent> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(head) = line.ours[at..]
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
    {
        let text = String::from_utf8_lossy(&line.ours[at..at + head]).to_lowercase();
        let length = text.split("content-length: ").nth(1).expect("a length");
        let length: usize = length
            .lines()
            .next()
            .and_then(|length| length.trim().parse().ok())
            .expect("a number");
        let body = at + head + 4;
        let raw = String::from_utf8_lossy(&line.ours[body..body + length]).into_owned();
        found.push(Sent {
            at: time_of(line, at),
            body: serde_json::from_str(&raw).expect("JSON"),
            raw,
            connection,
        });
        at = body + length;
    }
    found
}

/// When the byte at `position` came.
fn time_of(line: &Line, position: usize) -> u64 {
    let mut end = 0;
    let piece = line.pieces.iter().find(|(_, length)| {
        end += length;
        position < end
    });
    piece.expect("it came").0
}

/// The texts of the event streams of one connection.
fn said(theirs: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(theirs);
    let mut answers = vec![String::new()];
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data == "[DONE]" {
            answers.push(String::new());
        } else if let Ok(event) = serde_json::from_str::<Value>(data)
            && let Some(piece) = event["choices"][0]["delta"]["content"].as_str()
        {
            answers.last_mut().expect("one").push_str(piece);
        }
    }
    answers.retain(|answer| !answer.is_empty());
    answers
}
