//! Every format with its traps: rows written by hand, and what is wrong told with its place.

mod bad;
mod formats;
#[cfg(feature = "parquet")]
mod parquet;
mod round_trip;
mod synthesis;

use std::io::Cursor;
use std::time::Duration;

use super::*;

/// What is compared of a row, in one line: `at in/out [ids]xN session.turn +delay`.
fn told(row: &TraceRow) -> String {
    let number = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let seconds = |time: Duration| time.as_secs_f64().to_string();
    let mut out = row.at.map_or_else(|| "?".to_owned(), seconds);
    out += &format!(
        " {}/{}",
        number(row.input_tokens),
        number(row.output_tokens)
    );
    if !row.blocks.is_empty() {
        out += &format!(" {:?}x{}", row.blocks, row.block_tokens);
    }
    if row.scope == BlockScope::Session {
        out += " own";
    }
    if let Some(session) = &row.session {
        out += &format!(" {session}");
    }
    if let Some(agent) = &row.agent {
        out += &format!("/{agent}");
    }
    if let Some(turn) = row.turn {
        out += &format!(".{turn}");
    }
    for (sign, time) in [
        ("+", row.delay),
        ("took ", row.service),
        ("ttft ", row.first_token),
    ] {
        if let Some(time) = time {
            out += &format!(" {sign}{}", seconds(time));
        }
    }
    if let Some(model) = &row.model {
        out += &format!(" {model}");
    }
    if let Some(images) = row.images {
        out += &format!(" {images} images");
    }
    if row.failed {
        out += " failed";
    }
    match &row.body {
        Some(Body::Text(text)) => out += &format!(" text {text}"),
        Some(Body::Messages(raw)) => out += &format!(" messages {raw}"),
        Some(Body::Payload(raw)) => out += &format!(" payload {raw}"),
        None => {}
    }
    out
}

/// Every row of `text`, whose format is told from it, or its error.
fn lines(text: &str) -> Vec<String> {
    let format = Format::detect(text.as_bytes())
        .expect("a known format")
        .format;
    lines_as(format, &ReadOptions::of(format), text.as_bytes())
}

fn lines_as(format: Format, options: &ReadOptions, text: &[u8]) -> Vec<String> {
    let source = Source::open(Cursor::new(text.to_vec())).expect("memory can be read");
    let rows = Rows::open(format, options.clone(), source.into_reader(), "t");
    rows.expect("a format of rows")
        .map(|row| match row {
            Ok(row) => told(&row),
            Err(error) => error.to_string(),
        })
        .collect()
}

/// The rows of `text`, which are good.
fn rows(format: Format, text: &[u8]) -> Vec<TraceRow> {
    let rows = Rows::open(
        format,
        ReadOptions::of(format),
        Cursor::new(text.to_vec()),
        "t",
    );
    rows.expect("a format of rows")
        .collect::<Result<_, _>>()
        .expect("good rows")
}
