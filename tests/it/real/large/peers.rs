//! Two benchmark clients on one server: what both counted must be equal, and what both timed must
//! be near, at one stream, where nobody is in a hurry.

use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Program, free_address, get, tell, tokencanary};

/// Requests of each client.
pub(super) const REQUESTS: u64 = 10;
/// Tokens of each answer.
pub(super) const TOKENS: u64 = 32;
/// Time to the first token at the server, milliseconds.
const TTFT_MS: f64 = 100.0;
/// Between tokens at the server, milliseconds.
const ITL_MS: f64 = 10.0;
/// Python programs that import a lot, on a busy machine.
pub(super) const LONG: Duration = Duration::from_mins(5);

/// What a client reported, times in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct Reported {
    pub(super) requests: u64,
    /// Mean over requests.
    pub(super) output_tokens: f64,
    pub(super) ttft_p50: f64,
    pub(super) itl_p50: f64,
}

impl fmt::Debug for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests of {} tokens, TTFT {:.2} ms, ITL {:.3} ms",
            self.requests, self.output_tokens, self.ttft_p50, self.itl_p50
        )
    }
}

/// A simulated server of fixed times.
pub(super) struct Server {
    _program: Program,
    pub(super) url: String,
}

impl Server {
    pub(super) async fn start(folder: &Path) -> Self {
        let address = free_address();
        let mut command = tokencanary();
        command.args(["simulate", "--profile", "fixed", "--model", "mock"]);
        command.args(["--ttft", "100ms", "--itl", "10ms"]);
        command.args(["--listen", &address.to_string()]);
        let mut program = Program::start("simulator", folder, &mut command);
        let url = format!("http://{address}");
        let models = format!("{url}/v1/models");
        program
            .until("list of models", LONG, async || get(&models).await)
            .await;
        Self {
            _program: program,
            url,
        }
    }

    /// What our own benchmark reports of it.
    pub(super) async fn benched(&self, folder: &Path) -> Reported {
        let (requests, tokens) = (REQUESTS.to_string(), TOKENS.to_string());
        let mut command = tokencanary();
        command
            .args(["bench", "--url", &self.url, "--artifact-dir", "ours"])
            .args([
                "--request-count",
                &requests,
                "--osl",
                &tokens,
                "--isl",
                "16",
            ])
            .current_dir(folder);
        finish("bench", folder, &mut command).await;
        let summary = json(&folder.join("ours/summary.json"));
        let metric = |name: &str, what: &str| {
            let value = summary["metrics"][name][what].as_f64();
            value.unwrap_or_else(|| panic!("no `{what}` of `{name}` in {summary}"))
        };
        let text = fs::read_to_string(folder.join("ours/requests.jsonl"));
        let text = text.expect("it was written");
        let records = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON lines"));
        let outputs: Vec<f64> = records
            .map(|record| {
                record["tokens"]["output"]
                    .as_f64()
                    .expect("the server says it")
            })
            .collect();
        Reported {
            requests: outputs.len() as u64,
            output_tokens: outputs.iter().sum::<f64>() / count(outputs.len()),
            ttft_p50: metric("ttft", "p50"),
            itl_p50: metric("itl", "p50"),
        }
    }
}

/// The processes that a client started and their own, while it has not ended by itself.
struct Group {
    /// The client, which leads them.
    id: u32,
    ended: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            let group = format!("-{}", self.id);
            // Fails only if all have ended.
            drop(
                Command::new("kill")
                    .args(["-s", "KILL", "--", &group])
                    .status(),
            );
        }
    }
}

/// Runs a command to its end, which must be a good one. If it does not end, all that it started
/// is stopped with it.
pub(super) async fn finish(name: &str, folder: &Path, command: &mut Command) {
    let mut program = Program::start(name, folder, command.process_group(0));
    // Dropped before the program, whose id is the group's as long as it is not waited for.
    let mut group = Group {
        id: program.pid(),
        ended: false,
    };
    let status = program.ended(LONG).await;
    group.ended = true;
    // Status 3 of ours: the machine was late, which a shared one is.
    let fine = status.success() || (name == "bench" && status.code() == Some(3));
    assert!(fine, "{name}: {status:?}: {}", program.stderr());
}

pub(super) fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("it is JSON")
}

#[expect(clippy::cast_precision_loss, reason = "a few requests")]
fn count(n: usize) -> f64 {
    n as f64
}

/// Both counted the same, and neither is far from what the server does. The bounds are those of
/// a machine that does other things too.
pub(super) fn assert_alike(ours: Reported, theirs: Reported) {
    let what = format!("ours {ours:?}; theirs {theirs:?}");
    #[expect(clippy::cast_precision_loss, reason = "a few tokens")]
    let tokens = TOKENS as f64;
    for reported in [ours, theirs] {
        assert_eq!(reported.requests, REQUESTS, "{what}");
        assert!((reported.output_tokens - tokens).abs() < 1e-9, "{what}");
        assert!(reported.ttft_p50 >= TTFT_MS, "{what}");
        assert!((reported.itl_p50 - ITL_MS).abs() < 1.0, "{what}");
    }
    tell(&format!("at 1 stream, {TTFT_MS} and {ITL_MS} ms: {what}"));
    assert!(ours.ttft_p50 <= TTFT_MS + 20.0, "{what}");
    assert!(ours.ttft_p50 <= theirs.ttft_p50 + 5.0, "{what}");
}
