//! `trace`: what its commands share: which file, in which format, and what is done with bad rows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{Exit, say, trace_analyze};
use crate::load::trace::{
    Detected, Encoding, Format, Kind, ReadOptions, RowError, Rows, Source, TraceRow,
};

/// Arguments of `trace`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// What a trace is like: lengths, arrivals, sessions, and what a prefix cache could serve.
    Analyze(trace_analyze::Args),
}

/// A trace to read.
#[derive(Debug, clap::Args)]
pub(super) struct Input {
    /// Trace file, also packed with gzip or zstd; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the file, by its own name or that of `--custom-dataset-type` of AIPerf [default:
    /// what the first row shows].
    #[arg(long, visible_alias = "custom-dataset-type", value_name = "NAME")]
    format: Option<String>,
    /// Tokens of a block [default: what the file says, or 512 for Mooncake, 16 for Bailian, 64 for
    /// others].
    #[arg(long, visible_alias = "isl-block-size", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    block_size: Option<u32>,
    /// Lists of block ids may cover the beginning of a prompt only.
    #[arg(long)]
    prefix_hashes: bool,
    /// Pass over rows that cannot be used; count them, and list the first of them.
    #[arg(long)]
    skip_bad_rows: bool,
}

/// Bad rows that are listed.
const LISTED: u64 = 20;

/// An open trace.
pub(super) struct Trace {
    pub(super) name: String,
    pub(super) detected: Detected,
    pub(super) encoding: Encoding,
    pub(super) bad_rows: u64,
    rows: Reading,
    skip: bool,
}

/// A reader of any file.
type Reading = Rows<Box<dyn BufRead + Send>>;

/// What the person who gave the file has to change, in words.
pub(super) type Unusable = String;

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let ended = match &args.command {
        TraceCommand::Analyze(args) => trace_analyze::run(args)?,
    };
    Ok(ended.unwrap_or_else(|unusable| {
        say(&unusable);
        Exit::Usage
    }))
}

impl Input {
    /// Opens the file and finds out what it is.
    pub(super) fn open(&self) -> Result<Trace, Unusable> {
        let name = self.name();
        let unreadable =
            |error: io::Error| format!("{name}: {error}\n  wanted: a trace file that can be read");
        let source = open_file(&self.file)
            .and_then(Source::open)
            .map_err(unreadable)?;
        let detected = self.detect(&name, &source)?;
        let format = detected.format;
        if format.kind() == Kind::Prompts {
            return Err(format!(
                "{name}: `{}`: {}\n  wanted: a trace, which has times or numbers of tokens\n  hint: this is a set of prompts; if it is not, name the format with `--format`",
                format.name(),
                detected.reason,
            ));
        }
        let mut options = ReadOptions::of(format);
        options.block_tokens = self.block_size.unwrap_or(options.block_tokens);
        options.prefix_hashes = self.prefix_hashes;
        let encoding = source.encoding();
        let rows = if format == Format::Baseten {
            self.parquet(options, &name)?
        } else {
            let reader: Box<dyn BufRead + Send> = Box::new(source.into_reader());
            Rows::open(format, options, reader, name.as_str())
                .map_err(|error| format!("{name}: {error}"))?
        };
        Ok(Trace {
            rows,
            name,
            detected,
            encoding,
            bad_rows: 0,
            skip: self.skip_bad_rows,
        })
    }

    /// A Parquet file is read from its end, so it is opened as a file and not as a stream.
    #[cfg(feature = "parquet")]
    fn parquet(&self, options: ReadOptions, name: &str) -> Result<Reading, Unusable> {
        let file = File::open(&self.file)
            .map_err(|error| format!("{name}: {error}\n  wanted: a Parquet file on disk"))?;
        Rows::parquet(options, file, name)
            .map_err(|error| format!("{name}: {error}\n  hint: Parquet is read in Baseten's layout"))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self, _: ReadOptions, name: &str) -> Result<Reading, Unusable> {
        Err(format!(
            "{name}: Parquet\n  wanted: another format; this program was built without the feature `parquet`"
        ))
    }

    fn name(&self) -> String {
        if self.file == Path::new("-") {
            "(standard input)".to_owned()
        } else {
            self.file.display().to_string()
        }
    }

    fn detect(&self, name: &str, source: &Source) -> Result<Detected, Unusable> {
        let Some(given) = &self.format else {
            return Format::detect(source.head()).map_err(|found| {
                format!(
                    "{name}: {found}\n  wanted: one of {}\n  hint: name it with `--format` if it is one of these",
                    names()
                )
            });
        };
        let format = Format::named(given)
            .ok_or_else(|| format!("--format: `{given}`\n  wanted: one of {}", names()))?;
        Ok(Detected {
            format,
            reason: "as `--format` says".to_owned(),
        })
    }
}

fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}

fn open_file(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    // A quarter of a MB: fewer calls for the same bytes.
    const BUFFER: usize = 256 << 10;
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin())));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("is a directory"));
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
}

impl Trace {
    /// The next good row into `row`; false at the end.
    pub(super) fn read(&mut self, row: &mut TraceRow) -> Result<bool, Unusable> {
        loop {
            match self.rows.read_into(row) {
                Ok(any) => return Ok(any),
                Err(error) if self.skip && error.can_go_on() => self.skipped(&error),
                Err(error) if error.can_go_on() => {
                    return Err(format!(
                        "{error}\n  (`--skip-bad-rows` passes over such rows and counts them)"
                    ));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn skipped(&mut self, error: &RowError) {
        self.bad_rows += 1;
        if self.bad_rows <= LISTED {
            say(&format!("passed over: {error}"));
        } else if self.bad_rows == LISTED + 1 {
            say("passed over: more such rows, which are counted and not listed");
        }
    }
}
