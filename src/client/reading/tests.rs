//! The reading of hand-written streams: every mark, count, note and outcome.

mod counts;
mod outcomes;
mod times;
mod unary;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::*;
use crate::clock::MonoTime;
use crate::config::RequestConfig;
use crate::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Note, Outcome, Stream, StreamId, TokenSource,
    TraceIds,
};
use crate::transport::StampClock;

fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos(ms * 1_000_000)
}

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// A response to a request that began at 0 ms.
struct Played {
    api: Api,
    style: RequestConfig,
    streaming: bool,
    requested: Option<u32>,
    keep_text: bool,
    keep_reply: bool,
}

impl Default for Played {
    fn default() -> Self {
        Self {
            api: Api::Chat,
            style: RequestConfig::default(),
            streaming: true,
            requested: None,
            keep_text: false,
            keep_reply: false,
        }
    }
}

impl Played {
    fn record(&self) -> RequestRecord {
        let stream = Arc::new(Stream {
            id: StreamId(0),
            target_index: 0,
            target: "t".into(),
            endpoint: "http://t".into(),
            probe: "p".into(),
            api: self.api,
            cache: CacheMode::Cold,
            connection: ConnectionPolicy::Pooled,
            length: LengthMode::Exact,
            streaming: self.streaming,
            closed_loop: false,
            model: OnceLock::new(),
        });
        let ids = TraceIds { trace: 1, span: 1 };
        let mut record = RequestRecord::due(0, stream, ids, at(0));
        record.timeline.slot_free = Some(at(0));
        record.timeline.start = Some(at(0));
        record.tokens.requested_output = self.requested;
        record
    }

    fn reads(self, reads: &[(ReadMark, &[u8])], ended: Ended) -> RequestRecord {
        let mut record = self.record();
        let protocol = Protocol::new(self.api, self.style).expect("no body");
        let mut reading = Reading::new(Arc::new(protocol));
        if self.keep_text {
            reading = reading.keeping_text();
        }
        if self.keep_reply {
            reading = reading.keeping_reply();
        }
        let mut last = ReadMark::user(at(0), 0);
        for (read, bytes) in reads {
            last = *read;
            reading.take(bytes, *read, &mut record);
        }
        reading.end(ended, last, &mut record);
        record
    }

    /// Each text comes in a read of its own, at these milliseconds, by our own clock.
    fn texts(self, texts: &[(u64, &str)]) -> RequestRecord {
        let reads: Vec<_> = (1..)
            .zip(texts)
            .map(|(number, (ms, text))| (ReadMark::user(at(*ms), number), text.as_bytes()))
            .collect();
        self.reads(&reads, Ended::Complete)
    }

    /// Each value is the data of an event, in a read of its own every 10 ms from 100 ms on.
    fn events(self, events: &[&str]) -> RequestRecord {
        let texts: Vec<(u64, String)> = (10..)
            .zip(events)
            .map(|(step, event)| (step * 10, format!("data: {event}\n\n")))
            .collect();
        let texts: Vec<(u64, &str)> = texts.iter().map(|(ms, text)| (*ms, &**text)).collect();
        self.texts(&texts)
    }
}

fn events(events: &[&str]) -> RequestRecord {
    Played::default().events(events)
}

const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const A: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
const THOUGHT: &str = r#"{"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}"#;
const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
const DONE: &str = "[DONE]";

fn usage(output: &str) -> String {
    format!(r#"{{"choices":[],"usage":{{"prompt_tokens":5,"completion_tokens":{output}}}}}"#)
}

fn content(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

fn choice(index: u32, text: &str) -> String {
    format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
}

fn notes(record: &RequestRecord) -> Vec<Note> {
    record.notes.iter().collect()
}
