//! Fields of a JSON row: taken as they stand and read one by one, so that a bad one can be named
//! with its value.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::load::trace::error::Fault;
use crate::load::trace::number::{self, Unit};
use crate::load::trace::row::TraceRow;

/// A field as it stands in the file.
pub(in crate::load::trace) type Raw<'a> = Option<&'a RawValue>;

/// What could not be read of a row. Boxed, since rows are usually good.
pub(in crate::load::trace) type Bad = Box<Fault>;

/// A JSON row with its fields unread.
pub(in crate::load::trace) fn object<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, Bad> {
    // An array of the same length would be taken for the fields in their order.
    if !line.starts_with(b"{") {
        return Err(Fault::new(
            "row",
            &String::from_utf8_lossy(line),
            "one JSON object",
        ));
    }
    serde_json::from_slice(line).map_err(|error| not_json(line, &error))
}

/// What is wrong with a text that is no JSON, or not of the expected shape.
pub(in crate::load::trace) fn not_json(text: &[u8], error: &serde_json::Error) -> Bad {
    let column = error.column();
    let start = column.saturating_sub(20).min(text.len());
    let around = String::from_utf8_lossy(&text[start..]).into_owned();
    let fault = Fault::new(
        "row",
        &around,
        format!("one JSON object; at column {column}: {}", problem(error)),
    );
    // Written by programs that print numbers as Python does.
    match ["NaN", "Infinity"]
        .iter()
        .find(|word| around.contains(**word))
    {
        Some(word) => fault.hint(format!("`{word}` is no JSON; such a value cannot be used")),
        None => fault,
    }
}

/// The message without the place at its end, which counts from the row and not from the file.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// A time that is 0 or more.
pub(in crate::load::trace) fn time(
    name: &str,
    raw: Raw,
    unit: Unit,
) -> Result<Option<Duration>, Bad> {
    raw.map(|raw| {
        number::duration(raw.get(), unit)
            .ok_or_else(|| Fault::new(name, raw.get(), format!("{} of 0 or more", unit.name())))
    })
    .transpose()
}

/// A value that has to be there.
pub(super) fn required<T>(name: &str, value: Option<T>) -> Result<T, Bad> {
    value.ok_or_else(|| Fault::missing(name, "a value"))
}

/// A length of 1 or more.
pub(in crate::load::trace) fn length(name: &str, raw: Raw) -> Result<Option<u32>, Bad> {
    raw.map(|raw| length_of(name, raw.get())).transpose()
}

/// A length of 1 or more.
pub(in crate::load::trace) fn length_of(name: &str, text: &str) -> Result<u32, Bad> {
    number::tokens(text)
        .filter(|tokens| *tokens > 0)
        .ok_or_else(|| Fault::new(name, text, "a whole number of tokens, 1 or more"))
}

/// A text; numbers are taken as they are written.
pub(in crate::load::trace) fn text(name: &str, raw: Raw) -> Result<Option<String>, Bad> {
    let Some(raw) = raw.map(RawValue::get) else {
        return Ok(None);
    };
    if raw.starts_with('"') {
        return serde_json::from_str(raw)
            .map(Some)
            .map_err(|error| Fault::new(name, raw, format!("a text; {}", problem(&error))));
    }
    if raw.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return Ok(Some(raw.to_owned()));
    }
    Err(Fault::new(name, raw, "a text"))
}

/// The blocks of a prompt into `row`.
pub(super) fn blocks(name: &str, raw: Raw, row: &mut TraceRow) -> Result<(), Bad> {
    let Some(raw) = raw else { return Ok(()) };
    number::ids(raw.get(), &mut row.blocks)
        .map_err(|value| Fault::new(name, &value, "a list of whole numbers of 0 or more"))
}

/// How many blocks a prompt may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::load::trace) enum Fit {
    /// The whole prompt; the last block may be a part of one, or left out.
    Whole,
    /// At most the whole prompt.
    Head,
}

/// Whether the number of blocks fits the length of the prompt.
pub(super) fn fits(row: &TraceRow, fit: Fit) -> Result<(), Bad> {
    let (Some(input), false) = (row.input_tokens, row.blocks.is_empty()) else {
        return Ok(());
    };
    let size = row.block_tokens;
    let most = input.div_ceil(size) as usize;
    let least = match fit {
        Fit::Whole => (input / size) as usize,
        Fit::Head => 1,
    };
    let given = row.blocks.len();
    if (least..=most).contains(&given) {
        return Ok(());
    }
    // The block size under which the list would fit tells which mistake it is.
    let guess = [16, 32, 64, 128, 256, 512, 1_024]
        .into_iter()
        .find(|size| input.div_ceil(*size) as usize == given);
    let fault = Fault::new(
        "hash_ids",
        &format!("{given} ids for {input} tokens"),
        format!("{most} ids, one for each {size} tokens"),
    );
    Err(match guess {
        Some(size) => fault.hint(format!("blocks of {size} tokens would fit")),
        None => fault,
    })
}
