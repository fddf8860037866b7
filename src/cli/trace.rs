//! `trace`: what its commands share: which file, in which format, and what is done with bad rows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{Exit, say, trace_analyze, trace_convert, trace_synthesize};
use crate::load::trace::{
    Clock, Detected, Encoding, FileIds, Format, Kind, ReadOptions, RowError, Rows, SORTED_IN,
    Sorter, Source, TraceRow,
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
    /// The same trace in another format; says what that format cannot carry.
    Convert(trace_convert::Args),
    /// Another trace made from one: faster, longer, with more or fewer shared prefixes.
    Synthesize(Box<trace_synthesize::Args>),
}

/// A trace to read.
#[derive(Debug, clap::Args)]
pub(super) struct Input {
    /// Trace file, also packed with gzip or zstd; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the file, by our name or that of `--custom-dataset-type` of `aiperf` [default:
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
    pub(super) block_tokens: u32,
    rows: Reading,
    skip: bool,
    list: bool,
}

/// A reader of any file.
type Reading = Rows<Box<dyn BufRead + Send>>;

/// What the person who gave the file has to change, in words.
pub(super) type Unusable = String;

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let ended = match &args.command {
        TraceCommand::Analyze(args) => trace_analyze::run(args)?,
        TraceCommand::Convert(args) => trace_convert::run(args),
        TraceCommand::Synthesize(args) => trace_synthesize::run(args),
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
        let block_tokens = options.block_tokens;
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
            block_tokens,
            skip: self.skip_bad_rows,
            list: true,
        })
    }

    /// A Parquet file is read from its end, so it is opened as a file and not as a stream.
    #[cfg(feature = "parquet")]
    fn parquet(&self, options: ReadOptions, name: &str) -> Result<Reading, Unusable> {
        let file = File::open(&self.file)
            .map_err(|error| format!("{name}: {error}\n  wanted: a Parquet file on disk"))?;
        Rows::parquet(options, file, name).map_err(|error| {
            format!("{name}: {error}\n  hint: Parquet is read in Baseten's layout")
        })
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

    /// Does not list bad rows, which were listed when the file was read before.
    pub(super) fn quietly(mut self) -> Self {
        self.list = false;
        self
    }

    /// All rows in the order of their times, with ids of blocks that are those of the whole file.
    ///
    /// Sessions on clocks of their own are put in order only if `one_clock` is asked for.
    pub(super) fn each_in_order(
        &mut self,
        one_clock: bool,
        mut take: impl FnMut(&mut TraceRow) -> Result<(), Unusable>,
    ) -> Result<(), Unusable> {
        let format = self.detected.format;
        let sorts = match format.clock() {
            Clock::Session => one_clock,
            Clock::Unix => format != Format::Azure,
            Clock::Start => false,
        };
        let mut ids = FileIds::default();
        let mut row = TraceRow::default();
        if !sorts {
            while self.read(&mut row)? {
                ids.widen(&mut row);
                take(&mut row)?;
            }
            return Ok(());
        }
        let mut sorter = Sorter::new(SORTED_IN);
        while self.read(&mut row)? {
            ids.widen(&mut row);
            sorter.push(std::mem::take(&mut row));
            while sorter.is_full()
                && let Some(mut first) = self.first(&mut sorter)?
            {
                take(&mut first)?;
            }
        }
        while let Some(mut first) = self.first(&mut sorter)? {
            take(&mut first)?;
        }
        Ok(())
    }

    fn first(&self, sorter: &mut Sorter) -> Result<Option<TraceRow>, Unusable> {
        sorter.pop().map_err(|late| {
            format!(
                "{}: a row of {} s comes after rows up to {} s\n  wanted: rows that can be put in order within {} MB\n  hint: sort the file by its times first",
                self.name,
                late.at.as_secs_f64(),
                late.after.as_secs_f64(),
                SORTED_IN >> 20,
            )
        })
    }

    fn skipped(&mut self, error: &RowError) {
        self.bad_rows += 1;
        if !self.list {
            return;
        }
        if self.bad_rows <= LISTED {
            say(&format!("passed over: {error}"));
        } else if self.bad_rows == LISTED + 1 {
            say("passed over: more such rows, which are counted and not listed");
        }
    }
}

/// Where a trace is written.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// File to write, not packed; `-` is standard output.
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

/// Standard output. A reader that has seen enough, as `head`, is no error.
struct Piped(BufWriter<io::Stdout>);

impl Write for Piped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

impl Target {
    /// Opens the file for writing, unless it is the one that is read.
    pub(super) fn create(&self, input: &Input) -> Result<Box<dyn Write>, Unusable> {
        if self.out == Path::new("-") {
            return Ok(Box::new(Piped(BufWriter::new(io::stdout()))));
        }
        let name = self.out.display();
        let same = std::fs::canonicalize(&self.out)
            .is_ok_and(|out| std::fs::canonicalize(&input.file).is_ok_and(|file| file == out));
        if same {
            return Err(format!(
                "{name}: is the file that is read\n  wanted: another file to write"
            ));
        }
        let file = File::create(&self.out)
            .map_err(|error| format!("{name}: {error}\n  wanted: a file that can be written"))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// What is said when writing fails.
    pub(super) fn failed(&self, error: &io::Error) -> Unusable {
        format!(
            "{}: {error}\n  wanted: a file that can be written",
            self.out.display()
        )
    }
}

/// The format to write, by its name.
pub(super) fn written(name: &str) -> Result<Format, Unusable> {
    Format::named(name)
        .filter(|format| Format::WRITTEN.contains(format))
        .ok_or_else(|| {
            format!(
                "--to: `{name}`\n  wanted: one of {}",
                Format::WRITTEN.map(Format::name).join(", ")
            )
        })
}

impl Input {
    /// Whether it can be read twice.
    pub(super) fn is_file(&self) -> bool {
        self.file != Path::new("-")
    }
}
