//! The wire in virtual time: requests written by hand, every write seen with its instant.

mod cache;
mod completions;
mod context;
mod faults;
mod pages;
mod stream;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::task::JoinHandle;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A simulator whose driver runs, and the origin of its clock.
struct Rig {
    simulator: Simulator,
    anchor: TimeAnchor,
}

impl Rig {
    fn new(profile: Profile) -> Self {
        Self::with(SimulatorConfig {
            keep_times: 10_000,
            ..SimulatorConfig::new(profile)
        })
    }

    fn with(config: SimulatorConfig) -> Self {
        let anchor = TimeAnchor::start();
        let simulator = Simulator::new(config, anchor).expect("no log is written to a bad path");
        let driver = simulator.clone();
        tokio::spawn(async move { driver.run().await });
        Self { simulator, anchor }
    }

    fn connect(&self) -> Peer {
        let (io, far_end) = duplex(1 << 20);
        let writes = Writes::default();
        let wire = Wire {
            read: far_end,
            anchor: self.anchor,
            writes: writes.clone(),
        };
        let simulator = self.simulator.clone();
        let served = tokio::spawn(async move { simulator.serve_connection(wire).await });
        Peer { io, writes, served }
    }

    /// Lets time pass up to this many milliseconds after the origin.
    async fn until(&self, millis: u64) {
        let at = self.anchor.instant(MonoTime::ZERO + ms(millis));
        tokio::time::sleep_until(at).await;
    }

    /// The body of one request's answer, after all that is due at this instant.
    async fn ask(&self, request: &str) -> String {
        let mut peer = self.connect();
        peer.say(request).await;
        settle().await;
        peer.text()
    }
}

/// Lets every task do what it can at this instant.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// The client's end of a connection.
struct Peer {
    io: DuplexStream,
    writes: Writes,
    served: JoinHandle<()>,
}

impl Peer {
    async fn say(&mut self, text: &str) {
        let said = self.io.write_all(text.as_bytes()).await;
        said.expect("the pipe has room");
    }

    /// All that was written, by instant in milliseconds.
    fn writes(&self) -> Vec<(u64, String)> {
        self.writes.0.lock().expect("no test panics inside").clone()
    }

    fn text(&self) -> String {
        self.writes().into_iter().map(|(_, text)| text).collect()
    }

    fn is_closed(&self) -> bool {
        self.served.is_finished()
    }
}

#[derive(Debug, Clone, Default)]
struct Writes(Arc<Mutex<Vec<(u64, String)>>>);

/// The server's end: reads from the pipe, keeps each write.
struct Wire {
    read: DuplexStream,
    anchor: TimeAnchor,
    writes: Writes,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let nanos = self.anchor.now().as_nanos();
        assert_eq!(nanos % 1_000_000, 0, "an instant between milliseconds");
        let text = String::from_utf8(bytes.to_vec()).expect("all answers are text");
        let mut writes = self.writes.0.lock().expect("no test panics inside");
        writes.push((nanos / 1_000_000, text));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A POST with its length.
fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: sim\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: sim\r\n\r\n")
}

/// A chat request for a fixed number of tokens; `more` are further fields, each after a comma.
fn chat(tokens: u32, more: &str) -> String {
    post(
        "/v1/chat/completions",
        &format!(
            r#"{{"model":"sim/canary-0.6b","messages":[{{"role":"user","content":"one two three"}}],"max_tokens":{tokens},"ignore_eos":true{more}}}"#
        ),
    )
}

fn streamed(tokens: u32) -> String {
    chat(tokens, r#","stream":true"#)
}
