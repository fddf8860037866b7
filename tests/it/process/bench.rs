//! `bench`: a table and two files that agree with each other, whatever the server does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::setting::{
    Finished, SOON, Simulated, Untouched, assert_whole, finish, finish_command, having, lines,
};
use crate::program::{Program, free_address, scratch, tokencanary};

/// Each record pairs both clocks anew, so wall times of two records are this exact, in
/// nanoseconds, even where a busy machine comes in between the two readings.
const SLACK: u64 = 5_000_000;

/// A short benchmark of `url` whose files go to `out` in `folder`; `more` are flags.
async fn bench(folder: &Path, url: &str, more: &[&str]) -> Finished {
    let first = ["bench", "--url", url, "--artifact-dir", "out"];
    finish(folder, &[&first[..], more].concat()).await
}

/// It ended well; on a busy machine it may doubt its own timing, and nothing else.
fn assert_fine(told: &Finished) {
    let doubted = told.code == Some(3) && told.stderr.contains("this machine was late for");
    assert!(told.code == Some(0) || doubted, "{told:?}");
}

fn requests(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out/requests.jsonl"));
    let mut records = lines(&text.expect("it was written"));
    records.sort_by_key(|record| record["sequence"].as_u64());
    records
}

fn summary(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("out/summary.json"));
    serde_json::from_str(&text.expect("it was written")).expect("it is JSON")
}

/// Asserts that both files tell of the same requests, `n` of them if that is known.
fn assert_files_agree(folder: &Path, n: Option<usize>) {
    let (records, summary) = (requests(folder), summary(folder));
    assert_eq!(summary["schema"], "tokencanary.summary/1");
    assert_eq!(summary["records"], records.len(), "{summary}");
    if let Some(n) = n {
        assert_eq!(records.len(), n);
    }
    assert_whole(&records);
    let mut outcomes = BTreeMap::new();
    for record in &records {
        let outcome = record["outcome"].as_str().expect("a name").to_owned();
        *outcomes.entry(outcome).or_insert(0_u64) += 1;
    }
    let told: BTreeMap<String, u64> =
        serde_json::from_value(summary["outcomes"].clone()).expect("names and counts");
    assert_eq!(told, outcomes);
}

#[tokio::test]
async fn the_table_the_records_and_the_summary_agree() {
    let folder = scratch("bench");
    let server = Simulated::start(&folder).await;
    let flags = "--request-count 12 --concurrency 3 --isl 20 --osl 5 --random-seed 9";
    let flags: Vec<&str> = flags.split(' ').collect();
    // The second run into the same directory replaces the first.
    for earlier in [0, 1] {
        let told = bench(&folder, &server.url, &flags).await;
        assert_fine(&told);
        let replaced = told.stderr.matches("of an earlier run").count();
        assert_eq!(replaced, earlier * 2, "{}", told.stderr);
        for part in ["TTFT (ms)", "ITL (ms)", "p99", "own lag", "12: ok 12"] {
            assert!(told.stdout.contains(part), "no `{part}` in {}", told.stdout);
        }
        assert!(told.stderr.contains("seed 9\n"), "{}", told.stderr);
        assert_files_agree(&folder, Some(12));
    }
    let records = requests(&folder);
    for record in &records {
        assert_eq!(record["model"], "sim/model", "the only one served");
        assert_eq!(record["tokens"]["requested_input"], 20);
        assert_eq!(record["tokens"]["requested_output"], 5);
        assert_eq!(record["tokens"]["output"], 5);
    }
    let summary = summary(&folder);
    assert_eq!(summary["run"]["seed"], 9);
    assert_eq!(summary["metrics"]["ttft"]["count"], 12);
    // The server gives its first token after 20 ms and never sooner.
    let least = summary["metrics"]["ttft"]["min"].as_f64();
    assert!(least >= Some(20.0), "{least:?}");
}

#[tokio::test]
async fn json_is_all_there_is_on_stdout() {
    let folder = scratch("bench_json");
    let server = Simulated::start(&folder).await;
    let flags = ["--request-count", "2", "--osl", "2", "--output", "json"];
    let told = bench(&folder, &server.url, &flags).await;
    assert_fine(&told);
    let printed: Value = serde_json::from_str(&told.stdout).expect("one object");
    assert_eq!(printed, summary(&folder));
}

#[tokio::test]
async fn without_a_directory_it_is_named_after_model_and_load() {
    let folder = scratch("bench_default");
    let server = Simulated::start(&folder).await;
    let address = server.url.trim_start_matches("http://");
    let arguments = ["bench", "-u", address, "--request-count", "1", "--osl", "2"];
    let told = finish(&folder, &arguments).await;
    assert_fine(&told);
    let dir = folder.join("artifacts/sim_model-chat-concurrency1");
    assert!(dir.join("requests.jsonl").is_file());
    assert!(dir.join("summary.json").is_file());
}

#[tokio::test]
async fn a_duration_and_a_rate_say_when_requests_are_due() {
    let folder = scratch("bench_rate");
    let server = Simulated::start(&folder).await;
    let flags = "--request-rate 10 --arrival-pattern constant --benchmark-duration 2 --osl 2";
    let flags: Vec<&str> = flags.split(' ').collect();
    let told = bench(&folder, &server.url, &flags).await;
    assert_fine(&told);
    // Due times are the schedule's, however busy the machine is: 2 s of 10/s.
    assert_files_agree(&folder, Some(20));
    let due: Vec<u64> = requests(&folder)
        .iter()
        .filter_map(|record| record["intended_unix_ns"].as_u64())
        .collect();
    for pair in due.windows(2) {
        let apart = pair[1] - pair[0];
        assert!(apart.abs_diff(100_000_000) < SLACK, "{apart} ns apart");
    }
}

#[tokio::test]
async fn the_same_seed_makes_the_same_arrivals() {
    let folder = scratch("bench_seed");
    let server = Simulated::start(&folder).await;
    let mut runs = Vec::new();
    for seed in ["4", "4", "5"] {
        let flags = "--request-rate 50 --request-count 8 --osl 2 --random-seed";
        let flags: Vec<&str> = flags.split(' ').chain([seed]).collect();
        let told = bench(&folder, &server.url, &flags).await;
        assert_fine(&told);
        let due: Vec<u64> = requests(&folder)
            .iter()
            .filter_map(|record| record["intended_unix_ns"].as_u64())
            .collect();
        let gaps: Vec<u64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        runs.push(gaps);
    }
    assert!(alike(&runs[0], &runs[1]), "{runs:?}");
    assert!(!alike(&runs[0], &runs[2]), "{runs:?}");
}

/// Whether two runs had the same times between arrivals.
fn alike(one: &[u64], other: &[u64]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.abs_diff(*other) < SLACK)
}

#[tokio::test]
async fn without_an_answer_the_files_are_written_and_not_trusted() {
    let folder = scratch("bench_nobody");
    let url = free_address().to_string();
    let told = bench(&folder, &url, &["--request-count", "3"]).await;
    assert_eq!(told.code, Some(3), "{told:?}");
    assert_files_agree(&folder, Some(3));
    assert_eq!(having(&requests(&folder), "outcome", "connect"), 3);
    assert!(told.stderr.contains("not to be trusted"), "{}", told.stderr);

    let server = Simulated::start(&folder).await;
    let flags = ["--request-count", "3", "--model", "nope"];
    let told = bench(&folder, &server.url, &flags).await;
    assert_eq!(told.code, Some(3), "{told:?}");
    assert_files_agree(&folder, Some(3));
    assert_eq!(requests(&folder)[0]["http_status"], 404);
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused_before_anything_is_sent() {
    let folder = scratch("bench_usage");
    let server = Untouched::listen();
    let url = server.address().to_string();
    fs::write(folder.join("file"), "").expect("the folder is ours");
    for (flags, part) in [
        (&["--isl", "0"][..], "--isl"),
        (&["--concurrency", "0"], "--concurrency"),
        (&["--request-rate", "nan"], "--request-rate"),
        (&["--benchmark-duration", "2h"], "--benchmark-duration"),
        (&["--endpoint-type", "telepathy"], "--endpoint-type"),
        (&["--nonsense"], "--nonsense"),
        (&["--url", "ftp://x"], "--url"),
    ] {
        let first = ["bench", "--artifact-dir", "out"];
        let told = finish(&folder, &[&first[..], flags].concat()).await;
        assert_eq!(told.code, Some(2), "{flags:?}: {told:?}");
        assert_eq!(told.stdout, "");
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    // `/proc` is there and nobody can make files in it, not even root.
    for dir in ["file/below", "/proc", "/proc/below"] {
        let first = ["bench", "--url", &url, "--artifact-dir", dir];
        let told = finish(&folder, &first).await;
        assert_eq!(told.code, Some(2), "{dir}: {told:?}");
        for part in ["--artifact-dir: ", dir, "wanted: ", "hint: "] {
            assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
        }
    }
    server.check();
}

#[tokio::test]
async fn ctrl_c_in_the_middle_keeps_what_was_measured() {
    let folder = scratch("bench_ctrl_c");
    let server = Simulated::start(&folder).await;
    let mut command = tokencanary();
    command.args(["bench", "--url", &server.url, "--artifact-dir", "out"]);
    command.args(["--request-count", "1000000", "--osl", "2"]);
    let mut program = Program::start("bench", &folder, command.current_dir(&folder));
    let file = folder.join("out/requests.jsonl");
    let written = async || (fs::metadata(&file).ok()?.len() > 0).then_some(());
    program.until("record", SOON, written).await;
    program.signal("INT");
    assert_eq!(program.ended(SOON).await.code(), Some(130));
    assert_files_agree(&folder, None);
    assert!(program.stdout().contains("TTFT (ms)"));
    assert!(
        !program.stderr().contains('\r'),
        "no progress outside a terminal"
    );
}

#[tokio::test]
async fn a_stdout_that_cannot_be_written_is_told_and_one_that_closes_is_not() {
    let folder = scratch("bench_stdout");
    let server = Simulated::start(&folder).await;
    let told = finish_command(through_shell(&folder, &server, "> /dev/full")).await;
    assert_eq!(told.code, Some(4), "{told:?}");
    assert!(told.stderr.contains("standard output"), "{}", told.stderr);
    assert!(!told.stderr.contains("panicked"), "{}", told.stderr);
    assert_files_agree(&folder, Some(2));

    let told = finish_command(through_shell(&folder, &server, "| true")).await;
    assert!(!told.stderr.contains("panicked"), "{}", told.stderr);
    assert_files_agree(&folder, Some(2));
}

#[tokio::test]
async fn records_that_cannot_be_written_are_told_and_not_trusted() {
    let folder = scratch("bench_full");
    let server = Simulated::start(&folder).await;
    // Files may have 16 KiB: the summary fits, thirty records do not.
    let line = "trap '' XFSZ; ulimit -f 32; exec \"$0\" bench --url \"$1\" \
        --request-count 30 --osl 2 --artifact-dir out";
    let told = finish_command(in_shell(&folder, &server, line)).await;
    assert_eq!(told.code, Some(3), "{told:?}");
    let written = requests(&folder).len();
    assert!(written < 30, "the limit had no effect");
    let part = format!("{} of 30 records could not be written", 30 - written);
    assert!(
        told.stderr.contains(&part),
        "no `{part}` in {}",
        told.stderr
    );
    assert_eq!(summary(&folder)["records"], 30);
}

/// A benchmark of two requests whose standard output a shell sends elsewhere.
fn through_shell(folder: &Path, server: &Simulated, rest: &str) -> Command {
    let line = format!("\"$0\" bench --url \"$1\" --request-count 2 --artifact-dir out {rest}");
    in_shell(folder, server, &line)
}

/// What a shell does with `line`, in which `$0` is the program and `$1` the URL of `server`.
fn in_shell(folder: &Path, server: &Simulated, line: &str) -> Command {
    let mut command = Command::new("sh");
    let binary = env!("CARGO_BIN_EXE_tokencanary");
    command.args(["-c", line, binary, &server.url]);
    command.current_dir(folder);
    command
}

#[cfg(unix)]
#[tokio::test]
async fn a_low_limit_of_open_files_costs_concurrency_and_nothing_else() {
    let folder = scratch("bench-files");
    let server = Simulated::start(&folder).await;
    let flags = "--request-count 300 --concurrency 200 --isl 8 --osl 2 --artifact-dir out";
    let line = format!("ulimit -n 100; exec \"$0\" bench --url \"$1\" {flags}");
    let command = in_shell(&folder, &server, &line);
    let told = finish_command(command).await;
    assert_fine(&told);
    assert!(told.stderr.contains("asked=200 room=50"), "{told:?}");
    assert_files_agree(&folder, Some(300));
    let well = requests(&folder)
        .iter()
        .all(|record| record["outcome"] == "ok");
    assert!(well, "{told:?}");
}
