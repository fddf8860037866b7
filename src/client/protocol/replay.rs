//! What the tests of the protocols share: what is asked, and a response as it is written down.

use std::sync::{Arc, OnceLock};

use super::Protocol;
use crate::client::{Ended, Reading};
use crate::clock::MonoTime;
use crate::config::RequestConfig;
use crate::load::workload::Prompt;
use crate::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, RequestRecord, Stream, StreamId, TraceIds,
};
use crate::transport::ReadMark;

/// Path and body of the request for the prompt `hi` to the model `m`.
pub(super) fn asked(api: Api, streaming: bool, output_tokens: Option<u32>) -> (String, String) {
    asked_in(RequestConfig::default(), api, streaming, output_tokens)
}

/// As [`asked`], in the operator's way.
pub(super) fn asked_in(
    style: RequestConfig,
    api: Api,
    streaming: bool,
    output_tokens: Option<u32>,
) -> (String, String) {
    let protocol = Protocol::new(api, style).expect("no body of the operator's");
    let prompt = Prompt {
        text: "hi".to_owned(),
        input_tokens: Some(1),
        output_tokens,
        ..Prompt::default()
    };
    let ask = protocol.ask("m", &prompt, streaming);
    let body = String::from_utf8(protocol.body(&ask).expect("no template")).expect("JSON");
    (protocol.path(&ask), body)
}

/// The record of a response that ends well, read at once and again byte by byte: both must
/// agree. Each byte of the latter is a read of its own, one microsecond after the one before.
pub(super) fn replay(api: Api, streaming: bool, body: &str) -> RequestRecord {
    let whole = read((api, streaming), &[body.as_bytes()]);
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    let split = read((api, streaming), &bytes);
    let told = |record: &RequestRecord| {
        (
            record.outcome,
            record.error.clone(),
            record.tokens,
            record.finish_reason.clone(),
            record.chunks.len(),
        )
    };
    assert_eq!(told(&whole), told(&split), "the cuts do not matter");
    split
}

fn read((api, streaming): (Api, bool), pieces: &[&[u8]]) -> RequestRecord {
    let protocol = Protocol::new(api, RequestConfig::default()).expect("no body");
    let stream = Arc::new(Stream {
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
        model: OnceLock::new(),
    });
    let ids = TraceIds { trace: 1, span: 2 };
    let mut record = RequestRecord::due(0, stream, ids, MonoTime::from_nanos(0));
    let mut reading = Reading::new(Arc::new(protocol));
    let mut last = ReadMark::user(MonoTime::from_nanos(0), 0);
    for (number, piece) in (1..).zip(pieces) {
        last = ReadMark::user(MonoTime::from_nanos(1_000 * u64::from(number)), number);
        reading.take(piece, last, &mut record);
    }
    reading.end(Ended::Complete, last, &mut record);
    record
}
