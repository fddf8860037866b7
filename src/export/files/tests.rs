//! The writer against real directories, whole and broken.

use std::fs;
use std::path::Path;

use super::*;
use crate::export::fixture::{STALL, counters, numbered, settled};
use crate::export::offer;

/// A directory below the system's one for temporary files, gone at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokencanary-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("{}: {error}", self.0.display());
        }
    }
}

fn writing() -> RecordWriting {
    RecordWriting {
        anchor: TimeAnchor::start(),
        stalls: StallRules::new(vec![STALL]),
        gaps: false,
        counters: counters(),
    }
}

/// One run of an exporter over the given sequence numbers.
async fn write(files: RecordFiles, sequences: std::ops::Range<u64>) -> ExportCounters {
    let counters = files.writing.counters.clone();
    let (queue, input) = mpsc::channel(1_000);
    for sequence in sequences {
        offer(&queue, &counters, numbered(sequence));
    }
    drop(queue);
    Box::new(files).run(input, CancellationToken::new()).await;
    assert_eq!(settled(&counters), counters.accepted.get());
    counters
}

/// The sequence numbers in a file; every line must be a whole record.
fn sequences(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).expect("the file is there");
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("a whole object");
            value["sequence"].as_u64().expect("a number")
        })
        .collect()
}

#[tokio::test]
async fn one_file_holds_every_record_in_order_and_goes_on_where_it_ended() {
    let dir = TempDir::new("single");
    let artifacts = dir.0.join("made/by/us");
    let counters = write(RecordFiles::single(artifacts.clone(), writing()), 0..600).await;
    assert_eq!((counters.sent.get(), counters.failed.get()), (600, 0));
    write(RecordFiles::single(artifacts.clone(), writing()), 600..602).await;
    let found = sequences(&artifacts.join("requests.jsonl"));
    assert_eq!(found, (0..602).collect::<Vec<_>>());
}

#[tokio::test]
async fn files_are_rotated_by_size_and_the_oldest_go() {
    let dir = TempDir::new("rotated");
    let config = FilesConfig {
        dir: dir.0.clone(),
        // Two lines of a good 1,400 bytes each.
        max_size: 3_200,
        keep: 2,
    };
    let counters = write(RecordFiles::rotating(&config, writing()), 0..9).await;
    assert_eq!(counters.sent.get(), 9);
    let of = |name: &str| sequences(&dir.0.join(name));
    assert_eq!(of("requests.jsonl"), [8]);
    assert_eq!(of("requests.1.jsonl"), [6, 7]);
    assert_eq!(of("requests.2.jsonl"), [4, 5]);
    assert!(!dir.0.join("requests.3.jsonl").exists());
}

#[tokio::test]
async fn a_line_over_the_limit_has_a_file_of_its_own() {
    let dir = TempDir::new("tiny");
    let config = FilesConfig {
        dir: dir.0.clone(),
        max_size: 10,
        keep: 0,
    };
    let counters = write(RecordFiles::rotating(&config, writing()), 0..3).await;
    assert_eq!(counters.sent.get(), 3);
    assert_eq!(sequences(&dir.0.join("requests.jsonl")), [2]);
    assert_eq!(fs::read_dir(&dir.0).expect("a directory").count(), 1);
}

#[tokio::test]
async fn a_torn_last_line_is_ended_before_the_next_one() {
    let dir = TempDir::new("torn");
    let path = dir.0.join("requests.jsonl");
    fs::write(&path, "{\"schema\":\"tokenca").expect("a file can be written");
    write(RecordFiles::single(dir.0.clone(), writing()), 5..6).await;
    let text = fs::read_to_string(&path).expect("the file is there");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], "{\"schema\":\"tokenca");
    assert!(lines[1].starts_with("{\"schema\":\"tokencanary.request/1\",\"sequence\":5,"));
}

#[tokio::test]
async fn a_directory_that_is_a_file_fails_every_record_and_nothing_else() {
    let dir = TempDir::new("blocked");
    let blocked = dir.0.join("taken");
    fs::write(&blocked, "a file").expect("a file can be written");
    let counters = write(
        RecordFiles::single(blocked.join("below"), writing()),
        0..300,
    )
    .await;
    assert_eq!((counters.sent.get(), counters.failed.get()), (0, 300));
}

#[tokio::test]
async fn a_directory_that_vanishes_is_made_again_and_a_blocked_one_is_tried_again() {
    let dir = TempDir::new("vanishing");
    let place = dir.0.join("records");
    let path = place.join("requests.jsonl");
    let mut files = RecordFiles::single(place.clone(), writing());
    let sent = |lines| Fate {
        sent: lines,
        ..Fate::default()
    };
    assert_eq!(files.write_chunk(b"1\n", 1).await, sent(1));
    fs::remove_dir_all(&place).expect("it can be removed");
    assert_eq!(files.write_chunk(b"2\n", 1).await, sent(1));
    assert_eq!(fs::read_to_string(&path).expect("it is back"), "2\n");

    fs::remove_dir_all(&place).expect("it can be removed");
    fs::write(&place, "in the way").expect("a file can be written");
    let failed = Fate {
        failed: 2,
        ..Fate::default()
    };
    assert_eq!(files.write_chunk(b"3\n4\n", 2).await, failed);
    assert!(files.failing);
    fs::remove_file(&place).expect("it can be removed");
    assert_eq!(files.write_chunk(b"5\n", 1).await, sent(1));
    assert!(!files.failing);
    assert_eq!(fs::read_to_string(&path).expect("it is back"), "5\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_fails_what_does_not_fit_and_is_tried_again() {
    let dir = TempDir::new("full");
    let path = dir.0.join("requests.jsonl");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link can be made");
    let mut files = RecordFiles::single(dir.0.clone(), writing());
    let failed = Fate {
        failed: 1,
        ..Fate::default()
    };
    for _ in 0..3 {
        assert_eq!(files.write_chunk(b"lost\n", 1).await, failed);
    }
    fs::remove_file(&path).expect("it can be removed");
    let sent = Fate {
        sent: 1,
        ..Fate::default()
    };
    assert_eq!(files.write_chunk(b"kept\n", 1).await, sent);
    assert_eq!(fs::read_to_string(&path).expect("it is back"), "kept\n");
}

#[tokio::test]
async fn lines_are_on_disk_within_a_second_of_their_end() {
    let dir = TempDir::new("prompt");
    let path = dir.0.join("requests.jsonl");
    let files = RecordFiles::single(dir.0.clone(), writing());
    let counters = files.writing.counters.clone();
    let (queue, input) = mpsc::channel(10);
    let running = tokio::spawn(Box::new(files).run(input, CancellationToken::new()));
    offer(&queue, &counters, numbered(0));
    let written = async {
        while counters.sent.get() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // The sender is still there: it is the second that ends the batch.
    tokio::time::timeout(Duration::from_secs(10), written)
        .await
        .expect("it is written while the queue is open");
    assert_eq!(sequences(&path), [0]);
    drop(queue);
    running.await.expect("the exporter ends with its input");
}
