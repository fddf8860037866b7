//! Traces and sets of prompts of every format, and the packed files they come in.

use std::io::{BufRead, BufReader, Cursor, Read};

use tokencanary::load::trace::{
    Analyzer, CacheSize, Entries, FileIds, Format, Kind, ReadOptions, RowError, Rows, SharedBlocks,
    Source, Synthesis, Synthesizer, TraceRow, TraceWriter,
};

/// The first letter says which format, in the order of [`Format::ALL`]; the rest is the file.
pub(crate) fn holds(data: &[u8]) {
    let Some((letter, file)) = data.split_first() else {
        return;
    };
    let place = usize::from(letter.wrapping_sub(b'a')) % Format::ALL.len();
    told_apart(file);
    unpacked(file);
    let format = Format::ALL[place];
    match format.kind() {
        // Parquet is read by a library of its own.
        Kind::Trace if format == Format::Baseten => {}
        Kind::Trace => rows_hold(format, file),
        Kind::Prompts => entries_hold(format, file),
    }
}

/// Whatever is said of a file can be printed.
fn told_apart(file: &[u8]) {
    let said = match Format::detect(file) {
        Ok(detected) => detected.reason,
        Err(found) => found,
    };
    assert!(!said.is_empty() && said.len() < 2_000, "{said:?}");
    assert!(!said.chars().any(char::is_control), "{said:?}");
}

/// A packed file ends or fails, and its head is its beginning.
fn unpacked(file: &[u8]) {
    let Ok(source) = Source::open(Cursor::new(file.to_vec())) else {
        return;
    };
    let head = source.head().to_vec();
    let mut all = Vec::new();
    // A bomb is read in bounded memory by whoever reads rows; here a MB is enough.
    let mut reader = source.into_reader().take(1 << 20);
    if reader.read_to_end(&mut all).is_ok() {
        assert!(all.starts_with(&head));
    }
}

fn options(format: Format) -> ReadOptions {
    ReadOptions {
        // Small limits, so that inputs of a few kB reach them.
        longest_line: 1_000,
        block_tokens: 16,
        ..ReadOptions::of(format)
    }
}

/// Every row or what is wrong with it, read through a buffer of `size`.
fn read(format: Format, file: &[u8], size: usize) -> Vec<Result<TraceRow, RowError>> {
    let reader = BufReader::with_capacity(size, file);
    let rows = Rows::open(format, options(format), reader, "f").expect("a format of rows");
    rows.collect()
}

fn rows_hold(format: Format, file: &[u8]) {
    let whole = read(format, file, 4_096);
    for size in [1, 3, 100] {
        let cut = read(format, file, size);
        assert_eq!(format!("{whole:?}"), format!("{cut:?}"), "by {size} bytes");
    }
    // Every row comes from a byte at least, so that a file cannot be read for ever.
    assert!(whole.len() <= file.len());
    let mut analyzer = Analyzer::new(format, Some(CacheSize::Blocks(5)));
    let mut good = Vec::new();
    for row in whole {
        match row {
            Ok(row) => {
                row_holds(&row);
                analyzer.add(&row);
                good.push(row);
            }
            Err(error) => error_holds(&error),
        }
    }
    let analysis = analyzer.finish();
    assert_eq!(analysis.rows, good.len() as u64);
    let caches = [&analysis.infinite_cache, &analysis.lru_cache];
    for share in caches
        .into_iter()
        .flatten()
        .filter_map(|cache| cache.token_share)
    {
        assert!((0.0..=1.0).contains(&share.value), "{share:?}");
    }
    assert!(serde_json::to_string(&analysis).is_ok());
    changed(format, &good);
    for to in Format::WRITTEN {
        written(format, to, &good);
    }
}

fn row_holds(row: &TraceRow) {
    assert!(
        row.input_tokens != Some(0) && row.output_tokens != Some(0),
        "{row:?}"
    );
    if let (Some(input), false) = (row.input_tokens, row.blocks.is_empty()) {
        assert!(row.block_tokens > 0, "{row:?}");
        assert!(
            row.blocks.len() <= input.div_ceil(row.block_tokens) as usize,
            "{row:?}"
        );
    }
    assert!(row.cacheable_blocks() <= row.blocks.len());
}

fn error_holds(error: &RowError) {
    let said = error.to_string();
    assert!(said.starts_with("f:") && said.len() < 4_000, "{said:?}");
    assert!(
        !said.chars().any(|c| c.is_control() && c != '\n'),
        "{said:?}"
    );
}

/// Whatever is written is read again as it was.
fn written(from: Format, to: Format, rows: &[TraceRow]) {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(to, from.clock(), 16, &mut file).expect("it is written");
    let mut kept = Vec::new();
    for row in rows {
        let mut row = row.clone();
        if writer.write(&mut row).is_ok() {
            kept.push(row);
        }
    }
    let (count, _) = writer.finish().expect("memory can be written");
    assert_eq!(count, kept.len() as u64);
    let options = ReadOptions {
        block_tokens: 16,
        prefix_hashes: true,
        ..ReadOptions::of(to)
    };
    let mut again = Rows::open(to, options, &file[..], "f").expect("a format of rows");
    // Captures and sessions may be out of order; there each row is compared that comes.
    for row in kept {
        match again.next() {
            Some(Ok(back)) => {
                assert_eq!(back.input_tokens, row.input_tokens, "{row:?}");
                assert_eq!(back.output_tokens, row.output_tokens, "{row:?}");
                if matches!(to, Format::Mooncake | Format::Bailian) {
                    assert_eq!(back.blocks, row.blocks, "{row:?}");
                }
            }
            Some(Err(error)) => {
                let said = error.to_string();
                assert!(
                    said.contains("timestamp")
                        || said.contains("TIMESTAMP")
                        || said.contains("Timestamp"),
                    "{said}"
                );
            }
            None => panic!("a row is missing: {row:?}"),
        }
    }
    assert!(again.next().is_none());
}

/// Another trace is made without a fault, and rows stay possible.
fn changed(format: Format, rows: &[TraceRow]) {
    let mut ids = FileIds::default();
    let mut rows = rows.to_vec();
    let mut shared = SharedBlocks::default();
    for row in &mut rows {
        ids.widen(row);
        assert!(shared.add(row));
    }
    let how = Synthesis {
        speedup: 3.0,
        prefix_len: 1.5,
        prefix_roots: 2,
        prompt_len: 0.7,
        output_len: 2.0,
        ..Synthesis::default()
    };
    let mut synthesizer = Synthesizer::new(how, shared, format.clock());
    for mut row in rows {
        // A prompt of four billion tokens needs more blocks than a test should make.
        if row.input_tokens.is_some_and(|input| input > 1_000_000) {
            continue;
        }
        assert!(synthesizer.change(&mut row));
        row_holds(&row);
    }
}

fn entries_hold(format: Format, file: &[u8]) {
    let read = |size| {
        let reader = BufReader::with_capacity(size, file);
        entries(format, reader)
    };
    let whole = read(4_096);
    for size in [1, 3, 100] {
        assert_eq!(whole, read(size), "by {size} bytes");
    }
}

fn entries(format: Format, reader: impl BufRead) -> Vec<String> {
    let mut entries = Entries::open(format, 1_000, reader, "f").expect("prompts");
    let mut told = Vec::new();
    for entry in entries.by_ref() {
        match entry {
            Ok(entry) => {
                assert!(!entry.turns.is_empty());
                told.push(format!("{entry:?}"));
            }
            Err(error) => {
                error_holds(&error);
                told.push(error.to_string());
            }
        }
    }
    told.push(format!("{:?}", entries.notes()));
    told
}
