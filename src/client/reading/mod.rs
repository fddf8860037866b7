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
use super::framing::{
    ArrayDecoder, Event, EventTooLarge, Framing, LineDecoder, MAX_EVENT, SseDecoder,
};
use super::protocol::{Protocol, request_error};
use crate::measurement::{RequestError, RequestRecord};
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
    /// Something else: only its beginning is kept.
    Other,
}

/// How much of a body that is no answer is kept for the error message.
const MAX_KEPT: usize = 300;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The reading of one response.
#[derive(Debug)]
pub struct Reading {
    protocol: Arc<Protocol>,
    form: Form,
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
            form: Form::Unknown,
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

    /// The body cannot be read: it is encoded in a way we did not ask for.
    pub fn encoded(&mut self, encoding: &str) {
        let message = format!("content encoding `{encoding}` is not available in this version");
        self.facts
            .settle(request_error("content encoding", &message));
    }

    /// Takes bytes of the body that `read` completed.
    pub fn take(&mut self, bytes: &[u8], read: ReadMark, record: &mut RequestRecord) {
        record.timeline.first_byte.get_or_insert(read.at);
        record.bytes += bytes.len() as u64;
        if matches!(self.form, Form::Unknown) {
            self.form = Form::of(bytes, self.protocol.framing(), record.stream.streaming);
        }
        if record.timeline.first_event.is_none() {
            self.keep_beginning(bytes);
        }
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (read, &mut *record));
        let fed = match &mut self.form {
            Form::Events(decoder) => decoder.feed(bytes, on_event),
            Form::Lines(decoder) => decoder.feed(bytes, on_event),
            Form::Array(decoder) => decoder.feed(bytes, on_event),
            Form::Json(kept) if kept.len() + bytes.len() > MAX_EVENT => Err(EventTooLarge),
            Form::Json(kept) => {
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Form::Unknown | Form::Other => Ok(()),
        };
        if let Err(too_large) = fed {
            self.facts.settle(too_large_error(too_large));
            self.form = Form::Other;
        }
    }

    fn keep_beginning(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT.saturating_sub(self.beginning.len());
        if room == 0 && matches!(self.form, Form::Other) {
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
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (last, &mut *record));
        let mut whole = None;
        match &mut self.form {
            Form::Events(decoder) => decoder.finish(on_event),
            Form::Lines(decoder) => decoder.finish(on_event),
            Form::Array(decoder) => decoder.finish(on_event),
            Form::Json(body) => {
                let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
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
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let is_field = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or(line);
        line.starts_with(b":") || matches!(name, b"data" | b"event" | b"id" | b"retry")
    };
    text.trim_ascii().is_empty()
        || text
            .split(|byte| matches!(byte, b'\n' | b'\r'))
            .any(is_field)
}

fn too_large_error(error: EventTooLarge) -> RequestError {
    request_error("too large", &error.to_string())
}

impl Form {
    fn of(bytes: &[u8], framing: Framing, streaming: bool) -> Self {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (first, framing) {
            (None, _) => Self::Unknown,
            (Some(b'{'), Framing::Lines) if streaming => Self::Lines(LineDecoder::default()),
            (Some(b'['), Framing::Array) if streaming => Self::Array(ArrayDecoder::default()),
            (Some(b'{' | b'['), _) => Self::Json(Vec::new()),
            (Some(b'<'), _) => Self::Other,
            (Some(_), _) => Self::Events(SseDecoder::default()),
        }
    }
}
