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
    let mut parts = vec![
        row.at.map_or_else(|| "?".to_owned(), seconds),
        format!("{}/{}", number(row.input_tokens), number(row.output_tokens)),
    ];
    if !row.blocks.is_empty() {
        parts.push(format!("{:?}x{}", row.blocks, row.block_tokens));
    }
    if row.scope == BlockScope::Session {
        parts.push("own".to_owned());
    }
    if let Some(session) = &row.session {
        let agent = row.agent.as_ref().map(|agent| format!("/{agent}"));
        let turn = row.turn.map(|turn| format!(".{turn}"));
        let (agent, turn) = (agent.unwrap_or_default(), turn.unwrap_or_default());
        parts.push(format!("{session}{agent}{turn}"));
    }
    for (sign, time) in [
        ("+", row.delay),
        ("took ", row.service),
        ("ttft ", row.first_token),
    ] {
        parts.extend(time.map(|time| format!("{sign}{}", seconds(time))));
    }
    parts.extend(row.model.clone());
    parts.extend(row.images.map(|images| format!("{images} images")));
    parts.extend(row.failed.then(|| "failed".to_owned()));
    parts.extend(row.body.as_ref().map(|body| match body {
        Body::Text(text) => format!("text {text}"),
        Body::Messages(raw) => format!("messages {raw}"),
        Body::Payload(raw) => format!("payload {raw}"),
    }));
    parts.join(" ")
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
