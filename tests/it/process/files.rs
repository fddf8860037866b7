//! `bench` with a file: what it says about it, and how it ends.

use std::fs;

use super::setting::{Finished, Simulated, finish};
use crate::program::scratch;

/// Rows 10 ms apart.
fn trace(rows: usize) -> Vec<String> {
    (0..rows)
        .map(|row| {
            format!(
                "{{\"timestamp\": {}, \"input_length\": 40, \"output_length\": 2, \"hash_ids\": [{row}]}}",
                row * 10
            )
        })
        .collect()
}

async fn bench(name: &str, rows: &[String], flags: &str) -> Finished {
    let folder = scratch(name);
    let server = Simulated::start(&folder).await;
    fs::write(folder.join("trace.jsonl"), rows.join("\n")).expect("a scratch file");
    let first = ["bench", "--url", &server.url, "--artifact-dir", "out"];
    let file = ["--input-file", "trace.jsonl"];
    let more: Vec<&str> = flags.split_whitespace().collect();
    finish(&folder, &[&first[..], &file, &more].concat()).await
}

#[tokio::test]
async fn the_format_is_told_with_its_reason_before_a_trace_is_replayed() {
    let told = bench("files-good", &trace(20), "").await;
    assert!(matches!(told.code, Some(0 | 3)), "{told:?}");
    let expected = "trace.jsonl: mooncake_trace: first row has ";
    assert!(told.stderr.contains(expected), "{}", told.stderr);
    assert!(
        told.stderr.contains("when they were recorded"),
        "{}",
        told.stderr
    );
    assert!(told.stdout.contains("20: ok 20"), "{}", told.stdout);
}

#[tokio::test]
async fn bad_rows_end_it_with_three_and_the_first_ones_with_two() {
    let mut rows = trace(200);
    rows[150] = rows[150].replace("40", "-40");
    let told = bench("files-late", &rows, "").await;
    assert_eq!(told.code, Some(3), "{told:?}");
    for part in [
        "trace.jsonl:151: input_length: `-40`",
        "trace.jsonl: 1 rows could not be used: the numbers are not to be trusted",
    ] {
        assert!(told.stderr.contains(part), "no `{part}` in {}", told.stderr);
    }
    let told = bench("files-skipped", &rows, "--skip-bad-rows").await;
    assert!(
        told.stderr.contains("1 rows passed over"),
        "{}",
        told.stderr
    );
    assert!(
        !told.stderr.contains("could not be used"),
        "{}",
        told.stderr
    );
    rows[1] = "{".to_owned();
    let told = bench("files-early", &rows, "").await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.stderr.contains("trace.jsonl:2: "), "{}", told.stderr);
    let told = bench("files-none", &rows[..0], "").await;
    assert_eq!(told.code, Some(2), "{told:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_costs_no_earlier_result() {
    let folder = scratch("files-kept");
    let server = Simulated::start(&folder).await;
    fs::create_dir(folder.join("out")).expect("a scratch folder");
    fs::write(folder.join("out/summary.json"), "of before").expect("a scratch file");
    fs::write(folder.join("bad.jsonl"), "{\n").expect("a scratch file");
    fs::write(folder.join("bad.tiktoken"), "none\n").expect("a scratch file");
    let first = ["bench", "--url", &server.url, "--artifact-dir", "out"];
    for flags in [
        ["--input-file", "bad.jsonl"],
        ["--tokenizer", "bad.tiktoken"],
    ] {
        let told = finish(&folder, &[&first[..], &flags].concat()).await;
        assert_eq!(told.code, Some(2), "{told:?}");
        let kept = fs::read_to_string(folder.join("out/summary.json"));
        assert_eq!(kept.ok().as_deref(), Some("of before"), "{flags:?}");
    }
}
