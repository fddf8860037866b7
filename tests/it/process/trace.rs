//! `trace`: files in, tables, JSON and files out, and what is said of bad rows.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::setting::finish;
use crate::program::scratch;

const MOONCAKE: &str = "{\"timestamp\": 0, \"input_length\": 1025, \"output_length\": 10, \"hash_ids\": [0, 1, 2]}\n\
    {\"timestamp\": 1000, \"input_length\": 1536, \"output_length\": 20, \"hash_ids\": [0, 1, 3]}\n\
    {\"timestamp\": 3000, \"input_length\": 512, \"output_length\": 30, \"hash_ids\": [9]}\n";

fn folder(name: &str, files: &[(&str, &[u8])]) -> std::path::PathBuf {
    let folder = scratch(name);
    for (file, content) in files {
        fs::write(folder.join(file), content).expect("scratch can be written");
    }
    folder
}

async fn json(folder: &Path, arguments: &[&str]) -> Value {
    let told = finish(folder, &[arguments, &["--output", "json"]].concat()).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(told.stderr, "");
    serde_json::from_str(&told.stdout).expect("it is JSON")
}

#[tokio::test]
async fn a_trace_is_analysed_as_a_table_and_as_json() {
    let folder = folder("trace-analyze", &[("t.jsonl", MOONCAKE.as_bytes())]);
    let told = finish(
        &folder,
        &["trace", "analyze", "t.jsonl", "--cache-blocks", "2"],
    )
    .await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let words: Vec<&str> = told.stdout.split_whitespace().collect();
    let words = words.join(" ");
    for facts in [
        "format mooncake_trace: first row has input_length, hash_ids",
        "rows 3",
        "prompt tokens 3 1,024.3 512 512 1,025 1,536 1,536 1,536 1,536",
        "requests per second 0.67",
        // Blocks 0 and 1 of the second row: 1,024 of 3,073 tokens, 2 of 7 blocks.
        "served at most, of all prompt tokens 33.32 %",
        "leading blocks seen before, of all blocks 28.57 %",
        "prefix cache, blocks 2",
    ] {
        assert!(words.contains(facts), "{facts}\n{}", told.stdout);
    }
    let value = json(
        &folder,
        &["trace", "analyze", "t.jsonl", "--cache-tokens", "1024"],
    )
    .await;
    assert_eq!(value["schema"], "tokencanary.trace_analysis/1");
    assert_eq!(value["rows"], 3);
    assert_eq!(value["input_tokens"]["p50"], 1_025);
    assert_eq!(value["infinite_cache"]["distinct_blocks"]["value"], 5.0);
    assert_eq!(value["lru_cache"]["cache_blocks"], 2);
    assert!(value["infinite_cache"]["token_share"]["error"].is_null());
}

#[tokio::test]
async fn packed_files_and_standard_input_are_read_as_they_are() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(MOONCAKE.as_bytes())
        .expect("memory can be written");
    let gz = gz.finish().expect("memory can be written");
    let cut = &gz[..gz.len() - 9];
    let zst = zstd::encode_all(MOONCAKE.as_bytes(), 1).expect("memory can be written");
    let folder = folder("trace-packed", &[("a", &gz), ("b", &zst), ("c", cut)]);
    for (file, encoding) in [("a", "gzip"), ("b", "zstd")] {
        let value = json(&folder, &["trace", "analyze", file]).await;
        assert_eq!(
            (value["rows"].as_u64(), &value["encoding"]),
            (Some(3), &encoding.into())
        );
    }
    for skip in [&[][..], &["--skip-bad-rows"]] {
        let told = finish(&folder, &[&["trace", "analyze", "c"], skip].concat()).await;
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
        assert!(
            told.stderr
                .contains("hint: the compressed data ends too early"),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn bad_rows_end_the_command_or_are_listed() {
    let text = format!(
        "{MOONCAKE}{{\"timestamp\":-1,\"input_length\":5}}\n{}",
        "x\n".repeat(30)
    );
    let folder = folder("trace-bad", &[("t.jsonl", text.as_bytes())]);
    let told = finish(&folder, &["trace", "analyze", "t.jsonl"]).await;
    assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        told.stderr,
        "t.jsonl:4: timestamp: `-1`\n  wanted: milliseconds of 0 or more\n  (`--skip-bad-rows` passes over such rows and counts them)\n"
    );
    let told = finish(&folder, &["trace", "analyze", "t.jsonl", "--skip-bad-rows"]).await;
    assert_eq!(told.code, Some(0));
    assert!(told.stdout.contains("passed over  31\n"), "{}", told.stdout);
    assert_eq!(
        told.stderr.matches("passed over: t.jsonl:").count(),
        20,
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.ends_with("31 rows were passed over\n"),
        "{}",
        told.stderr
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let sharegpt = b"[{\"id\":\"a\",\"conversations\":[]}]";
    let folder = folder(
        "trace-unknown",
        &[
            ("s", sharegpt),
            ("u", b"a,b\n1,2\n"),
            ("p", b"PAR1PAR1"),
            ("e", b""),
        ],
    );
    for (arguments, wanted) in [
        (
            &["trace", "analyze", "nowhere"][..],
            "nowhere: No such file",
        ),
        (
            &["trace", "analyze", "s"],
            "s: `sharegpt`: a JSON array whose first element has conversations\n  wanted: a trace",
        ),
        (
            &["trace", "analyze", "u"],
            "u: header has the columns a, b, which fits no format\n  wanted: one of mooncake_trace, ",
        ),
        (&["trace", "analyze", "e"], "e: the file is empty\n"),
        (&["trace", "analyze", "p"], "p: "),
        (
            &["trace", "analyze", "u", "--format", "x"],
            "--format: `x`\n  wanted: one of mooncake_trace, ",
        ),
        (
            &["trace", "convert", "u", "o", "--to", "weka"],
            "--to: `weka`\n  wanted: one of mooncake_trace, ",
        ),
        (
            &["trace", "synthesize", "-", "o"],
            "-: standard input\n  wanted: a file",
        ),
        (
            &["trace", "synthesize", "u", "o", "--speedup", "0"],
            "--speedup: `0`\n  wanted: a factor",
        ),
        (&["trace", "analyze", "."], "./p: "),
    ] {
        let told = finish(&folder, arguments).await;
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{told:?}");
        assert!(
            told.stderr.starts_with(wanted),
            "{arguments:?}: {}",
            told.stderr
        );
    }
}

#[tokio::test]
async fn a_converted_trace_says_what_it_lost() {
    let folder = folder("trace-convert", &[("t.jsonl", MOONCAKE.as_bytes())]);
    let told = finish(
        &folder,
        &["trace", "convert", "t.jsonl", "t.csv", "--to", "burst_gpt"],
    )
    .await;
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), ""));
    assert!(
        told.stderr.ends_with(
            "3 rows written as burst_gpt_trace\nnot carried over: ids of blocks (3 rows)\n"
        ),
        "{}",
        told.stderr
    );
    let written = fs::read_to_string(folder.join("t.csv")).expect("it was written");
    assert_eq!(
        written,
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         0,,,,1025,10,1035,API log\n1,,,,1536,20,1556,API log\n3,,,,512,30,542,API log\n"
    );
    let told = finish(
        &folder,
        &["trace", "convert", "t.jsonl", "-", "--to", "minimal"],
    )
    .await;
    assert_eq!(told.stdout.lines().count(), 3, "{told:?}");
    let told = finish(
        &folder,
        &[
            "trace",
            "convert",
            "t.jsonl",
            "./t.jsonl",
            "--to",
            "minimal",
        ],
    )
    .await;
    assert_eq!(told.code, Some(2));
    assert!(told.stderr.contains("is the file that is read"), "{told:?}");
    assert_eq!(
        fs::read_to_string(folder.join("t.jsonl")).expect("untouched"),
        MOONCAKE
    );
}

#[tokio::test]
async fn captures_are_put_in_order() {
    let row = |second: u32| {
        format!(
            "{{\"captureData\":{{\"endpointInput\":{{\"data\":\"{{\\\"messages\\\":[],\\\"max_tokens\\\":5}}\",\"encoding\":\"JSON\"}},\"endpointOutput\":{{\"data\":\"{{\\\"usage\\\":{{\\\"prompt_tokens\\\":{},\\\"completion_tokens\\\":1}}}}\",\"encoding\":\"JSON\"}}}},\"eventMetadata\":{{\"inferenceTime\":\"2026-04-29T00:00:{second:02}Z\"}}}}\n",
            second + 100
        )
    };
    let text = row(7) + &row(5) + &row(6);
    let folder = folder("trace-captures", &[("c.jsonl", text.as_bytes())]);
    let told = finish(
        &folder,
        &["trace", "convert", "c.jsonl", "-", "--to", "mooncake"],
    )
    .await;
    assert_eq!(
        told.stdout,
        "{\"input_length\":105,\"output_length\":1,\"timestamp\":0}\n\
         {\"input_length\":106,\"output_length\":1,\"timestamp\":1000}\n\
         {\"input_length\":107,\"output_length\":1,\"timestamp\":2000}\n",
        "{}",
        told.stderr
    );
}

#[tokio::test]
async fn a_synthesized_trace_is_what_was_asked_for() {
    let folder = folder("trace-synthesize", &[("t.jsonl", MOONCAKE.as_bytes())]);
    let arguments = [
        "trace",
        "synthesize",
        "t.jsonl",
        "-",
        "--speedup",
        "2",
        "--max-isl",
        "1100",
    ];
    let longer = [
        "--prompt-len-multiplier",
        "2",
        "--output-len-multiplier",
        "0.5",
    ];
    let told = finish(&folder, &[&arguments[..], &longer].concat()).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    // 1,024 shared tokens and 2 of its own; the second has become too long.
    assert_eq!(
        told.stdout,
        "{\"hash_ids\":[0,1,11],\"input_length\":1026,\"output_length\":5,\"timestamp\":0}\n\
         {\"hash_ids\":[14,15],\"input_length\":1024,\"output_length\":15,\"timestamp\":1500}\n"
    );
    assert!(
        told.stderr.contains("1 rows were left out"),
        "{}",
        told.stderr
    );
    let again = finish(&folder, &[&arguments[..], &longer].concat()).await;
    assert_eq!(told.stdout, again.stdout);
}

#[tokio::test]
async fn several_files_and_directories_are_one_trace() {
    let rows: Vec<&str> = MOONCAKE.split_inclusive('\n').collect();
    let folder = folder("trace-parts", &[("t.jsonl", MOONCAKE.as_bytes())]);
    let parts = folder.join("parts");
    fs::create_dir(&parts).expect("scratch can be written");
    fs::write(parts.join("1"), rows[0]).expect("scratch can be written");
    let packed = zstd::encode_all(rows[1].as_bytes(), 1).expect("memory can be written");
    fs::write(parts.join("2"), packed).expect("scratch can be written");
    fs::write(folder.join("last"), rows[2]).expect("scratch can be written");
    let whole = json(&folder, &["trace", "analyze", "t.jsonl"]).await;
    let mut of_parts = json(&folder, &["trace", "analyze", "parts", "last"]).await;
    assert_eq!(of_parts["file"], "parts and 1 more");
    assert_eq!(of_parts["encoding"], "plain+zstd");
    for field in ["file", "encoding"] {
        of_parts[field] = whole[field].clone();
    }
    assert_eq!(of_parts, whole);
    for command in [
        &["convert", "parts", "last", "out", "--to", "mooncake"][..],
        &["synthesize", "parts", "last", "out"],
    ] {
        let told = finish(&folder, &[&["trace"], command].concat()).await;
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(
            told.stderr.contains("3 rows written as mooncake"),
            "{told:?}"
        );
    }
    let again = json(&folder, &["trace", "analyze", "out"]).await;
    assert_eq!(again["rows"], 3);
    for (arguments, wanted) in [
        (
            &["analyze", "last", "parts"][..],
            "parts/1: its first row is at 0 s, and the file before it ends at 3 s",
        ),
        (
            &["convert", "parts", "parts/2", "--to", "mooncake"],
            "parts/2: is the file that is read",
        ),
        (
            &["analyze", "parts", "-"],
            "-: standard input\n  wanted: nothing beside it",
        ),
        (&["analyze", "nothing"], "nothing: "),
    ] {
        let told = finish(&folder, &[&["trace"], arguments].concat()).await;
        assert_eq!(told.code, Some(2), "{told:?}");
        assert!(told.stderr.contains(wanted), "{wanted}: {told:?}");
    }
}
