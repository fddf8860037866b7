//! What a record says of a response, without what depends on when its bytes came.

use std::sync::{Arc, OnceLock};

use tokencanary::client::{Ended, Protocol, Reading};
use tokencanary::clock::MonoTime;
use tokencanary::config::RequestConfig;
use tokencanary::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Note, Outcome, RequestError, RequestRecord,
    Stream, StreamId, TokenCounts, TraceIds,
};
use tokencanary::transport::ReadMark;

/// How one body is to be read.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) protocol: Arc<Protocol>,
    pub(crate) streaming: bool,
    pub(crate) ended: Ended,
    /// As the head names it.
    pub(crate) encoding: Option<&'static str>,
    /// Whether the text of the answer is kept.
    pub(crate) text: bool,
}

/// A record, less instants, reads and what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    pub(crate) outcome: Outcome,
    pub(crate) tokens: TokenCounts,
    pub(crate) chunks: usize,
    pub(crate) choices: Option<u32>,
    pub(crate) finish: Option<Box<str>>,
    pub(crate) error: Option<RequestError>,
    pub(crate) text: Option<Box<str>>,
    pub(crate) notes: Vec<Note>,
}

impl View {
    pub(crate) fn of(record: &RequestRecord) -> Self {
        // Whether tokens shared a read, and how the reads lie in time, is no matter of bytes.
        let of_bytes = |note: &Note| {
            !matches!(
                note,
                Note::Buffered | Note::FirstTokenMerged | Note::BadStamp
            )
        };
        Self {
            outcome: record.outcome,
            tokens: record.tokens,
            chunks: record.chunks.as_slice().len(),
            choices: record.choices.map(|choices| choices.count),
            finish: record.finish_reason.clone(),
            error: record.error.clone(),
            text: record.text.clone(),
            notes: record.notes.iter().filter(of_bytes).collect(),
        }
    }
}

/// `api` as a target without settings speaks it.
pub(crate) fn protocol(api: Api) -> Arc<Protocol> {
    let mut style = RequestConfig::default();
    if matches!(api, Api::Raw | Api::Template) {
        style.body = Some("{}".to_owned());
        style.text = Some("$.text".to_owned());
    }
    Arc::new(Protocol::new(api, style).expect("the body and the path are good"))
}

/// A record of a request of which nothing came back yet.
pub(crate) fn record(api: Api, streaming: bool) -> RequestRecord {
    let stream = Stream {
        id: StreamId(0),
        target_index: 0,
        target: "target".into(),
        endpoint: "http://server".into(),
        probe: "probe".into(),
        api,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::New,
        length: LengthMode::Exact,
        streaming,
        closed_loop: false,
        model: OnceLock::new(),
    };
    let ids = TraceIds { trace: 1, span: 1 };
    RequestRecord::due(0, Arc::new(stream), ids, MonoTime::from_nanos(0))
}

/// Reads `pieces`, one socket read each, at the milliseconds beside them.
pub(crate) fn read_at<'a>(
    how: &How,
    pieces: impl IntoIterator<Item = (u64, &'a [u8])>,
) -> RequestRecord {
    let mut record = record(how.protocol.api(), how.streaming);
    let mut reading = reading(how);
    let mut last = ReadMark::user(MonoTime::from_nanos(0), 0);
    for (ms, bytes) in pieces {
        last = ReadMark::user(MonoTime::from_nanos(ms * 1_000_000), last.number + 1);
        reading.take(bytes, last, &mut record);
    }
    reading.end(how.ended, last, &mut record);
    record
}

/// Reads `pieces` a millisecond apart.
pub(crate) fn read<'a>(how: &How, pieces: impl IntoIterator<Item = &'a [u8]>) -> RequestRecord {
    read_at(how, (1..).zip(pieces))
}

/// Reads `pieces` as the client does, which stops when the outcome is settled.
pub(crate) fn read_until_settled<'a>(
    how: &How,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Option<RequestRecord> {
    let mut record = record(how.protocol.api(), how.streaming);
    let mut reading = reading(how);
    let mut last = ReadMark::user(MonoTime::from_nanos(0), 0);
    for bytes in pieces {
        last = ReadMark::user(
            last.at + std::time::Duration::from_millis(1),
            last.number + 1,
        );
        reading.take(bytes, last, &mut record);
        if reading.is_settled() {
            reading.end(Ended::Broken, last, &mut record);
            return Some(record);
        }
    }
    None
}

fn reading(how: &How) -> Reading {
    let mut reading = Reading::new(Arc::clone(&how.protocol));
    if how.text {
        reading = reading.keeping_text();
    }
    if let Some(encoding) = how.encoding {
        reading.encoded(encoding);
    }
    reading
}
