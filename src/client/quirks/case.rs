//! One response as a list of reads, and the values that must come out of it.
//!
//! Times are milliseconds from the start of the request. Every field of [`Expected`] is compared,
//! so what a test does not name must be absent. Nothing here computes an expected value.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::client::{Ended, Protocol, Reading};
use crate::clock::MonoTime;
use crate::config::RequestConfig;
use crate::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Note, Outcome, RequestRecord, Stream, StreamId,
    TokenSource, TraceIds,
};
use crate::transport::ReadMark;

pub(super) const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n";
pub(super) const A: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
pub(super) const EMPTY: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":null}]}\n\n";
pub(super) const THOUGHT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"a\"}}]}\n\n";
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(super) const LENGTH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
pub(super) const DONE: &str = "data: [DONE]\n\n";

/// An event of these data.
pub(super) fn sse(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// A chat event of one delta.
pub(super) fn delta(fields: &str) -> String {
    sse(&format!(
        "{{\"choices\":[{{\"index\":0,\"delta\":{{{fields}}},\"finish_reason\":null}}]}}"
    ))
}

/// A chat event without choices whose usage counts `output` tokens, 5 being the prompt's.
pub(super) fn usage(output: u32) -> String {
    sse(&format!(
        "{{\"choices\":[],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{output}}}}}"
    ))
}

/// A chat event of one delta whose usage counts `output` tokens so far.
pub(super) fn counted(fields: &str, output: u32) -> String {
    sse(&format!(
        "{{\"choices\":[{{\"index\":0,\"delta\":{{{fields}}}}}],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{output}}}}}"
    ))
}

/// A named event.
pub(super) fn named(name: &str, json: &str) -> String {
    format!("event: {name}\ndata: {json}\n\n")
}

/// The error is any: the words are ours.
pub(super) const ANY: &str = "*";

/// One response.
#[derive(Debug, Clone)]
pub(super) struct Case {
    api: Api,
    style: RequestConfig,
    streaming: bool,
    asked: Option<u32>,
    keeping: bool,
    reads: Vec<(u64, Vec<u8>)>,
    ended: Ended,
}

/// A streamed response of `api`, each read at its instant.
pub(super) fn of(api: Api, reads: &[(u64, &str)]) -> Case {
    let bytes = reads.iter().map(|(ms, text)| (*ms, text.as_bytes()));
    of_bytes(api, &bytes.collect::<Vec<_>>())
}

/// [`of`], where the bytes are no text.
pub(super) fn of_bytes(api: Api, reads: &[(u64, &[u8])]) -> Case {
    Case {
        api,
        style: RequestConfig::default(),
        streaming: true,
        asked: None,
        keeping: false,
        reads: reads
            .iter()
            .map(|(ms, bytes)| (*ms, bytes.to_vec()))
            .collect(),
        ended: Ended::Complete,
    }
}

/// A streamed chat completion.
pub(super) fn chat(reads: &[(u64, &str)]) -> Case {
    of(Api::Chat, reads)
}

impl Case {
    /// No stream was asked for.
    pub(super) fn unary(mut self) -> Self {
        self.streaming = false;
        self
    }

    /// The connection broke after the last read.
    pub(super) fn broken(mut self) -> Self {
        self.ended = Ended::Broken;
        self
    }

    /// So many output tokens were asked for.
    pub(super) fn asking(mut self, tokens: u32) -> Self {
        self.asked = Some(tokens);
        self
    }

    /// Usage was not asked for.
    pub(super) fn without_usage(mut self) -> Self {
        self.style.usage = false;
        self
    }

    /// The text is kept.
    pub(super) fn keeping_text(mut self) -> Self {
        self.keeping = true;
        self
    }

    /// All its bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.reads
            .iter()
            .flat_map(|(_, bytes)| bytes.clone())
            .collect()
    }

    /// The record of this response, read by read.
    pub(super) fn record(&self) -> RequestRecord {
        let mut number = 0;
        self.read(self.reads.iter().map(|(ms, bytes)| {
            number += 1;
            (ReadMark::user(at(*ms), number), &**bytes)
        }))
    }

    /// The record of the same bytes in one read, handed over in pieces that end at `cuts`.
    pub(super) fn cut(&self, cuts: &[usize]) -> RequestRecord {
        let bytes = self.bytes();
        let mark = ReadMark::user(at(50), 1);
        let mut from = 0;
        let ends = cuts.iter().copied().chain([bytes.len()]);
        self.read(ends.map(|end| {
            let piece = &bytes[from..end];
            from = end;
            (mark, piece)
        }))
    }

    fn read<'a>(&self, pieces: impl Iterator<Item = (ReadMark, &'a [u8])>) -> RequestRecord {
        let protocol = Protocol::new(self.api, self.style.clone()).expect("no body of ours");
        let mut reading = Reading::new(Arc::new(protocol));
        if self.keeping {
            reading = reading.keeping_text();
        }
        let ids = TraceIds { trace: 1, span: 2 };
        let mut record = RequestRecord::due(0, stream(self.api, self.streaming), ids, at(0));
        record.timeline.slot_free = Some(at(0));
        record.timeline.start = Some(at(0));
        record.tokens.requested_output = self.asked;
        let (mut last, mut ended) = (ReadMark::user(at(0), 0), self.ended);
        for (mark, bytes) in pieces {
            if reading.is_settled() {
                ended = Ended::Broken;
                break;
            }
            reading.take(bytes, mark, &mut record);
            last = mark;
        }
        record.timeline.end = Some(last.at);
        reading.end(ended, last, &mut record);
        record
    }

    /// Compares what is read with what must be.
    pub(super) fn gives(&self, expected: &Expected) -> RequestRecord {
        let record = self.record();
        expected.check(&record);
        record
    }
}

/// The instant `ms` milliseconds after the start of the request.
pub(super) fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos((1_000 + ms) * 1_000_000)
}

/// A stream of `api`.
pub(in crate::client) fn stream(api: Api, streaming: bool) -> Arc<Stream> {
    Arc::new(Stream {
        id: StreamId(0),
        target_index: 0,
        target: "t".into(),
        endpoint: "http://sim:1".into(),
        probe: "p".into(),
        api,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming,
        closed_loop: false,
        model: OnceLock::from(Box::from("m")),
    })
}

/// What must come out of a response. Times in milliseconds from start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    outcome: Outcome,
    finish: Option<String>,
    ttft: Option<u64>,
    ttfo: Option<u64>,
    last: Option<u64>,
    chunks: usize,
    output: Option<u32>,
    source: Option<TokenSource>,
    itl_us: Option<u64>,
    error: Option<String>,
    notes: Vec<Note>,
}

/// A response that ended well, with this finish reason.
pub(super) fn ok(finish: &str) -> Expected {
    Expected {
        finish: Some(finish.to_owned()),
        ..ended(Outcome::Ok)
    }
}

/// A response of this outcome of which nothing else is known; with an error, if it is a failure
/// that says why.
pub(super) fn ended(outcome: Outcome) -> Expected {
    let silent = matches!(outcome, Outcome::Ok | Outcome::Empty | Outcome::NotAStream);
    Expected {
        outcome,
        finish: None,
        ttft: None,
        ttfo: None,
        last: None,
        chunks: 0,
        output: None,
        source: None,
        itl_us: None,
        error: (!silent).then(|| ANY.to_owned()),
        notes: Vec::new(),
    }
}

impl Expected {
    /// First and last token, the first being no reasoning, in this many chunks.
    pub(super) fn times(mut self, first: u64, last: u64, chunks: usize) -> Self {
        (self.ttft, self.ttfo, self.last) = (Some(first), Some(first), Some(last));
        self.chunks = chunks;
        self
    }

    /// First token that is no reasoning, if another came before it or none came at all.
    pub(super) fn ttfo(mut self, ms: Option<u64>) -> Self {
        self.ttfo = ms;
        self
    }

    /// The end of a response that is not a stream.
    pub(super) fn last(mut self, ms: u64) -> Self {
        self.last = Some(ms);
        self
    }

    /// Output tokens and who counted them.
    pub(super) fn tokens(mut self, output: u32, source: TokenSource) -> Self {
        (self.output, self.source) = (Some(output), Some(source));
        self
    }

    /// Mean time between tokens in microseconds.
    pub(super) fn itl_us(mut self, micros: u64) -> Self {
        self.itl_us = Some(micros);
        self
    }

    pub(super) fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }

    /// Kind of the error.
    pub(super) fn error(mut self, kind: &str) -> Self {
        self.error = Some(kind.to_owned());
        self
    }

    /// Nobody said anything about it.
    pub(super) fn silent(mut self) -> Self {
        self.error = None;
        self
    }

    pub(super) fn notes(mut self, notes: &[Note]) -> Self {
        self.notes = notes.to_vec();
        self
    }

    /// Compares.
    #[track_caller]
    pub(super) fn check(&self, record: &RequestRecord) {
        let mut seen = Self::of(record);
        if self.error.as_deref() == Some(ANY) && seen.error.is_some() {
            seen.error = Some(ANY.to_owned());
        }
        assert_eq!(
            seen, *self,
            "left: read; right: expected; {:?}",
            record.error
        );
    }

    fn of(record: &RequestRecord) -> Self {
        let whole = |span: Option<Duration>| {
            span.map(|span| u64::try_from(span.as_millis()).expect("short"))
        };
        Self {
            outcome: record.outcome,
            finish: record.finish_reason.as_deref().map(str::to_owned),
            ttft: whole(record.ttft()),
            ttfo: whole(record.ttfo()),
            last: whole(record.service_time()),
            chunks: record.chunks.len(),
            output: record.tokens.output,
            source: record.tokens.source,
            itl_us: record.itl().map(micros),
            error: record.error.as_ref().map(|error| error.kind.to_string()),
            notes: record.notes.iter().collect(),
        }
    }
}

/// Microseconds, rounded.
fn micros(span: Duration) -> u64 {
    u64::try_from((span.as_nanos() + 500) / 1_000).expect("short")
}

/// The chunk gaps in milliseconds.
pub(super) fn gaps(record: &RequestRecord) -> Vec<u128> {
    record.chunks.gaps().map(|gap| gap.as_millis()).collect()
}
