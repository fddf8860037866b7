//! How fast a large trace is analysed, and in how much memory.
//!
//! Writes a Mooncake-like trace of the given size below the target directory, reads it through
//! the same path as `trace analyze`, and prints bytes per second and the most memory the process
//! had. `cargo bench --bench trace -- [MEGABYTES [NEW_BLOCKS_PER_ROW]]`: 2,000 MB and 13 new
//! blocks in each row make ten million different blocks; with 40 the set is sampled.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark prints what it measured in real time"
)]

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokencanary::load::trace::{Analyzer, CacheSize, Format, ReadOptions, Rows, Source, TraceRow};

/// Blocks of a prompt: 300, most of them shared with others of its tree.
const BLOCKS: u64 = 300;
const TREES: u64 = 500;

fn main() -> io::Result<()> {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u64>().ok());
    let megabytes = numbers.next().unwrap_or(2_000);
    let new_blocks = numbers.next().unwrap_or(13).min(BLOCKS);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-trace.jsonl");
    let rows = write(&path, megabytes * 1_000_000, new_blocks)?;
    let bytes = fs::metadata(&path)?.len();
    println!(
        "{:.2} GB, {rows} rows, {BLOCKS} blocks each, {new_blocks} of them new",
        bytes as f64 / 1e9
    );
    for cache in [None, Some(CacheSize::Blocks(100_000))] {
        let (started, busy) = (Instant::now(), cpu_seconds());
        let analysis = analyse(&path, cache)?;
        let (took, busy) = (started.elapsed().as_secs_f64(), cpu_seconds() - busy);
        let ceiling = analysis.infinite_cache.expect("there are blocks");
        let share = ceiling.token_share.expect("there are blocks");
        println!(
            "{:<22} {:>6.0} MB/s, {:>4.0} MB per CPU second   most memory {:>4} MiB   served {:.3} % (± {:?}), {:.0} different blocks, one in {}",
            cache.map_or("infinite cache".to_owned(), |cache| format!(
                "and {cache:?}"
            )),
            bytes as f64 / 1e6 / took,
            bytes as f64 / 1e6 / busy,
            most_memory(),
            share.value * 100.0,
            share.error.map(|error| error * 100.0),
            ceiling.distinct_blocks.expect("counted").value,
            ceiling.sampled_one_in,
        );
    }
    fs::remove_file(&path)
}

fn analyse(
    path: &Path,
    cache: Option<CacheSize>,
) -> io::Result<tokencanary::load::trace::Analysis> {
    let source = Source::open(BufReader::with_capacity(256 << 10, File::open(path)?))?;
    let format = Format::detect(source.head()).expect("a trace").format;
    let options = ReadOptions::of(format);
    let mut rows = Rows::open(format, options, source.into_reader(), "bench").expect("rows");
    let mut analyzer = Analyzer::new(format, cache);
    let mut row = TraceRow::default();
    while rows.read_into(&mut row).map_err(io::Error::other)? {
        analyzer.add(&row);
    }
    Ok(analyzer.finish())
}

/// Rows of trees: the beginning is shared, the end is new.
fn write(path: &Path, bytes: u64, new_blocks: u64) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut written, mut row, mut next) = (0, 0_u64, TREES * BLOCKS);
    let mut line = String::new();
    while written < bytes {
        use std::fmt::Write as _;
        let tree = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = tree % TREES * BLOCKS;
        line.clear();
        write!(
            line,
            "{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}, \"hash_ids\": [",
            row * 7,
            BLOCKS * 512 - tree % 512,
            1 + tree % 800
        )
        .expect("a string");
        for block in 0..BLOCKS {
            let id = if block < BLOCKS - new_blocks {
                first + block
            } else {
                next += 1;
                next
            };
            let comma = if block == 0 { "" } else { ", " };
            write!(line, "{comma}{id}").expect("a string");
        }
        line.push_str("]}\n");
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        row += 1;
    }
    out.flush()?;
    Ok(row)
}

/// CPU time of this process so far, in steps of 10 ms: on a busy machine it says more.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name in brackets; the 12th and 13th from there, in ticks of 10 ms.
    let behind = stat.rsplit(") ").next().unwrap_or_default();
    let fields = behind.split_whitespace().skip(11).take(2);
    fields
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// The most memory this process had so far, in MiB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_024
}
