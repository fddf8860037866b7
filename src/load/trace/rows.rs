//! The rows of a trace, one at a time, each checked, with errors that say where.
//!
//! What one row cannot show is checked here: times that go back, and times that jump by a
//! thousand, which is what a file of mixed units looks like. After a bad row reading goes on with
//! the next if the caller asks for it.

use std::io::BufRead;
use std::time::Duration;

use super::error::{Fault, RowError};
use super::format::Format;
use super::lines::{Line, Lines};
use super::row::TraceRow;
use super::traces::fields::Bad;
use super::traces::mooncake;

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
    /// Longest line in bytes.
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
            longest_line: super::LONGEST_LINE,
        }
    }
}

/// The rows of one trace.
pub struct Rows<R> {
    name: String,
    format: Format,
    options: ReadOptions,
    reader: Lines<R>,
    order: Order,
    ended: bool,
}

impl<R: BufRead> Rows<R> {
    /// Rows of `reader`, which gives the unpacked file; `name` is what errors call it.
    pub fn open(format: Format, options: ReadOptions, reader: R, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            format,
            reader: Lines::new(reader, options.longest_line),
            options,
            order: Order::default(),
            ended: false,
        }
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
        let line = match self.reader.next() {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong)) => {
                let fault = Fault::new(
                    "row",
                    &format!("longer than {} bytes", self.options.longest_line),
                    "one row on each line",
                );
                return Err(self.bad(fault));
            }
            Ok(None) => {
                self.ended = true;
                return Ok(false);
            }
            Err(error) => {
                self.ended = true;
                return Err(RowError::File {
                    name: self.name.clone(),
                    line: self.reader.number().saturating_sub(1),
                    error,
                });
            }
        };
        let read = match self.format {
            _ => mooncake::read(line, self.format.unit(), &self.options, row),
        };
        match read.and_then(|()| self.order.check(self.format, row.at)) {
            Ok(()) => Ok(true),
            Err(fault) => Err(self.bad(fault)),
        }
    }

    fn bad(&self, fault: Bad) -> RowError {
        RowError::Row {
            name: self.name.clone(),
            line: self.reader.number(),
            fault,
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

/// A thousand, with room for the time that passes between two rows.
const THOUSAND: std::ops::RangeInclusive<f64> = 990.0..=1_100.0;
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
        let thousandfold = |small: Duration, large: Duration| {
            !small.is_zero() && THOUSAND.contains(&(large.as_secs_f64() / small.as_secs_f64()))
        };
        let jumped = at > last && last >= LEAST_TO_JUMP && thousandfold(last, at);
        if jumped || (at < last && thousandfold(at, last)) {
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
