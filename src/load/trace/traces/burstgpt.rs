//! `BurstGPT`, versions 1 to 3: CSV with times in seconds.
//!
//! The columns of version 3 stand in another order, so they are found by name. A failed request
//! has 0 response tokens: it came all the same, and its length is not known.

use std::io::BufRead;

use super::fields::{Bad, length_of};
use super::table::Table;
use crate::load::trace::error::Fault;
use crate::load::trace::number::{self, Unit};
use crate::load::trace::row::TraceRow;

/// The record that was read last.
pub(in crate::load::trace) fn read<R: BufRead>(
    table: &Table<R>,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let record = table.record();
    let at = record.required("Timestamp")?;
    row.at = Some(
        number::duration(at, Unit::Seconds)
            .ok_or_else(|| Fault::new("Timestamp", at, "seconds of 0 or more"))?,
    );
    let asked = record.required("Request tokens")?;
    let answered = record.required("Response tokens")?;
    row.failed = number::tokens(answered) == Some(0);
    if !row.failed {
        row.output_tokens = Some(length_of("Response tokens", answered)?);
    }
    if !(row.failed && number::tokens(asked) == Some(0)) {
        row.input_tokens = Some(length_of("Request tokens", asked)?);
    }
    row.model = record.optional("Model")?.map(str::to_owned);
    row.session = record.optional("Session ID")?.map(str::to_owned);
    if let Some(elapsed) = record.optional("Elapsed time")? {
        row.service = Some(
            number::duration(elapsed, Unit::Seconds)
                .ok_or_else(|| Fault::new("Elapsed time", elapsed, "seconds of 0 or more"))?,
        );
    }
    Ok(())
}
