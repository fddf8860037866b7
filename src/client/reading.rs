//! Turns the bytes of one response into marks, counts and an outcome. No I/O.
//!
//! What the body is, is found by looking at it and not by trusting its content type: an event
//! stream, one JSON value, or something that is neither.

use std::sync::Arc;

use super::framing::{
    ArrayDecoder, Event, EventTooLarge, Framing, LineDecoder, MAX_EVENT, SseDecoder,
};
use super::protocol::{Channel, Protocol, Said, Usage, request_error};
use crate::clock::MonoTime;
use crate::measurement::{Chunk, Outcome, RequestError, RequestRecord, TokenSource};
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
    /// The beginning of something else.
    Other(Vec<u8>),
}

/// Chunks of one response: more than any model's output, and 4 MiB of memory.
const MAX_CHUNKS: usize = 1 << 18;
/// How much of a body that is no answer is kept for the error message.
const MAX_KEPT: usize = 300;

/// The reading of one response.
#[derive(Debug)]
pub struct Reading {
    protocol: Arc<Protocol>,
    form: Form,
    facts: Facts,
}

/// How far a response has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Open,
    /// A finish reason came; usage may follow.
    Finished,
    /// The protocol's last event came.
    Done,
    /// The outcome is settled, whatever follows.
    Settled,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Facts {
    usage: Option<Usage>,
    /// The first token-bearing chunk came with a count of its own.
    counted: bool,
    stage: Stage,
    error: Option<RequestError>,
    corrupt: Option<RequestError>,
}

impl Reading {
    /// A response of `protocol` of which nothing came yet.
    #[must_use]
    pub fn new(protocol: Arc<Protocol>) -> Self {
        Self {
            protocol,
            form: Form::Unknown,
            facts: Facts::default(),
        }
    }

    /// Whether the protocol's last event came: nothing that matters can follow.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.facts.stage >= Stage::Done
    }

    /// Whether what came so far settles the outcome, so that the rest need not be read.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.facts.stage == Stage::Settled
    }

    /// The body cannot be read: it is encoded in a way we did not ask for.
    pub fn encoded(&mut self, encoding: &str) {
        let message = format!("content encoding `{encoding}` is not available in this version");
        self.facts.corrupt = Some(request_error("content encoding", &message));
        self.facts.stage = Stage::Settled;
    }

    /// Takes bytes of the body that `read` completed.
    pub fn take(&mut self, bytes: &[u8], read: ReadMark, record: &mut RequestRecord) {
        record.timeline.first_byte.get_or_insert(read.at);
        record.bytes += bytes.len() as u64;
        let mut bytes = bytes;
        if matches!(self.form, Form::Unknown) {
            // White space before a body is no part of it, whether or not it came in a read of
            // its own.
            bytes = bytes.trim_ascii_start();
            self.form = Form::of(bytes, self.protocol.framing(), record.stream.streaming);
        }
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (read, &mut *record));
        let fed = match &mut self.form {
            Form::Events(decoder) => decoder.feed(bytes, on_event),
            Form::Lines(decoder) => decoder.feed(bytes, on_event),
            Form::Array(decoder) => decoder.feed(bytes, on_event),
            Form::Unknown | Form::Json(_) | Form::Other(_) => Ok(()),
        };
        if let Err(too_large) = fed {
            self.facts
                .corrupt
                .get_or_insert_with(|| too_large_error(too_large));
            self.form = Form::Other(Vec::new());
        }
        self.keep(bytes);
    }

    /// Keeps bytes of a body that is no stream of events.
    fn keep(&mut self, bytes: &[u8]) {
        let facts = &mut self.facts;
        match &mut self.form {
            Form::Unknown | Form::Events(_) | Form::Lines(_) | Form::Array(_) => {}
            Form::Json(kept) if kept.len() + bytes.len() > MAX_EVENT => {
                facts.stage = Stage::Settled;
                facts
                    .corrupt
                    .get_or_insert_with(|| too_large_error(EventTooLarge));
                self.form = Form::Other(Vec::new());
            }
            Form::Json(kept) => kept.extend_from_slice(bytes),
            Form::Other(kept) => {
                if kept.len() >= MAX_KEPT {
                    facts.stage = Stage::Settled;
                }
                let room = MAX_KEPT.saturating_sub(kept.len()).min(bytes.len());
                kept.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// The body ended at `last`: fills counts, error and outcome of `record`.
    pub fn end(mut self, ended: Ended, last: ReadMark, record: &mut RequestRecord) {
        let (facts, protocol) = (&mut self.facts, &*self.protocol);
        let on_event = |event: Event<'_>| facts.event(protocol, event, (last, &mut *record));
        let outcome = match &mut self.form {
            Form::Events(decoder) => {
                decoder.finish(on_event);
                None
            }
            Form::Lines(decoder) => {
                decoder.finish(on_event);
                None
            }
            Form::Array(decoder) => {
                decoder.finish(on_event);
                None
            }
            Form::Json(body) => Some(facts.whole(protocol, body, (ended, last.at), record)),
            Form::Other(body) if facts.corrupt.is_none() => {
                let beginning = String::from_utf8_lossy(body);
                facts.corrupt = Some(request_error("not an event stream", beginning.trim()));
                None
            }
            Form::Unknown | Form::Other(_) => None,
        };
        if ended == Ended::Complete && protocol.ends_with_body() {
            self.facts.stage = self.facts.stage.max(Stage::Finished);
        }
        self.facts.count(record);
        record.outcome = outcome.unwrap_or_else(|| self.facts.outcome(record));
        record.error = self.facts.error.or(self.facts.corrupt);
        if record.error.is_none() && record.outcome == Outcome::StreamCut {
            record.error = Some(cut_error(ended));
        }
    }
}

fn cut_error(ended: Ended) -> RequestError {
    match ended {
        Ended::Complete => request_error(
            "no terminal event",
            "the stream ended before a finish reason or `[DONE]`",
        ),
        Ended::Broken => request_error(
            "connection broken",
            "the connection ended inside the response",
        ),
    }
}

fn too_large_error(error: EventTooLarge) -> RequestError {
    request_error("too large", &error.to_string())
}

impl Form {
    fn of(bytes: &[u8], framing: Framing, streaming: bool) -> Self {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (first, framing) {
            (None, _) => Self::Unknown,
            (Some(b'{'), Framing::Lines) if streaming => Self::Lines(LineDecoder::default()),
            (Some(b'['), Framing::Array) if streaming => Self::Array(ArrayDecoder::default()),
            (Some(b'{' | b'['), _) => Self::Json(Vec::new()),
            (Some(b'<'), _) => Self::Other(Vec::new()),
            (Some(_), _) => Self::Events(SseDecoder::default()),
        }
    }
}

impl Facts {
    fn event(
        &mut self,
        protocol: &Protocol,
        event: Event<'_>,
        (read, record): (ReadMark, &mut RequestRecord),
    ) {
        record.timeline.first_event.get_or_insert(read.at);
        if self.stage >= Stage::Done || event.data.trim_ascii() == b"[DONE]" {
            self.stage = self.stage.max(Stage::Done);
            return;
        }
        if event.data.first() == Some(&b':') {
            return; // a keep-alive comment that a gateway wrapped into a data field
        }
        let mut said = Said::default();
        match protocol.read(event, &mut said) {
            Ok(()) => self.take(said, read, record),
            Err(_) if event.name == b"error" => {
                let text = String::from_utf8_lossy(event.data);
                self.error
                    .get_or_insert_with(|| request_error("error", &text));
            }
            Err(error) => {
                self.corrupt
                    .get_or_insert_with(|| request_error("bad event", &error.to_string()));
            }
        }
    }

    fn take(&mut self, said: Said<'_>, read: ReadMark, record: &mut RequestRecord) {
        if said.has_token() {
            if record.timeline.first_token.is_none() {
                record.timeline.first_token = Some(read.at);
                let counted = said
                    .usage
                    .and_then(|usage| usage.output)
                    .filter(|count| *count > 0);
                record.tokens.in_first_chunk = counted;
                self.counted = counted.is_some();
            }
            let is_output = |channel| channel != Channel::Reasoning;
            if said.pieces().any(|piece| is_output(piece.channel)) {
                record.timeline.first_output.get_or_insert(read.at);
            }
            record.timeline.last_token = Some(read.at);
            if record.chunks.len() < MAX_CHUNKS {
                record.chunks.push(Chunk::exact(read.at, read.number));
            } else {
                self.stage = Stage::Settled;
                let message = format!("more than {MAX_CHUNKS} chunks");
                self.corrupt
                    .get_or_insert_with(|| request_error("too large", &message));
            }
        }
        self.note(said, record);
    }

    /// What every event may hold, token or not.
    fn note(&mut self, said: Said<'_>, record: &mut RequestRecord) {
        if let Some(usage) = said.usage {
            self.usage = Some(usage.over(self.usage));
        }
        if let Some(error) = said.error {
            self.error.get_or_insert(error);
        }
        if let Some(reason) = said.finish {
            self.stage = self.stage.max(Stage::Finished);
            if matches!(&*reason, "abort" | "error") {
                let message = format!("finish reason `{reason}`");
                self.error
                    .get_or_insert_with(|| request_error(&reason, &message));
            }
            record.finish_reason = Some(reason);
        }
        if said.done {
            self.stage = self.stage.max(Stage::Done);
        }
    }

    /// A body that was one JSON value: the answer to a request without streaming, else a server
    /// that would not stream.
    fn whole(
        &mut self,
        protocol: &Protocol,
        body: &[u8],
        (ended, at): (Ended, MonoTime),
        record: &mut RequestRecord,
    ) -> Outcome {
        let mut said = Said::default();
        let event = Event {
            name: b"",
            data: body,
        };
        match protocol.read(event, &mut said) {
            Ok(()) => {}
            Err(_) if ended == Ended::Broken => return Outcome::StreamCut,
            Err(error) => {
                self.corrupt = Some(request_error("bad JSON", &error.to_string()));
                return Outcome::Malformed;
            }
        }
        let has_token = said.has_token() || said.answers > 0;
        self.note(said, record);
        if self.error.is_some() {
            return Outcome::StreamError;
        }
        if !has_token {
            return Outcome::Empty;
        }
        record.timeline.last_token = Some(at);
        if record.stream.streaming {
            Outcome::NotAStream
        } else {
            Outcome::Ok
        }
    }

    fn count(&self, record: &mut RequestRecord) {
        let tokens = &mut record.tokens;
        if let Some(usage) = self.usage {
            // No tokens where chunks with tokens came is no count, nor is a part above the whole.
            let tokens_came = !record.chunks.is_empty();
            tokens.input = usage.input;
            tokens.output = usage.output.filter(|count| *count > 0 || !tokens_came);
            tokens.reasoning = usage.reasoning.filter(|part| Some(*part) <= tokens.output);
            tokens.cached = usage.cached;
        }
        tokens.source = match (tokens.output, self.counted) {
            (Some(_), true) => Some(TokenSource::ChunkUsage),
            (Some(_), false) => Some(TokenSource::Usage),
            (None, _) if record.chunks.is_empty() => None,
            (None, _) => {
                tokens.output = u32::try_from(record.chunks.len()).ok();
                Some(TokenSource::Chunks)
            }
        };
    }

    fn outcome(&self, record: &RequestRecord) -> Outcome {
        if self.error.is_some() {
            Outcome::StreamError
        } else if self.corrupt.is_some() {
            Outcome::Malformed
        } else if self.stage < Stage::Finished {
            Outcome::StreamCut
        } else if record.chunks.is_empty() {
            Outcome::Empty
        } else {
            Outcome::Ok
        }
    }
}
