//! `trace`: what its commands share: which file, in which format, and what is done with bad rows.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;

use super::{Exit, UNWRITTEN, say, trace_analyze, trace_convert, trace_synthesize};
use crate::app::{not_a_part, parts};
use crate::load::trace::{
    Clock, Detected, FileIds, Format, Kind, ReadOptions, RowError, Rows, SORTED_IN, Sorter, Source,
    TraceRow,
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
    /// Trace file, also packed with gzip or zstd; `-` is standard input. Of several, and of those
    /// in a directory, which are taken in the order of their names, each goes on where the one
    /// before ended.
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
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
    /// What was given.
    pub(super) name: String,
    pub(super) detected: Detected,
    pub(super) bad_rows: u64,
    pub(super) block_tokens: u32,
    /// How its files are packed, as far as they were opened.
    encodings: BTreeSet<&'static str>,
    options: ReadOptions,
    format: Option<String>,
    rows: Reading,
    /// The file that is open, and those after it.
    part: String,
    rest: VecDeque<PathBuf>,
    /// The time of the last row, and whether a file was opened since.
    last: (Option<Duration>, bool),
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
        TraceCommand::Convert(args) => told(trace_convert::run(args))?,
        TraceCommand::Synthesize(args) => told(trace_synthesize::run(args))?,
    };
    Ok(ended.unwrap_or_else(|unusable| {
        say(&unusable);
        Exit::Usage
    }))
}

/// Why a trace was not written.
pub(super) enum Unwritten {
    /// What was given cannot be used.
    Unusable(Unusable),
    /// Standard output takes no more.
    Stdout(io::Error),
}

impl From<Unusable> for Unwritten {
    fn from(unusable: Unusable) -> Self {
        Self::Unusable(unusable)
    }
}

fn told(ended: Result<Exit, Unwritten>) -> anyhow::Result<Result<Exit, Unusable>> {
    match ended {
        Ok(exit) => Ok(Ok(exit)),
        Err(Unwritten::Unusable(unusable)) => Ok(Err(unusable)),
        Err(Unwritten::Stdout(error)) => Err(anyhow::Error::from(error).context(UNWRITTEN)),
    }
}

impl Input {
    /// Opens the file, or the first of several, and finds out what it is.
    pub(super) fn open(&self) -> Result<Trace, Unusable> {
        let mut rest = self.parts()?;
        let first = rest.pop_front().unwrap_or_default();
        let source = opened(&first)?;
        let detected = detect(self.format.as_deref(), &called(&first), &source)?;
        let format = detected.format;
        if format.kind() == Kind::Prompts {
            return Err(format!(
                "{}: `{}`: {}\n  wanted: a trace, which has times or numbers of tokens\n  hint: this is a set of prompts; if it is not, name the format with `--format`",
                called(&first),
                format.name(),
                detected.reason,
            ));
        }
        let mut options = ReadOptions::of(format);
        options.block_tokens = self.block_size.unwrap_or(options.block_tokens);
        options.prefix_hashes = self.prefix_hashes;
        Ok(Trace {
            name: self.name(),
            block_tokens: options.block_tokens,
            encodings: BTreeSet::from([source.encoding().name()]),
            rows: rows(&first, source, (format, options.clone()))?,
            options,
            format: self.format.clone(),
            detected,
            bad_rows: 0,
            part: called(&first),
            rest,
            last: (None, false),
            skip: self.skip_bad_rows,
            list: true,
        })
    }

    /// All files, those of directories among them.
    fn parts(&self) -> Result<VecDeque<PathBuf>, Unusable> {
        if self.files.iter().any(|file| is_input(file)) {
            if self.files.len() > 1 {
                return Err("-: standard input\n  wanted: nothing beside it".to_owned());
            }
            return Ok(self.files.clone().into());
        }
        let all = self.files.iter().map(|file| parts(file));
        all.collect::<Result<Vec<_>, _>>()
            .map(|all| all.into_iter().flatten().collect())
    }

    fn name(&self) -> String {
        let first = self.files.first().map(|file| called(file));
        let first = first.unwrap_or_default();
        match self.files.len().saturating_sub(1) {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    }
}

fn is_input(file: &Path) -> bool {
    file == Path::new("-")
}

/// What `file` is called.
fn called(file: &Path) -> String {
    if is_input(file) {
        "(standard input)".to_owned()
    } else {
        file.display().to_string()
    }
}

fn opened(file: &Path) -> Result<Source, Unusable> {
    open_file(file).and_then(Source::open).map_err(|error| {
        format!(
            "{}: {error}\n  wanted: a trace file that can be read",
            called(file)
        )
    })
}

/// The rows of `file`, of which `source` is what it gives.
fn rows(
    file: &Path,
    source: Source,
    (format, options): (Format, ReadOptions),
) -> Result<Reading, Unusable> {
    let name = called(file);
    if format == Format::Baseten {
        return parquet(file, options, &name);
    }
    let reader: Box<dyn BufRead + Send> = Box::new(source.into_reader());
    Rows::open(format, options, reader, name.as_str()).map_err(|error| format!("{name}: {error}"))
}

/// A Parquet file is read from its end, so it is opened as a file and not as a stream.
#[cfg(feature = "parquet")]
fn parquet(file: &Path, options: ReadOptions, name: &str) -> Result<Reading, Unusable> {
    let file = File::open(file)
        .map_err(|error| format!("{name}: {error}\n  wanted: a Parquet file on disk"))?;
    Rows::parquet(options, file, name)
        .map_err(|error| format!("{name}: {error}\n  hint: Parquet is read in Baseten's layout"))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Path, _: ReadOptions, name: &str) -> Result<Reading, Unusable> {
    Err(format!(
        "{name}: Parquet\n  wanted: another format; this program was built without the feature `parquet`"
    ))
}

fn detect(given: Option<&str>, name: &str, source: &Source) -> Result<Detected, Unusable> {
    let Some(given) = given else {
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
    Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
}

impl Trace {
    /// The next good row into `row`; false at the end.
    pub(super) fn read(&mut self, row: &mut TraceRow) -> Result<bool, Unusable> {
        loop {
            match self.rows.read_into(row) {
                Ok(true) => return self.goes_on(row).map(|()| true),
                Ok(false) => {
                    let Some(part) = self.rest.pop_front() else {
                        return Ok(false);
                    };
                    self.open_next(&part)?;
                }
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

    /// Goes on with the file `part`, which has to be of the same format.
    fn open_next(&mut self, part: &Path) -> Result<(), Unusable> {
        let source = opened(part)?;
        self.part = called(part);
        let found = detect(self.format.as_deref(), &self.part, &source)?;
        let format = self.detected.format;
        if found.format != format {
            return Err(format!(
                "{}: `{}`: {}\n  wanted: `{}`, as the file before it\n  hint: name the format with `--format` if it is the same",
                self.part,
                found.format.name(),
                found.reason,
                format.name(),
            ));
        }
        self.encodings.insert(source.encoding().name());
        self.rows = rows(part, source, (format, self.options.clone()))?;
        self.last.1 = true;
        Ok(())
    }

    /// Whether a file goes on where the one before it ended, where rows are not put in order.
    fn goes_on(&mut self, row: &TraceRow) -> Result<(), Unusable> {
        let format = self.detected.format;
        let is_ordered = format.clock() == Clock::Start || format == Format::Azure;
        let Some(at) = row.at.filter(|_| is_ordered) else {
            return Ok(());
        };
        let (last, follows) = std::mem::replace(&mut self.last, (Some(at), false));
        match last {
            Some(last) if follows && at < last => Err(not_a_part(&self.part, (at, last))),
            _ => Ok(()),
        }
    }

    /// How its files were packed.
    pub(super) fn encoding(&self) -> String {
        let all: Vec<&str> = self.encodings.iter().copied().collect();
        all.join("+")
    }

    /// Does not list bad rows, which were listed when the file was read before.
    pub(super) fn quietly(mut self) -> Self {
        self.list = false;
        self
    }

    /// All rows in the order of their times, with ids of blocks that are those of the whole file.
    ///
    /// Sessions on clocks of their own are put in order only if `one_clock` is asked for.
    pub(super) fn each_in_order<E: From<Unusable>>(
        &mut self,
        one_clock: bool,
        mut take: impl FnMut(&mut TraceRow) -> Result<(), E>,
    ) -> Result<(), E> {
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
        if self.is_stdout() {
            return Ok(Box::new(Piped(BufWriter::new(io::stdout()))));
        }
        let name = self.out.display();
        let same = |out: PathBuf| {
            let read = input.parts()?;
            let mut read = read.iter();
            Ok::<_, Unusable>(
                read.any(|file| std::fs::canonicalize(file).is_ok_and(|file| file == out)),
            )
        };
        if let Ok(out) = std::fs::canonicalize(&self.out)
            && same(out)?
        {
            return Err(format!(
                "{name}: is the file that is read\n  wanted: another file to write"
            ));
        }
        let file = File::create(&self.out)
            .map_err(|error| format!("{name}: {error}\n  wanted: a file that can be written"))?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// What is said when writing fails.
    pub(super) fn failed(&self, error: io::Error) -> Unwritten {
        if self.is_stdout() {
            return Unwritten::Stdout(error);
        }
        Unwritten::Unusable(format!(
            "{}: {error}\n  wanted: a file that can be written",
            self.out.display()
        ))
    }

    fn is_stdout(&self) -> bool {
        self.out == Path::new("-")
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
        !self.files.iter().any(|file| is_input(file))
    }
}
