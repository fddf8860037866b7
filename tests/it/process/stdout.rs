//! A standard output that takes nothing, and one that has seen enough: every command that prints a
//! result ends in the same way.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::setting::{Finished, Simulated, finish_command};
use crate::program::scratch;

const TRACE: &str =
    "{\"timestamp\": 0, \"input_length\": 1025, \"output_length\": 10, \"hash_ids\": [0, 1, 2]}\n";

/// Runs the binary with `arguments` in `folder` through a shell that ends its line with `to`.
async fn into(folder: &Path, to: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    let line = format!("\"$0\" \"$@\" {to}");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_tokencanary")]);
    command.args(arguments).current_dir(folder);
    finish_command(command).await
}

#[tokio::test]
async fn a_result_that_finds_no_place_is_an_error_and_a_reader_that_has_seen_enough_is_none() {
    let folder = scratch("stdout_full");
    let server = Simulated::start(&folder).await;
    let url = &*server.url;
    fs::write(folder.join("t.jsonl"), TRACE).expect("the folder is ours");
    let config = format!(
        "targets: [{{ name: a, url: '{url}' }}]
probes:
  - name: p
    targets: [a]
    arrivals: {{ process: constant, rate: 1/s }}
    workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 4 }} }}
governor: {{ requests_per_day: 100000, tokens_per_day: 10M, in_flight: 4 }}
"
    );
    fs::write(folder.join("c.yaml"), config).expect("the folder is ours");
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["init", "--url", url, "-o", "-"],
        &["check", "-c", "c.yaml"],
        &["check", "-c", "c.yaml", "--output", "json"],
        &["generate", "schema"],
        &["generate", "metrics-reference"],
        &["generate", "rules", "-c", "c.yaml"],
        &["generate", "dashboards", "overview"],
        &["trace", "analyze", "t.jsonl"],
        &["trace", "analyze", "t.jsonl", "--output", "json"],
        &["trace", "convert", "t.jsonl", "-", "--to", "minimal"],
        &["trace", "synthesize", "t.jsonl", "-"],
        &["bench", "--url", url, "--request-count", "2", "--osl", "2"],
        &[
            "bench",
            "--url",
            url,
            "--request-count",
            "2",
            "--osl",
            "2",
            "--output",
            "json",
        ],
    ] {
        let told = into(&folder, "> /dev/full", arguments).await;
        assert_eq!(told.code, Some(4), "{arguments:?}: {told:?}");
        let said = "error: standard output cannot be written: ";
        assert!(told.stderr.contains(said), "{arguments:?}: {told:?}");
        // The shell ends as the last of the line, which has read nothing.
        let told = into(&folder, "| true", arguments).await;
        let is_quiet = !told.stderr.contains("panicked") && !told.stderr.contains("error:");
        assert!(is_quiet, "{arguments:?}: {told:?}");
    }
}
