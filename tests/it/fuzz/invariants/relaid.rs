//! The same response in another layout: blanks inside JSON, plain framing around it.
//!
//! Written from the specifications and on purpose not with the library's decoders: a decoder
//! and a shortcut that understand the layout otherwise than these few lines are found out.

use serde_json::value::RawValue;
use tokencanary::measurement::Api;

/// The end of an event, and a comment behind it.
const BETWEEN: &[u8] = b"\n: between\n\n";

/// `body` laid out otherwise, if that can be done without changing what it says.
pub(crate) fn relaid(api: Api, streaming: bool, body: &[u8]) -> Option<Vec<u8>> {
    let body = behind_start(body);
    match body.first()? {
        b'{' if streaming && matches!(api, Api::Ollama | Api::OllamaGenerate) => Some(lines(body)),
        // Whole bodies and arrays; half of one says something else.
        b'{' | b'[' => spaced(body),
        b'<' => None,
        // Text may be the answer itself there, and is then no event in another layout.
        _ if matches!(api, Api::Raw | Api::Template) => None,
        // Without any event it is no event stream, and its beginning is shown.
        _ => Some(events(body)).filter(|events| !events.is_empty()),
    }
}

/// `body` without the white space before it, and without a byte order mark or the beginning of
/// one.
fn behind_start(body: &[u8]) -> &[u8] {
    let mut mark = [0xEF_u8, 0xBB, 0xBF].into_iter().peekable();
    let mut from = 0;
    for byte in body {
        let is_mark = mark.next_if_eq(byte).is_some();
        if !is_mark && !byte.is_ascii_whitespace() {
            break;
        }
        from += 1;
    }
    &body[from..]
}

/// JSON with a blank at each joint; `None` if it is not JSON.
fn spaced(json: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<&RawValue>(json).ok()?;
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut inside, mut escaped) = (false, false);
    for &byte in json {
        // Line ends stay out: the framings give them a meaning.
        if !inside && matches!(byte, b'\n' | b'\r') {
            continue;
        }
        out.push(byte);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'{' | b'[' | b',' | b':' if !inside => out.push(b' '),
            _ => {}
        }
    }
    Some(out)
}

/// Lines of JSON, each spaced, with blank lines between them.
fn lines(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() * 2);
    for line in body.split(|byte| *byte == b'\n') {
        out.extend(spaced(line).unwrap_or_else(|| line.to_vec()));
        out.extend(b"\n\n");
    }
    // What the end of the body cuts off is cut off here too.
    out.truncate(out.len() - 2);
    out
}

/// An event stream whose events say the same, with one kind of line end and a comment between
/// each two.
fn events(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() * 2);
    let mut event = Named::default();
    let text = single_line_ends(body);
    // The line end behind the last line is no blank line.
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            std::mem::take(&mut event).write(&mut out);
        } else {
            event.field(line);
        }
    }
    // A stream may end without the blank line, and what it cuts off is cut off here too.
    let ended = out.len();
    event.write(&mut out);
    if out.len() > ended {
        out.truncate(out.len() - BETWEEN.len());
    }
    out
}

/// `text` with `\n` for every `\r\n` and `\r`.
fn single_line_ends(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut before = 0;
    for &byte in text {
        match (before, byte) {
            (b'\r', b'\n') => {}
            (_, b'\r') => out.push(b'\n'),
            _ => out.push(byte),
        }
        before = byte;
    }
    out
}

/// The event that is being put together.
#[derive(Default)]
struct Named {
    name: Vec<u8>,
    data: Vec<Vec<u8>>,
}

impl Named {
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        match name {
            b"data" => self.data.push(value),
            b"event" => self.name = value,
            // No field of the specification, but of a server.
            b"error" => {
                self.name = b"error".to_vec();
                self.data.push(value);
            }
            _ => {}
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        let data = self.data.join(&b'\n');
        if data.is_empty() {
            return;
        }
        out.extend(b"event: ");
        out.extend(self.name);
        out.extend(b"\n");
        let data = spaced(&data).unwrap_or(data);
        for line in data.split(|byte| *byte == b'\n') {
            out.extend(b"data: ");
            out.extend(line);
            out.extend(b"\n");
        }
        out.extend(BETWEEN);
    }
}
