//! The simulated server in a process of its own, and its log of when it wrote.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::{ITL, TTFT};

const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    log: PathBuf,
}

impl Server {
    pub(crate) async fn start(binary: &Path) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let name = format!(
            "tokencanary-times-{}-{}.jsonl",
            std::process::id(),
            address.port()
        );
        let log = std::env::temp_dir().join(name);
        let mut command = Command::new(binary);
        command.args(["simulate", "--profile", "fixed"]);
        command.args(["--ttft", &format!("{}ms", TTFT.as_millis())]);
        command.args(["--itl", &format!("{}ms", ITL.as_millis())]);
        command.args(["--listen", &address.to_string()]);
        command.arg("--log-times").arg(&log);
        command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let child = command.spawn().expect("the binary was built");
        let listening = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, listening)
            .await
            .expect("the server listens soon");
        Self {
            address,
            child,
            log,
        }
    }

    /// Ends the server and reads its log.
    pub(crate) async fn stop(mut self) -> WriteTimes {
        let pid = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(told.expect("`kill` is on every Unix").success());
        timeout(SOON, self.child.wait())
            .await
            .expect("it ends soon")
            .expect("it is ours");
        let text = std::fs::read_to_string(&self.log).expect("the log was written");
        std::fs::remove_file(&self.log).expect("the log is ours");
        WriteTimes::read(&text)
    }
}

/// Load of another process on the same server, whose results nobody reads.
pub(crate) struct Neighbours(Option<(Child, PathBuf)>);

impl Neighbours {
    pub(crate) fn start(binary: &Path, address: SocketAddr, streams: usize) -> Self {
        if streams == 0 {
            return Self(None);
        }
        let name = format!("tokencanary-neighbours-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let mut command = Command::new(binary);
        command.args(["bench", "--ui", "none", "--isl", "16", "--osl", "128"]);
        command.args(["--concurrency", &streams.to_string()]);
        command.args(["--benchmark-duration", "600", "--url", &address.to_string()]);
        command.arg("--artifact-dir").arg(&dir);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("the binary was built");
        Self(Some((child, dir)))
    }

    pub(crate) async fn stop(self) {
        if let Some((mut child, dir)) = self.0 {
            child.kill().await.expect("it is ours");
            std::fs::remove_dir_all(dir).expect("the folder is ours");
        }
    }
}

/// When the server had read each request, and when it wrote its first and last token.
pub(crate) struct WriteTimes(HashMap<String, Times>);

#[derive(Clone, Copy, Default)]
struct Times {
    read_ns: u64,
    first_ns: u64,
    last_ns: u64,
    tokens: u32,
}

impl WriteTimes {
    fn read(text: &str) -> Self {
        let mut requests = HashMap::<String, Times>::new();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
            let (Some(request), Some(kind), Some(ns)) = (
                line["request"].as_str(),
                line["kind"].as_str(),
                line["mono_ns"].as_u64(),
            ) else {
                continue;
            };
            let times = requests.entry(request.to_owned()).or_default();
            match kind {
                "read" => times.read_ns = ns,
                "token" => {
                    if times.tokens == 0 {
                        times.first_ns = ns;
                    }
                    times.last_ns = ns;
                    times.tokens += 1;
                }
                _ => {}
            }
        }
        Self(requests)
    }

    /// From the read of `request` to the write of its first token, microseconds.
    pub(crate) fn ttft_us(&self, request: &str) -> f64 {
        let times = self.0[request];
        Duration::from_nanos(times.first_ns - times.read_ns).as_secs_f64() * 1e6
    }

    /// Mean time between the tokens of `request` at the server, microseconds.
    pub(crate) fn itl_us(&self, request: &str) -> f64 {
        let times = self.0[request];
        let span = Duration::from_nanos(times.last_ns - times.first_ns);
        span.as_secs_f64() * 1e6 / f64::from(times.tokens - 1)
    }
}
