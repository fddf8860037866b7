//! Directories: their files are one data set, in the order of their names.

use std::io::Write;

use super::*;

/// A directory with these files, below the name that tells it from others.
fn folder(files: &[(&str, Vec<u8>)]) -> Given {
    let given = Given::new("");
    std::fs::remove_file(&given.0).expect("it is there");
    std::fs::create_dir(&given.0).expect("nothing is there");
    for (name, content) in files {
        std::fs::write(given.0.join(name), content).expect("it can be written");
    }
    given
}

fn texts(texts: &[&str]) -> Vec<u8> {
    let rows = texts
        .iter()
        .map(|text| format!("{{\"text\": \"{text}\"}}\n"));
    rows.collect::<String>().into_bytes()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(content).expect("memory can be written");
    gz.finish().expect("memory can be written")
}

async fn sent(folder: &Given, flags: &str) -> Played {
    let plan = planned(folder, flags).expect("good flags");
    play(plan, (server(1), Vec::new()))
        .await
        .expect("it begins")
}

/// Why a run of `folder` does not begin.
async fn refused(folder: &Given) -> String {
    let why = match planned(folder, "--request-count 1") {
        Err(why) => why,
        Ok(plan) => match play(plan, (server(1), Vec::new())).await {
            Ok(_) => panic!("it ran"),
            Err(why) => why.to_string(),
        },
    };
    why.replace(folder.path(), "DIR")
}

#[tokio::test(start_paused = true)]
async fn files_are_read_in_the_order_of_their_names_however_they_are_packed() {
    let zst = zstd::encode_all(&texts(&["e"])[..], 1).expect("memory can be written");
    let folder = folder(&[
        ("c.jsonl.gz", gzip(&texts(&["d"]))),
        ("b.jsonl", texts(&["c"])),
        ("a.jsonl", texts(&["a", "b"])),
        ("d.jsonl.zst", zst),
        ("ba.jsonl", Vec::new()),
        ("_SUCCESS", b"x".to_vec()),
        (".part.crc", b"x".to_vec()),
    ]);
    let played = sent(&folder, "--request-count 7 --osl 1").await;
    assert_eq!(played.texts(), ["a", "b", "c", "d", "e", "a", "b"]);
    let report = &played.report.files[0];
    assert_eq!((report.wraps, report.bad_rows), (1, 0));
    assert_eq!(report.name, folder.path());
}

fn row(at: u64) -> Vec<u8> {
    let row = format!(
        "{{\"timestamp\": {at}, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": [1]}}\n"
    );
    row.into_bytes()
}

#[tokio::test(start_paused = true)]
async fn a_recording_in_parts_goes_on_from_file_to_file() {
    let parts = folder(&[
        ("part-0", [row(0), row(100)].concat()),
        ("part-1", gzip(&row(200))),
    ]);
    let played = sent(&parts, "").await;
    assert_eq!(played.times(), [0, 100, 200]);
    let texts = played.texts();
    assert_eq!(texts[0], texts[2], "ids are those of the whole recording");
    let back = folder(&[("part-0", row(100)), ("part-1", row(50))]);
    assert_eq!(
        refused(&back).await,
        "DIR/part-1: its first row is at 0.05 s, and the file before it ends at 0.1 s\n  wanted: parts of one recording, whose times go on in the order of their names"
    );
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_file() {
    let other = folder(&[("a", texts(&["a"])), ("b", row(1))]);
    let why = refused(&other).await;
    assert!(why.starts_with("DIR/b: `mooncake_trace`: "), "{why}");
    assert!(
        why.contains("wanted: `single_turn`, as the file before it"),
        "{why}"
    );
    let bad = folder(&[("a", texts(&["a"])), ("b", b"{\"texd\": \"b\"}\n".to_vec())]);
    let why = refused(&bad).await;
    assert!(why.starts_with("DIR/b:"), "{why}");
    let nested = folder(&[("a", texts(&["a"]))]);
    std::fs::create_dir(nested.0.join("more")).expect("nothing is there");
    let why = refused(&nested).await;
    let expected = "--input-file: DIR/more: is a directory\n  wanted: only files in `DIR`";
    assert_eq!(why, expected);
    let empty = folder(&[("_SUCCESS", Vec::new())]);
    let why = refused(&empty).await;
    assert!(
        why.contains("a directory without a file that is not empty"),
        "{why}"
    );
}

/// A Parquet file in Baseten's layout, of rows `(Unix ms, prompt tokens)`.
#[cfg(feature = "parquet")]
fn parquet(rows: &[(i64, i64)]) -> Vec<u8> {
    use ::parquet::data_type::Int64Type;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    let schema = "message schema { REQUIRED INT64 timestamp_start_unix_ms; REQUIRED INT64 input_tokens; REQUIRED INT64 output_tokens; }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = Arc::new(WriterProperties::builder().build());
    let mut bytes = Vec::new();
    let writer = SerializedFileWriter::new(&mut bytes, schema, properties);
    let mut writer = writer.expect("memory can be written");
    let mut group = writer.next_row_group().expect("memory can be written");
    let ones = vec![1; rows.len()];
    let (times, lengths): (Vec<i64>, Vec<i64>) = rows.iter().copied().unzip();
    for values in [times, lengths, ones] {
        let column = group.next_column().expect("memory can be written");
        let mut column = column.expect("there are three");
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&values, None, None).expect("writable");
        column.close().expect("writable");
    }
    group.close().expect("writable");
    writer.close().expect("writable");
    bytes
}

#[cfg(feature = "parquet")]
#[tokio::test(start_paused = true)]
async fn parquet_files_of_a_directory_are_put_in_order() {
    let parts = folder(&[
        ("a.parquet", parquet(&[(1_700_000_003_000, 7)])),
        (
            "b.parquet",
            parquet(&[(1_700_000_001_000, 5), (1_700_000_002_000, 6)]),
        ),
    ]);
    let played = sent(&parts, "").await;
    assert_eq!(played.times(), [0, 1_000, 2_000]);
    assert_eq!(played.counts(), [5, 6, 7]);
}
