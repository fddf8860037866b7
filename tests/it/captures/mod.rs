//! Responses of real servers, recorded byte for byte, and what a reader writes down of them.
//!
//! `decoded` feeds the bodies to the reader of responses, whole and cut anywhere; `played` sends
//! the whole responses, heads and all, to the client over an in-memory pipe. The files hold what
//! `curl -i` printed: the head as it came, the body with the chunks of HTTP already taken off.

mod decoded;
mod expected;
mod played;

use std::fs;
use std::path::{Path, PathBuf};

use self::expected::{RECORDED, Recorded};
use crate::fuzz::invariants::view::View;

/// When the events of a stream come, in milliseconds: uneven, so that no two can be mixed up.
const INSTANTS: [u64; 16] = [
    3, 10, 14, 21, 33, 34, 50, 71, 90, 100, 125, 130, 144, 171, 180, 199,
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/sse")
}

/// A recorded response: its head with the blank line, and its body.
struct Response {
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn of(recorded: &Recorded) -> Self {
        let path = folder().join(format!("{}.txt", recorded.file));
        let bytes = fs::read(path).expect("a file of the folder");
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head ends with a blank line");
        Self {
            head: String::from_utf8(bytes[..end + 4].to_vec()).expect("heads are ASCII"),
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// The events of a stream, each with the blank line that ends it.
    fn events(&self) -> Vec<&[u8]> {
        let mut events = Vec::new();
        let mut from = 0;
        for at in 2..=self.body.len() {
            if self.body[..at].ends_with(b"\n\n") {
                events.push(&self.body[from..at]);
                from = at;
            }
        }
        assert_eq!(from, self.body.len(), "these streams end with a blank line");
        assert!(events.len() <= INSTANTS.len());
        events
    }
}

/// Compares all that a record says, but for times and text.
fn check(view: &View, recorded: &Recorded) {
    let file = recorded.file;
    let Recorded {
        outcome,
        tokens: (input, output, reasoning, cached, source),
        finish,
        ..
    } = *recorded;
    assert_eq!(view.outcome, outcome, "{file}: {:?}", view.error);
    assert_eq!(view.finish.as_deref(), finish, "{file}");
    let tokens = &view.tokens;
    assert_eq!(
        (tokens.input, tokens.output, tokens.reasoning, tokens.cached),
        (input, output, reasoning, cached),
        "{file}: input, output, reasoning, cached"
    );
    assert_eq!(tokens.source, source, "{file}");
    let chunks = recorded
        .token_events
        .map_or(0, |(first, last)| last - first + 1);
    assert_eq!(view.chunks, chunks, "{file}");
    let error = view.error.as_ref();
    let error = error.map(|error| (&*error.kind, &*error.message));
    assert_eq!(error, recorded.error, "{file}");
    assert_eq!(view.choices, None, "{file}");
}

#[test]
fn every_recorded_file_has_its_row() {
    let mut files: Vec<String> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("can be listed").file_name())
        .map(|name| name.into_string().expect("names are ASCII"))
        .collect();
    files.sort();
    let rows: Vec<String> = RECORDED
        .iter()
        .map(|recorded| format!("{}.txt", recorded.file))
        .collect();
    assert_eq!(files, rows);
}
