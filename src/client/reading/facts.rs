//! What the events of one response mean for its record: marks, notes and the outcome.
//!
//! A response that was answered is told from one that was not by these rules. An error anywhere
//! is a failure, also after tokens. An end without a finish reason of every answer and without
//! `[DONE]` is a cut. One event that cannot be read does no harm to a response that has tokens,
//! a finish reason and its end. `[DONE]` counts as the last event only after a finish reason,
//! since there are servers that send it after each chunk.

use super::Ended;
use super::buffered::is_buffered;
use super::choices::Answers;
use super::count::{Counted, Ladder};
use super::mend::mend;
use super::stamps::Stamps;
use crate::client::framing::Event;
use crate::client::protocol::{Protocol, Said, Shape, error_from, error_in, request_error};
use crate::clock::MonoTime;
use crate::measurement::{Chunk, Note, Outcome, RequestError, RequestRecord, TokenSource};
use crate::transport::ReadMark;

/// Chunks of one response: more than any model's output, and 4 MiB of memory.
const MAX_CHUNKS: usize = 1 << 18;

/// How far a response has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// `[DONE]` came, but no finish reason yet.
    Ended,
    /// The protocol's last event came.
    Done,
    /// The outcome is settled, whatever follows.
    Settled,
}

/// A response that was one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// It could be read, and holds an answer.
    Answer,
    /// It could be read, or was empty; it holds none.
    Nothing,
    /// It is no JSON of this protocol.
    Unreadable,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Facts {
    stage: Stage,
    /// The body is over: what is left is an event that its end may have cut off.
    is_tail: bool,
    /// Finish reasons that came.
    finishes: u32,
    /// An error that the server told.
    error: Option<RequestError>,
    /// Why nothing of it can be trusted.
    fatal: Option<RequestError>,
    /// The first event that could not be read.
    bad_event: Option<RequestError>,
    ladder: Ladder,
    answers: Answers,
    stamps: Stamps,
    shape: Shape,
}

impl Facts {
    pub(super) const fn keep_text(&mut self) {
        self.answers.keep_text();
    }

    pub(super) fn keep_reply(&mut self) {
        self.answers.keep_reply();
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done | Stage::Settled)
    }

    pub(super) const fn is_settled(&self) -> bool {
        matches!(self.stage, Stage::Settled)
    }

    /// The body is over: an event that comes now and cannot be read was cut off, not garbled.
    pub(super) const fn tail(&mut self) {
        self.is_tail = true;
    }

    /// The response is over without an event of its own saying so.
    pub(super) fn over(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Ended;
        }
    }

    /// Nothing of the response can be trusted, for this reason; the first one counts.
    pub(super) fn settle(&mut self, why: RequestError) {
        self.fatal.get_or_insert(why);
        self.stage = Stage::Settled;
    }

    pub(super) fn event(
        &mut self,
        protocol: &Protocol,
        event: Event<'_>,
        (read, record): (ReadMark, &mut RequestRecord),
    ) {
        record.timeline.first_event.get_or_insert(read.at);
        Stamps::event(read, record);
        if self.stage != Stage::Open {
            record.notes.add(Note::AfterEnd);
            if self.is_done() {
                return;
            }
        }
        if event.data.trim_ascii() == b"[DONE]" {
            let answered = self.finishes > 0 || self.error.is_some();
            self.stage = if answered { Stage::Done } else { Stage::Ended };
            return;
        }
        if event.data.first() == Some(&b':') {
            record.notes.add(Note::BadKeepAlive);
            return;
        }
        let mut said = Said::default();
        if self.shape.read(event, &mut said) {
            return self.take(said, read, record);
        }
        match protocol.read(event, &mut said) {
            Ok(()) => {
                if event.name == b"error" && said.error.is_none() {
                    said.error = Some(error_of(event.data));
                }
                self.shape.learn(event, &said);
                self.take(said, read, record);
            }
            Err(error) => self.unreadable(protocol, (event, &error), (read, record)),
        }
    }

    /// An event that could not be read as it is.
    fn unreadable(
        &mut self,
        protocol: &Protocol,
        (event, error): (Event<'_>, &serde_json::Error),
        (read, record): (ReadMark, &mut RequestRecord),
    ) {
        if let Some(mended) = mend(event.data) {
            let mut said = Said::default();
            let event = Event {
                name: event.name,
                data: &mended,
            };
            if protocol.read(event, &mut said).is_ok() {
                record.notes.add(Note::BadUtf8);
                return self.take(said, read, record);
            }
        }
        if event.name == b"error" {
            self.error.get_or_insert_with(|| error_of(event.data));
            return;
        }
        if self.is_tail {
            return;
        }
        record.notes.add(Note::BadEvent);
        self.bad_event
            .get_or_insert_with(|| request_error("bad event", &error.to_string()));
    }

    fn take(&mut self, said: Said<'_>, read: ReadMark, record: &mut RequestRecord) {
        let bearing = said.has_token();
        let first = bearing && record.timeline.first_token.is_none();
        if bearing {
            self.token(&said, read, record);
        }
        self.ladder.take(&said, first);
        if said.done && !self.is_settled() {
            self.stage = Stage::Done;
        }
        self.note(said, record);
    }

    fn token(&mut self, said: &Said<'_>, read: ReadMark, record: &mut RequestRecord) {
        self.stamps.token(read, record);
        record.timeline.first_token.get_or_insert(read.at);
        record.timeline.last_token = Some(read.at);
        let heed = self.answers.take(said, read.at);
        self.ladder.reasoning |= heed.reasoning;
        if let Some(since) = heed.output {
            first_output(since, record);
        }
        if record.chunks.len() < MAX_CHUNKS {
            record.chunks.push(Chunk::exact(read.at, read.number));
        } else {
            let message = format!("more than {MAX_CHUNKS} chunks");
            self.settle(request_error("too large", &message));
        }
    }

    /// Error and finish reason, which any event may hold.
    fn note(&mut self, said: Said<'_>, record: &mut RequestRecord) {
        if let Some(error) = said.error {
            self.error.get_or_insert(error);
        }
        let Some(reason) = said.finish else {
            return;
        };
        self.finishes += said.finishes;
        if is_filter(&reason) {
            record.notes.add(Note::ContentFilter);
        }
        if is_failure(&reason) {
            let message = format!("finish reason `{reason}`");
            self.error
                .get_or_insert_with(|| request_error(&reason, &message));
        } else if record.finish_reason.as_deref().is_some_and(is_failure) {
            return; // the one that tells of a failure stays
        }
        record.finish_reason = Some(reason);
    }

    /// A body that was one JSON value: the answer to a request without streaming, else a server
    /// that would not stream.
    pub(super) fn whole(
        &mut self,
        protocol: &Protocol,
        body: &[u8],
        (last, record): (ReadMark, &mut RequestRecord),
    ) -> Whole {
        let event = |data| Event { name: b"", data };
        let mut said = Said::default();
        let mended;
        if let Err(error) = protocol.read(event(body), &mut said) {
            said = Said::default();
            mended = mend(body);
            let read = mended
                .as_deref()
                .is_some_and(|body| protocol.read(event(body), &mut said).is_ok());
            if !read {
                self.bad_event = Some(request_error("bad JSON", &error.to_string()));
                return Whole::Unreadable;
            }
            record.notes.add(Note::BadUtf8);
        }
        let answered = said.has_token() || said.answers > 0;
        self.ladder.take(&said, false);
        self.answers.take_whole(&said, last.at);
        self.note(said, record);
        if !answered {
            return Whole::Nothing;
        }
        record.timeline.last_token = Some(last.at);
        Whole::Answer
    }

    /// The body ended: fills counts, error and outcome of `record`.
    pub(super) fn end(
        mut self,
        protocol: &Protocol,
        (ended, whole): (Ended, Option<Whole>),
        record: &mut RequestRecord,
    ) {
        if let Some(since) = self.answers.finish(record) {
            first_output(since, record);
        }
        if protocol.ends_with_body() && ended == Ended::Complete {
            self.over();
        }
        self.stamps.finish(record);
        let counted = Counted {
            tokens: !record.chunks.is_empty() || whole == Some(Whole::Answer),
            usage_asked: !record.stream.streaming || protocol.asks_usage(),
            answers: self.answers.count().max(1),
        };
        self.ladder.finish(counted, record);
        if is_buffered(record) {
            record.notes.add(Note::Buffered);
        }
        record.outcome = match whole {
            Some(whole) => self.outcome_of_whole(whole, ended, record.stream.streaming),
            None => self.outcome(ended, record),
        };
        if protocol.asks_exact_length() && self.is_other_length(record) {
            record.notes.add(Note::LengthNotAsked);
        }
        if let Some(note) = record.tokens.cache_note() {
            record.notes.add(note);
        }
        record.error = match record.outcome {
            Outcome::Ok | Outcome::Empty | Outcome::NotAStream => None,
            Outcome::StreamCut => Some(cut_error(ended)),
            _ => self.error.or(self.fatal).or(self.bad_event),
        };
    }

    fn outcome(&self, ended: Ended, record: &RequestRecord) -> Outcome {
        let tokens = !record.chunks.is_empty();
        let at_end = self.stage != Stage::Open || ended == Ended::Complete;
        let whole = tokens && self.finishes > 0 && at_end;
        if self.error.is_some() {
            Outcome::StreamError
        } else if self.fatal.is_some() || self.bad_event.is_some() && !whole {
            Outcome::Malformed
        } else if self.stage == Stage::Open && self.finishes < self.answers.count().max(1) {
            Outcome::StreamCut
        } else if tokens {
            Outcome::Ok
        } else {
            Outcome::Empty
        }
    }

    fn outcome_of_whole(&self, whole: Whole, ended: Ended, streaming: bool) -> Outcome {
        match whole {
            _ if self.error.is_some() => Outcome::StreamError,
            _ if self.fatal.is_some() => Outcome::Malformed,
            Whole::Unreadable if ended == Ended::Broken => Outcome::StreamCut,
            Whole::Unreadable => Outcome::Malformed,
            Whole::Nothing => Outcome::Empty,
            Whole::Answer if streaming => Outcome::NotAStream,
            Whole::Answer => Outcome::Ok,
        }
    }

    /// Whether a whole answer, counted by the server, has not the length that was asked for.
    fn is_other_length(&self, record: &RequestRecord) -> bool {
        let tokens = &record.tokens;
        let counted = tokens.source.is_some_and(|s| s != TokenSource::Chunks);
        let answered = matches!(record.outcome, Outcome::Ok | Outcome::NotAStream);
        let asked = tokens
            .requested_output
            .map(|length| u64::from(length) * u64::from(self.answers.count().max(1)));
        counted
            && answered
            && asked.is_some_and(|asked| tokens.output.map(u64::from) != Some(asked))
    }
}

fn first_output(since: MonoTime, record: &mut RequestRecord) {
    let before = record.timeline.first_output.unwrap_or(since);
    record.timeline.first_output = Some(before.min(since));
}

/// The error in an event whose name says that it is one.
fn error_of(data: &[u8]) -> RequestError {
    match serde_json::from_slice(data) {
        Ok(json) => error_in(&json).unwrap_or_else(|| error_from(&json, None)),
        Err(_) => request_error("error", &String::from_utf8_lossy(data)),
    }
}

/// Whether a finish reason says that the answer was ended for what it says.
fn is_filter(reason: &str) -> bool {
    matches!(
        reason,
        "content_filter"
            | "refusal"
            | "SAFETY"
            | "PROHIBITED_CONTENT"
            | "BLOCKLIST"
            | "ERROR_TOXIC"
    )
}

/// Whether a finish reason says that the server failed.
fn is_failure(reason: &str) -> bool {
    matches!(reason, "abort" | "error" | "ERROR")
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
