//! The rows of a trace, one at a time, each checked, with errors that say where.
//!
//! What one row cannot show is checked here: times that go back, and times that jump by a
//! thousand, which is what a file of mixed units looks like. After a bad row reading goes on with
//! the next if the caller asks for it.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::time::Duration;

use super::error::{Fault, RowError};
use super::format::Format;
use super::lines::{Line, Lines};
use super::row::TraceRow;
use super::traces::bailian::Chains;
#[cfg(feature = "parquet")]
use super::traces::baseten;
use super::traces::fields::Fit;
use super::traces::table::Table;
use super::traces::tracelab::Rounds;
use super::traces::{Bad, azure, bailian, burstgpt, mooncake, sagemaker, tracelab, weka};
use super::values::{Place, Value, Values};

/// Whether what was sent is kept in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bodies {
    /// It is passed over.
    #[default]
    Drop,
    /// It is kept.
    Keep,
}

/// How a trace is read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Tokens of a block, where the file does not say itself.
    pub block_tokens: u32,
    /// Lists of ids may cover the head of the prompt only.
    pub prefix_hashes: bool,
    /// What is done with prompts that the file has.
    pub bodies: Bodies,
    /// Longest line, or longest JSON value where one is a whole session, in bytes.
    pub longest_line: usize,
}

impl ReadOptions {
    /// What `format` says of itself.
    #[must_use]
    pub fn of(format: Format) -> Self {
        Self {
            block_tokens: format.block_tokens(),
            prefix_hashes: false,
            bodies: Bodies::Drop,
            longest_line: match format {
                Format::Weka => super::LONGEST_SESSION,
                _ => super::LONGEST_LINE,
            },
        }
    }

    /// How many blocks a prompt may have.
    pub(super) fn fit(&self) -> Fit {
        if self.prefix_hashes {
            Fit::Head
        } else {
            Fit::Whole
        }
    }
}

/// The rows of one trace.
pub struct Rows<R> {
    name: String,
    format: Format,
    options: ReadOptions,
    feed: Feed<R>,
    order: Order,
    ended: bool,
}

/// Where rows come from, with what has to be remembered from row to row.
enum Feed<R> {
    Lines(Lines<R>),
    Bailian(Lines<R>, Box<Chains>),
    TraceLab(Lines<R>, Box<Rounds>),
    Table(Box<Table<R>>),
    /// Sessions, and the rows of the last that were not given yet.
    Sessions(Values<R>, VecDeque<Result<TraceRow, Bad>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<baseten::Parquet>),
}

/// What a feed gives.
enum Fed {
    Row,
    Bad(Bad),
    End,
    Failed(io::Error),
}

impl<R: BufRead> Rows<R> {
    /// Rows of `reader`, which gives the unpacked file; `name` is what errors call it.
    ///
    /// # Errors
    /// If the format has no rows of traces, or is not kept as a text: Parquet is opened with
    /// [`Rows::parquet`].
    pub fn open(
        format: Format,
        options: ReadOptions,
        reader: R,
        name: impl Into<String>,
    ) -> Result<Self, NotARowFormat> {
        let longest = options.longest_line;
        let feed = match format {
            Format::Mooncake | Format::Minimal | Format::SageMaker => {
                Feed::Lines(Lines::new(reader, longest))
            }
            Format::Bailian => Feed::Bailian(Lines::new(reader, longest), Box::default()),
            Format::TraceLab => Feed::TraceLab(Lines::new(reader, longest), Box::default()),
            Format::BurstGpt | Format::Azure => Feed::Table(Box::new(Table::new(reader, longest))),
            Format::Weka => {
                Feed::Sessions(Values::new(reader, Place::Top, longest), VecDeque::new())
            }
            _ => return Err(NotARowFormat(format)),
        };
        Ok(Self::of(format, options, feed, name.into()))
    }

    fn of(format: Format, options: ReadOptions, feed: Feed<R>, name: String) -> Self {
        Self {
            name,
            format,
            options,
            feed,
            order: Order::default(),
            ended: false,
        }
    }

    /// Rows of a Parquet file in the layout of Baseten.
    ///
    /// # Errors
    /// If it is no Parquet file, or has not the columns; in words.
    #[cfg(feature = "parquet")]
    pub fn parquet<C: parquet::file::reader::ChunkReader + 'static>(
        options: ReadOptions,
        file: C,
        name: impl Into<String>,
    ) -> Result<Self, String> {
        let opened = baseten::Parquet::open(file, &options).map_err(|error| error.to_string())?;
        let feed = Feed::Parquet(Box::new(opened));
        Ok(Self::of(Format::Baseten, options, feed, name.into()))
    }

    /// Reads the next row into `row`, whose memory is used again; false at the end.
    ///
    /// # Errors
    /// What is wrong, and where. If [`RowError::can_go_on`], the next call reads the next row;
    /// otherwise there is none.
    pub fn read_into(&mut self, row: &mut TraceRow) -> Result<bool, RowError> {
        row.clear();
        if self.ended {
            return Ok(false);
        }
        match self.feed.next(self.format, &self.options, row) {
            Fed::Row => match self.order.check(self.format, row.at) {
                Ok(()) => Ok(true),
                Err(fault) => Err(self.bad(fault)),
            },
            Fed::Bad(fault) => Err(self.bad(fault)),
            Fed::End => {
                self.ended = true;
                Ok(false)
            }
            Fed::Failed(error) => {
                self.ended = true;
                Err(RowError::File {
                    name: self.name.clone(),
                    // The row that could not be read whole is not counted.
                    line: self.feed.line().saturating_sub(1),
                    error,
                })
            }
        }
    }

    /// The line of the last row, from 1; for Parquet the row.
    pub fn line(&self) -> u64 {
        self.feed.line()
    }

    fn bad(&self, fault: Bad) -> RowError {
        RowError::Row {
            name: self.name.clone(),
            line: self.feed.line(),
            fault,
        }
    }
}

/// A format whose files [`Rows`] does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotARowFormat(pub Format);

impl std::fmt::Display for NotARowFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` has no rows of a trace in a text file",
            self.0.name()
        )
    }
}

impl std::error::Error for NotARowFormat {}

impl<R: BufRead> Feed<R> {
    fn line(&self) -> u64 {
        match self {
            Self::Lines(lines) | Self::Bailian(lines, _) | Self::TraceLab(lines, _) => {
                lines.number()
            }
            Self::Table(table) => table.line(),
            Self::Sessions(values, _) => values.began_on(),
            #[cfg(feature = "parquet")]
            Self::Parquet(parquet) => parquet.number(),
        }
    }

    fn next(&mut self, format: Format, options: &ReadOptions, row: &mut TraceRow) -> Fed {
        match self {
            Self::Lines(lines) => from_line(lines, options, |line| match format {
                Format::SageMaker => sagemaker::read(line, options, row),
                _ => mooncake::read(line, format.unit(), options, row),
            }),
            Self::Bailian(lines, chains) => from_line(lines, options, |line| {
                bailian::read(line, chains, options, row)
            }),
            Self::TraceLab(lines, rounds) => from_line(lines, options, |line| {
                tracelab::read(line, rounds, options, row)
            }),
            Self::Table(table) => match table.next() {
                Ok(true) => fed(match format {
                    Format::Azure => azure::read(table, row),
                    _ => burstgpt::read(table, row),
                }),
                Ok(false) => Fed::End,
                Err(error) => Fed::Failed(error),
            },
            Self::Sessions(values, rows) => from_session(values, rows, (options, row)),
            #[cfg(feature = "parquet")]
            Self::Parquet(parquet) => match parquet.next() {
                None => Fed::End,
                Some(Ok(given)) => fed(baseten::read(&given, options, row)),
                Some(Err(error)) => Fed::Failed(io::Error::other(error)),
            },
        }
    }
}

fn fed(read: Result<(), Bad>) -> Fed {
    match read {
        Ok(()) => Fed::Row,
        Err(fault) => Fed::Bad(fault),
    }
}

fn too_long(options: &ReadOptions) -> Fed {
    let length = format!("longer than {} bytes", options.longest_line);
    Fed::Bad(Fault::new("row", &length, "one row on each line"))
}

fn from_line<R: BufRead>(
    lines: &mut Lines<R>,
    options: &ReadOptions,
    read: impl FnOnce(&[u8]) -> Result<(), Bad>,
) -> Fed {
    match lines.next() {
        Ok(Some(Line::Whole(line))) => fed(read(line)),
        Ok(Some(Line::TooLong)) => too_long(options),
        Ok(None) => Fed::End,
        Err(error) => Fed::Failed(error),
    }
}

fn from_session<R: BufRead>(
    values: &mut Values<R>,
    rows: &mut VecDeque<Result<TraceRow, Bad>>,
    (options, row): (&ReadOptions, &mut TraceRow),
) -> Fed {
    loop {
        match rows.pop_front() {
            Some(Ok(next)) => {
                *row = next;
                return Fed::Row;
            }
            Some(Err(fault)) => return Fed::Bad(fault),
            None => {}
        }
        let read = match values.next() {
            Ok(Some(Value::Whole(document))) => weka::read(document, rows),
            Ok(Some(Value::TooLong)) => return too_long(options),
            Ok(Some(Value::Cut)) => Err(Fault::new(
                "row",
                "the end of the file",
                "the end of the session that begins here",
            )),
            Ok(None) => return Fed::End,
            Err(error) => return Fed::Failed(error),
        };
        if let Err(fault) = read {
            return Fed::Bad(fault);
        }
    }
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<TraceRow, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut row = TraceRow::default();
        match self.read_into(&mut row) {
            Ok(true) => Some(Ok(row)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// Times of rows against those before.
#[derive(Debug, Default)]
struct Order {
    last: Option<Duration>,
}

/// A thousand, with room for the time that passes between two rows: forth, and back.
const FORTH: std::ops::RangeInclusive<f64> = 1_000.0..=1_100.0;
const BACK: std::ops::RangeInclusive<f64> = 900.0..=1_000.0;
/// From here on a jump to the thousandfold is no gap: it would be one of hours, and exact.
const LEAST_TO_JUMP: Duration = Duration::from_secs(10);

impl Order {
    fn check(&mut self, format: Format, at: Option<Duration>) -> Result<(), Bad> {
        let (Some(at), true) = (at, format.is_ordered()) else {
            return Ok(());
        };
        let Some(last) = self.last else {
            self.last = Some(at);
            return Ok(());
        };
        let ratio = |small: Duration, large: Duration| large.as_secs_f64() / small.as_secs_f64();
        let forth = last >= LEAST_TO_JUMP && FORTH.contains(&ratio(last, at));
        // A time of 0 gives an infinite ratio.
        if forth || BACK.contains(&ratio(at, last)) {
            return Err(
                Fault::new("timestamp", &said(at, last), "all times in one unit")
                    .hint("the file seems to mix seconds and milliseconds"),
            );
        }
        if at < last {
            let wanted = "rows in the order of their times";
            return Err(Fault::new("timestamp", &said(at, last), wanted)
                .hint("sort the file by its times first"));
        }
        self.last = Some(at);
        Ok(())
    }
}

fn said(at: Duration, last: Duration) -> String {
    format!("{} s after {} s", at.as_secs_f64(), last.as_secs_f64())
}
