//! A first look at a file, for whoever has to decide what a run is before it is built.

use super::open::{Given, Opened, UnusableFile, open};
use crate::config::PromptFile;
use crate::load::trace::{Clock, Format, Kind, RowError};

/// Rows that are looked at until a good one is found.
const LOOKED_AT: usize = 1_000;

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Its format.
    pub format: Format,
    /// Why it was taken for that.
    pub reason: String,
    /// Whether it is a trace whose rows say when they are due.
    pub is_timed_trace: bool,
}

/// Looks at the beginning of `file`.
///
/// # Errors
///
/// If it cannot be opened, or is of no format that is known.
pub fn look(file: &PromptFile) -> Result<Look, UnusableFile> {
    let Opened {
        detected, given, ..
    } = open(file)?;
    let format = detected.format;
    let is_timed_trace = match given {
        Given::Rows(rows) if format.clock() != Clock::Session => {
            let can_go_on = |error: &RowError| error.can_go_on();
            rows.take(LOOKED_AT)
                .find(|row| !row.as_ref().is_err_and(can_go_on))
                .is_some_and(|row| row.is_ok_and(|row| row.at.is_some()))
        }
        Given::Rows(_) | Given::Entries(_) => false,
    };
    Ok(Look {
        format,
        reason: detected.reason,
        is_timed_trace: is_timed_trace && format.kind() == Kind::Trace,
    })
}
