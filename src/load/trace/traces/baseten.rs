//! Baseten: a Parquet file with Unix milliseconds, lengths, hashes of blocks and sessions.
//!
//! Only the columns that are needed are read, page by page. A request without an answer was
//! cancelled or failed.

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::fields::{Bad, fits, required};
use crate::load::trace::error::Fault;
use crate::load::trace::number::{self, Unit};
use crate::load::trace::row::{Body, TraceRow};
use crate::load::trace::rows::{Bodies, ReadOptions};

/// Columns that have to be there.
const REQUIRED: [&str; 3] = ["timestamp_start_unix_ms", "input_tokens", "output_tokens"];
/// Columns that may.
const OPTIONAL: [&str; 7] = [
    "total_hashes",
    "block_size",
    "provided_session_id",
    "poor_man_session_id",
    "request_canceled",
    "duration_e2e_ms",
    "duration_ttft_ms",
];

/// An open file.
pub(in crate::load::trace) struct Parquet {
    rows: RowIter<'static>,
    number: u64,
}

impl Parquet {
    /// # Errors
    /// If it is no Parquet file, or a required column is missing.
    pub(in crate::load::trace) fn open<C: ChunkReader + 'static>(
        file: C,
        options: &ReadOptions,
    ) -> Result<Self, ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let columns = projection(reader.metadata(), options.bodies)?;
        let rows = RowIter::from_file_into(Box::new(reader)).project(Some(columns))?;
        Ok(Self { rows, number: 0 })
    }

    /// Number of the row that was read last, from 1.
    pub(in crate::load::trace) fn number(&self) -> u64 {
        self.number
    }

    /// The next row; `None` at the end.
    pub(in crate::load::trace) fn next(&mut self) -> Option<Result<Row, ParquetError>> {
        let next = self.rows.next()?;
        self.number += 1;
        Some(next)
    }
}

/// The schema with the needed columns only.
fn projection(metadata: &ParquetMetaData, bodies: Bodies) -> Result<Type, ParquetError> {
    let schema = metadata.file_metadata().schema();
    let there = schema.get_fields();
    for name in REQUIRED {
        if !there.iter().any(|field| field.name() == name) {
            let columns: Vec<&str> = there.iter().map(|field| field.name()).take(20).collect();
            return Err(ParquetError::General(format!(
                "the columns are {}\n  wanted: a column `{name}`",
                columns.join(", ")
            )));
        }
    }
    let needed = |name: &str| {
        REQUIRED.contains(&name)
            || OPTIONAL.contains(&name)
            || (name == "prompt" && bodies == Bodies::Keep)
    };
    let fields = there.iter().filter(|field| needed(field.name())).cloned();
    Type::group_type_builder(schema.name())
        .with_fields(fields.collect())
        .build()
}

/// One row of the file.
pub(in crate::load::trace) fn read(
    given: &Row,
    options: &ReadOptions,
    row: &mut TraceRow,
) -> Result<(), Bad> {
    row.block_tokens = options.block_tokens;
    let mut poor_man = None;
    for (name, field) in given.get_column_iter() {
        let tokens = |field: &Field| {
            let text = plain(field);
            number::tokens(&text)
                .ok_or_else(|| Fault::new(name, &text, "a whole number of tokens, 0 or more"))
        };
        let time = |field: &Field| {
            let text = plain(field);
            number::duration(&text, Unit::Milliseconds)
                .ok_or_else(|| Fault::new(name, &text, "milliseconds of 0 or more"))
        };
        if matches!(field, Field::Null) {
            continue;
        }
        match name.as_str() {
            "timestamp_start_unix_ms" => row.at = Some(time(field)?),
            "input_tokens" => row.input_tokens = Some(tokens(field)?),
            "output_tokens" => row.output_tokens = Some(tokens(field)?),
            "total_hashes" => hashes(field, &mut row.blocks)?,
            "block_size" => row.block_tokens = tokens(field)?,
            "provided_session_id" => row.session = Some(plain(field)),
            "poor_man_session_id" => poor_man = Some(plain(field)),
            "request_canceled" => row.failed = !matches!(plain(field).as_str(), "0" | "false"),
            "duration_e2e_ms" => row.service = Some(time(field)?),
            "duration_ttft_ms" => row.first_token = Some(time(field)?),
            "prompt" => row.body = Some(Body::Text(plain(field))),
            _ => {}
        }
    }
    row.session = row.session.take().or(poor_man);
    row.at = Some(required("timestamp_start_unix_ms", row.at)?);
    let input = required("input_tokens", row.input_tokens)?;
    if input == 0 {
        return Err(Fault::new(
            "input_tokens",
            "0",
            "a whole number of tokens, 1 or more",
        ));
    }
    if required("output_tokens", row.output_tokens)? == 0 {
        row.output_tokens = None;
        row.failed = true;
    }
    if row.block_tokens == 0 {
        return Err(Fault::new(
            "block_size",
            "0",
            "a whole number of tokens, 1 or more",
        ));
    }
    fits(row, options.fit())
}

/// A value as a text without quotes.
fn plain(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}

fn hashes(field: &Field, blocks: &mut Vec<u64>) -> Result<(), Bad> {
    let Field::ListInternal(list) = field else {
        return Err(Fault::new(
            "total_hashes",
            &plain(field),
            "a list of numbers",
        ));
    };
    for element in list.elements() {
        blocks.push(match element {
            // Hashes use all 64 bits; the sign means nothing.
            Field::Long(hash) => hash.cast_unsigned(),
            other => plain(other).parse().map_err(|_| {
                Fault::new("total_hashes", &plain(other), "a list of whole numbers")
            })?,
        });
    }
    Ok(())
}
