//! What the process tests are set in: a simulated server, a daemon, commands that end by
//! themselves, and the files and pages they leave.
//!
//! Whatever listens picks its own port and says which, so that tests can run side by side.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::program::{Program, get, http_client, tokencanary};

/// Long enough for anything that should happen soon, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// A simulated server in a process of its own.
pub(super) struct Simulated {
    /// `http://` and its address.
    pub(super) url: String,
    program: Program,
}

impl Simulated {
    /// Starts one that gives the first token after 20 ms and more every 2 ms, on any port.
    pub(super) async fn start(folder: &Path) -> Self {
        Self::on(folder, "127.0.0.1:0").await
    }

    /// The same on `address`.
    pub(super) async fn on(folder: &Path, address: &str) -> Self {
        let mut command = tokencanary();
        command.args(["simulate", "--profile", "fixed", "--ttft", "20ms"]);
        command.args(["--itl", "2ms", "--model", "sim/model", "--listen", address]);
        let mut program = Program::start("simulator", folder, &mut command);
        let url = said(&mut program, "listening on ").await;
        Self { url, program }
    }

    /// Switches a fault on, as `{"fault":"hang","for":"60s"}`.
    pub(super) async fn fault(&self, fault: &str) {
        post(&format!("{}/sim/faults", self.url), fault).await;
    }

    /// Its number, while it is there.
    #[cfg(target_os = "linux")]
    pub(super) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Ends it at once, as a crash would.
    pub(super) async fn kill(mut self) {
        self.program.signal("KILL");
        self.program.ended(SOON).await;
    }
}

/// Posts `body` and expects success.
pub(super) async fn post(url: &str, body: &str) {
    let client = http_client().timeout(SOON).build();
    let answer = client
        .expect("the options are fixed")
        .post(url)
        .body(body.to_owned())
        .send();
    let answer = answer.await.expect("it answers");
    assert!(answer.status().is_success(), "{url}: {}", answer.status());
}

/// Waits until `program` says a line with `before` in it, and gives what comes next, up to a
/// blank.
pub(crate) async fn said(program: &mut Program, before: &str) -> String {
    let file = program.stdout_file().with_extension("err");
    let look = async || {
        let text = fs::read_to_string(&file).ok()?;
        let (_, rest) = text.split_once(before)?;
        let (word, _) = rest.split_once([' ', '\n'])?;
        Some(word.to_owned())
    };
    program.until(&format!("`{before}`"), SOON, look).await
}

/// A daemon with its page on a port of its own choice.
pub(crate) struct Daemon {
    pub(crate) program: Program,
    /// `http://`, its address and `/`.
    pub(crate) page: String,
}

impl Daemon {
    /// Starts `run` on the configuration `text`.
    pub(crate) async fn start(folder: &Path, text: &str) -> Self {
        let file = folder.join("canary.yaml");
        fs::write(&file, text).expect("the folder is ours");
        let mut command = tokencanary();
        command.args(["run", "--listen", "127.0.0.1:0", "-c"]);
        let mut program = Program::start("canary", folder, command.arg(&file));
        let page = said(&mut program, "page and metrics on ").await;
        Self { program, page }
    }

    /// Waits until the counter `name`, over all series with `label` in them, is at least
    /// `least`; gives its value.
    pub(crate) async fn counted(&mut self, (name, label): (&str, &str), least: u64) -> u64 {
        let url = format!("{}metrics", self.page);
        let what = format!("{least} in `{name}` with `{label}`");
        let look = async || {
            let count = counter(&get(&url).await?, name, label);
            (count >= least).then_some(count)
        };
        self.program.until(&what, SOON, look).await
    }
}

/// The sum of the series of `name` on a text page that have `label` in them.
pub(crate) fn counter(page: &str, name: &str, label: &str) -> u64 {
    page.lines()
        .filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let labelled = rest.starts_with('{') || rest.starts_with(' ');
            (labelled && rest.contains(label))
                .then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())
                .flatten()
        })
        .map(|value| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let count = value as u64;
            count
        })
        .sum()
}

/// How a command that ends by itself ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary in `folder` with `arguments` to its end, at most a minute.
pub(crate) async fn finish(folder: &Path, arguments: &[&str]) -> Finished {
    let mut command = tokencanary();
    command.args(arguments).current_dir(folder);
    finish_command(command).await
}

/// The same for a command that is made already.
pub(super) async fn finish_command(command: Command) -> Finished {
    let words = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    let output = timeout(SOON, command.kill_on_drop(true).output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("no end within {SOON:?}: {words}"))
        .expect("the binary is built");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("all output is text");
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The records in the files of `dir`, in order of their sequence numbers.
pub(super) fn records(dir: &Path) -> Vec<Value> {
    let files = fs::read_dir(dir).expect("the directory was made");
    let mut records: Vec<Value> = files
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .flat_map(|path| lines(&fs::read_to_string(path).expect("it is text")))
        .collect();
    records.sort_by_key(|record| record["sequence"].as_u64());
    records
}

/// Whether `record` is of a good answer whose tokens came one after the other: on a busy machine
/// all of a short one can come in one read, which is in no histogram of single tokens.
pub(crate) fn shows_tokens(record: &Value) -> bool {
    let notes = record["notes"].as_array();
    let is_buffered = notes.is_some_and(|notes| notes.iter().any(|note| note == "buffered"));
    record["outcome"] == "ok" && !is_buffered
}

/// Each line as JSON; the last one is ended, too.
pub(super) fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// How many `records` have `value` at `key`.
pub(super) fn having(records: &[Value], key: &str, value: &str) -> usize {
    records.iter().filter(|record| record[key] == value).count()
}

/// Asserts that the sequence numbers are 0, 1, 2, … without a hole.
pub(super) fn assert_whole(records: &[Value]) {
    for (expected, record) in (0_u64..).zip(records) {
        assert_eq!(record["sequence"], expected, "a hole or a double");
    }
}

/// A port that is listened on, where nobody should call.
pub(super) struct Untouched(TcpListener);

impl Untouched {
    pub(super) fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        listener.set_nonblocking(true).expect("a socket can");
        Self(listener)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it is bound")
    }

    /// Asserts that nobody has called.
    pub(super) fn check(&self) {
        let called = self.0.accept().map(|(_, from)| from);
        let error = called.expect_err("nothing may be sent");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
