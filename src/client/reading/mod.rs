//! Turns the bytes of one response into marks, counts and an outcome. No I/O.
//!
//! What the body is, is found by looking at it and not by trusting its content type: an event
//! stream, one JSON value, or something that is neither. What each event means for the record is
//! in [`facts`].

mod buffered;
mod choices;
mod count;
mod facts;
mod mend;
mod stamps;
mod think;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::facts::{Facts, Whole};
use super::encoding::Decoder;
use super::framing::{
    ArrayDecoder, Event, EventTooLarge, Framing, LineDecoder, MAX_EVENT, SseDecoder,
};
use super::protocol::{Protocol, request_error};
use crate::measurement::{Note, RequestError, RequestRecord};
use crate::transport::ReadMark;

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As HTTP says a body ends.
    Complete,
    /// The connection broke before.
    Broken,
}

/// What the body looks like.
#[derive(Debug)]
enum Form {
    Unknown,
    Events(SseDecoder),
    Lines(LineDecoder),
    Array(ArrayDecoder),
    /// One JSON value, kept until it is whole.
    Json(Vec<u8>),
    /// Text that is the answer itself, kept until it is whole.
    Text(Vec<u8>),
    /// Something else: only its beginning is kept.
    Other,
}

/// A whole answer of vectors may not be larger: some thousands of long ones in JSON. One of text
/// may be as large as an event.
const MAX_VECTORS: usize = 64 * 1024 * 1024;
/// How much of a body that is no answer is kept for the error message.
const MAX_KEPT: usize = 300;
/// What a line of an event stream can begin with.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The reading of one response.
#[derive(Debug)]
pub struct Reading {
    protocol: Arc<Protocol>,
    /// Undoes a content encoding that we did not ask for.
    decoder: Option<Box<Decoder>>,
    form: Form,
    /// Bytes of a byte order mark before the body.
    mark: usize,
    /// The first bytes of a body that may be either text or an event stream.
    early: Vec<u8>,
    /// The first bytes of the body, until an event came.
    beginning: Vec<u8>,
    facts: Facts,
}

impl Reading {
    /// A response of `protocol` of which nothing came yet.
    #[must_use]
    pub fn new(protocol: Arc<Protocol>) -> Self {
        Self {
            protocol,
            decoder: None,
            form: Form::Unknown,
            mark: 0,
            early: Vec::new(),
            beginning: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// Keeps the text of the answer, reasoning included, up to a mebibyte; of a longer one,
    /// nothing.
    #[must_use]
    pub fn keeping_text(mut self) -> Self {
        self.facts.keep_text();
        self
    }

    /// Keeps what is said to the one who asked, without reasoning, up to a mebibyte.
    #[must_use]
    pub fn keeping_reply(mut self) -> Self {
        self.facts.keep_reply();
        self
    }

    /// Whether the protocol's last event came: nothing that matters can follow.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.facts.is_done()
    }

    /// Whether what came so far settles the outcome, so that the rest need not be read.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.facts.is_settled()
    }

    /// By its status the response has no body. Call it before the end.
    pub fn without_content(&mut self) {
        self.facts.over();
    }

    /// The body is encoded, though we did not ask for it: what comes is decoded first. Call it
    /// before the first bytes.
    pub fn encoded(&mut self, encoding: &str) {
        if let Some(decoder) = Decoder::named(encoding) {
            self.decoder = Some(Box::new(decoder));
        } else {
            self.unreadable(&format!("content encoding `{encoding}` is not known"));
        }
    }

    /// Takes bytes of the body that `read` completed.
    pub fn take(&mut self, bytes: &[u8], read: ReadMark, record: &mut RequestRecord) {
        if bytes.is_empty() {
            return;
        }
        record.timeline.first_byte.get_or_insert(read.at);
        record.bytes += bytes.len() as u64;
        let Some(mut decoder) = self.decoder.take() else {
            return self.decoded(bytes, read, record);
        };
        record.notes.add(Note::Compressed);
        match decoder.feed(bytes, &mut |piece| self.decoded(piece, read, record)) {
            Ok(()) => self.decoder = Some(decoder),
            Err(error) => self.unreadable(&error.to_string()),
        }
    }

    /// The rest of the body cannot be read.
    fn unreadable(&mut self, message: &str) {
        self.facts
            .settle(request_error("content encoding", message));
        self.form = Form::Other;
    }

    /// Takes bytes that need no further decoding.
    fn decoded(&mut self, bytes: &[u8], read: ReadMark, record: &mut RequestRecord) {
        let mut bytes = bytes;
        let mut joined;
        if matches!(self.form, Form::Unknown) {
            // White space and a mark before a body are no part of it, whether or not they came in
            // reads of their own.
            if self.early.is_empty() {
                bytes = self.behind_start(bytes);
            }
            if self.waits_for_more(bytes, record.stream.streaming) {
                self.early.extend_from_slice(bytes);
                return;
            }
            joined = std::mem::take(&mut self.early);
            if !joined.is_empty() {
                joined.extend_from_slice(bytes);
                bytes = &joined;
            }
            self.form = Form::of(bytes, &self.protocol, record.stream.streaming);
        }
        if record.timeline.first_event.is_none() {
            self.keep_beginning(bytes);
        }
        let limit = if self.protocol.api().makes_tokens() {
            MAX_EVENT
        } else {
            MAX_VECTORS
        };
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (read, &mut *record));
        let fed = match &mut self.form {
            Form::Events(decoder) => decoder.feed(bytes, on_event),
            Form::Lines(decoder) => decoder.feed(bytes, on_event),
            Form::Array(decoder) => decoder.feed(bytes, on_event),
            Form::Json(kept) | Form::Text(kept) => {
                if kept.len() + bytes.len() > limit {
                    let message = format!("the body is larger than {limit} bytes");
                    self.facts.settle(request_error("too large", &message));
                    self.form = Form::Other;
                } else {
                    kept.extend_from_slice(bytes);
                }
                return;
            }
            Form::Unknown | Form::Other => return,
        };
        if let Err(too_large) = fed {
            self.facts.settle(too_large_error(too_large));
            self.form = Form::Other;
        }
    }

    /// Whether what came so far can be the beginning of a field of an event stream as well as of
    /// a text. Only bodies that may be either wait, and for a few bytes.
    fn waits_for_more(&self, bytes: &[u8], streaming: bool) -> bool {
        let either = streaming && self.protocol.takes_text();
        let so_far = || [&self.early, bytes].concat();
        either
            && FIELDS.iter().any(|field| {
                let so_far = so_far();
                so_far.len() < field.len() && field.starts_with(&so_far)
            })
    }

    /// `bytes` without white space and byte order mark: what stands before a body is no part of
    /// it, whether or not it came in a read of its own.
    fn behind_start<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let is_start = |byte: &&u8| {
            let is_mark = BYTE_ORDER_MARK.get(self.mark) == Some(*byte);
            self.mark += usize::from(is_mark);
            is_mark || byte.is_ascii_whitespace()
        };
        &bytes[bytes.iter().take_while(is_start).count()..]
    }

    fn keep_beginning(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT.saturating_sub(self.beginning.len());
        if room == 0 && matches!(self.form, Form::Other) && !self.is_settled() {
            self.settle_as_other();
        }
        self.beginning
            .extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    /// The body is something that no protocol sends.
    fn settle_as_other(&mut self) {
        let beginning = String::from_utf8_lossy(&self.beginning);
        self.facts
            .settle(request_error("not an event stream", beginning.trim()));
    }

    /// The body ended at `last`: fills counts, error and outcome of `record`.
    pub fn end(mut self, ended: Ended, last: ReadMark, record: &mut RequestRecord) {
        if let Some(decoder) = self.decoder.take()
            && ended == Ended::Complete
            && let Err(error) = decoder.finish()
            && (error.is_damage() || !self.is_done())
        {
            self.unreadable(&error.to_string());
        }
        self.facts.tail();
        if !self.early.is_empty() {
            self.form = Form::Text(std::mem::take(&mut self.early));
        }
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (last, &mut *record));
        let mut whole = None;
        match &mut self.form {
            Form::Events(decoder) => decoder.finish(on_event),
            Form::Lines(decoder) => decoder.finish(on_event),
            Form::Array(decoder) => {
                decoder.finish(on_event);
                if decoder.is_empty() {
                    facts.over();
                }
                if decoder.has_tail() {
                    record.notes.add(Note::AfterEnd);
                }
            }
            Form::Text(_) if ended == Ended::Broken => {}
            Form::Json(body) | Form::Text(body) => {
                whole = Some(facts.whole(protocol, body, (last, &mut *record)));
            }
            Form::Unknown => {
                whole = (!record.stream.streaming && ended == Ended::Complete)
                    .then_some(Whole::Nothing);
            }
            Form::Other => {}
        }
        let is_other = match self.form {
            Form::Other => true,
            Form::Events(_) => record.timeline.first_event.is_none() && !has_field(&self.beginning),
            _ => false,
        };
        if is_other {
            self.settle_as_other();
        }
        self.facts.end(&self.protocol, (ended, whole), record);
    }
}

/// Whether a line of `text` is a comment or a field of an event stream.
fn has_field(text: &[u8]) -> bool {
    let is_field = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or(line);
        line.starts_with(b":") || matches!(name, b"data" | b"event" | b"error" | b"id" | b"retry")
    };
    text.trim_ascii().is_empty()
        || text
            .split(|byte| matches!(byte, b'\n' | b'\r'))
            .any(is_field)
}

/// Whether a body that begins with `bytes` can be an event stream.
fn begins_events(bytes: &[u8]) -> bool {
    FIELDS.iter().any(|field| bytes.starts_with(field))
}

fn too_large_error(error: EventTooLarge) -> RequestError {
    request_error("too large", &error.to_string())
}

impl Form {
    /// The form of a body that begins with `bytes`, which begin with neither white space nor a
    /// byte order mark.
    fn of(bytes: &[u8], protocol: &Protocol, streaming: bool) -> Self {
        match (bytes.first(), protocol.framing()) {
            (None, _) => Self::Unknown,
            (Some(b'{'), Framing::Lines) if streaming => Self::Lines(LineDecoder::default()),
            (Some(b'['), Framing::Array) if streaming => Self::Array(ArrayDecoder::default()),
            (Some(b'{' | b'['), _) => Self::Json(Vec::new()),
            (Some(b'<'), _) => Self::Other,
            (Some(_), _) if protocol.takes_text() && !(streaming && begins_events(bytes)) => {
                Self::Text(Vec::new())
            }
            (Some(_), _) => Self::Events(SseDecoder::default()),
        }
    }
}
