//! Azure LLM inference traces of 2023, 2024 and 2025: CSV with instants of seven fractional
//! digits and no zone, which are UTC. Some files of 2024 have a zone, and that of 2025 a column
//! of images.

use std::io::BufRead;

use super::fields::{Bad, length_of};
use super::table::Table;
use crate::load::trace::error::Fault;
use crate::load::trace::number;
use crate::load::trace::row::TraceRow;
use crate::load::trace::stamp;

/// The record that was read last.
pub(in crate::load::trace) fn read<R: BufRead>(
    table: &Table<R>,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    let record = table.record();
    let at = record.required("TIMESTAMP")?;
    row.at = Some(stamp::instant(at).ok_or_else(|| {
        Fault::new(
            "TIMESTAMP",
            at,
            "an instant as `2023-11-16 18:15:46.6805900`",
        )
    })?);
    let context = record.required("ContextTokens")?;
    row.input_tokens = Some(length_of("ContextTokens", context)?);
    let generated = record.required("GeneratedTokens")?;
    row.output_tokens = Some(length_of("GeneratedTokens", generated)?);
    if let Some(images) = record.optional("NumImages")? {
        row.images = Some(
            number::tokens(images)
                .ok_or_else(|| Fault::new("NumImages", images, "a whole number, 0 or more"))?,
        );
    }
    Ok(())
}
