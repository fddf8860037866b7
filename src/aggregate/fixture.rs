//! Hand-made streams and records for the tests of this room and of `export`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::StreamRules;
use crate::clock::MonoTime;
use crate::measurement::{
    Api, CacheMode, Chunk, ConnectionPolicy, LengthMode, Observed, Outcome, RefusedReason,
    RequestRecord, Slo, StallRule, Stream, StreamId, TokenSource, TraceIds,
};

pub(crate) const RULES: StreamRules = StreamRules {
    stall: StallRule {
        factor: 10.0,
        floor: Duration::from_millis(250),
    },
    total: Duration::from_mins(1),
    slo: Slo::NONE,
    knows_answers: false,
};

/// An instant in milliseconds after the origin.
pub(crate) fn ms(value: u64) -> MonoTime {
    MonoTime::from_nanos(value * 1_000_000)
}

/// Stream `id` of target `t`, probe `p`; its model is not known.
pub(crate) fn stream(id: u16) -> Arc<Stream> {
    Arc::new(Stream {
        id: StreamId(id),
        target_index: 0,
        target: "t".into(),
        endpoint: "http://t:1".into(),
        probe: "p".into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming: true,
        closed_loop: false,
        model: OnceLock::new(),
    })
}

/// An `ok` record, due at `due`, slot free and started 1 ms later, its tokens so many
/// milliseconds after start, one per chunk; 20 tokens of input.
pub(crate) fn ok(stream: &Arc<Stream>, due: u64, tokens: &[u64]) -> Observed {
    let mut record = RequestRecord::due(
        0,
        Arc::clone(stream),
        TraceIds { trace: 1, span: 1 },
        ms(due),
    );
    let start = due + 1;
    let at = |after: &u64| ms(start + after);
    let line = &mut record.timeline;
    line.slot_free = Some(ms(start));
    line.start = Some(ms(start));
    line.first_event = tokens.first().map(at);
    line.first_token = tokens.first().map(at);
    line.first_output = tokens.first().map(at);
    line.last_token = tokens.last().map(at);
    line.end = tokens.last().map(at);
    for (read, after) in (0_u32..).zip(tokens) {
        record.chunks.push(Chunk::exact(at(after), read));
    }
    record.tokens.input = Some(20);
    record.tokens.output = u32::try_from(tokens.len()).ok();
    record.tokens.source = Some(TokenSource::Usage);
    record.http_status = Some(200);
    record.outcome = Outcome::Ok;
    Observed {
        record,
        at_intended: None,
        at_first_token: None,
        at_end: None,
        gpu: None,
    }
}

/// A record that failed as `outcome`, started 1 ms after it was due, ended 10 ms later.
pub(crate) fn failed(
    stream: &Arc<Stream>,
    due: u64,
    outcome: Outcome,
    status: Option<u16>,
) -> Observed {
    let mut observed = ok(stream, due, &[]);
    observed.record.outcome = outcome;
    observed.record.http_status = status;
    observed.record.tokens.input = None;
    observed.record.tokens.output = None;
    observed.record.timeline.end = Some(ms(due + 11));
    observed
}

/// An arrival that was held back for `reason`.
pub(crate) fn refused(stream: &Arc<Stream>, due: u64, reason: RefusedReason) -> Observed {
    let mut observed = failed(stream, due, Outcome::Refused, None);
    observed.record.refused = Some(reason);
    observed.record.timeline.slot_free = None;
    observed.record.timeline.start = None;
    observed.record.timeline.end = None;
    observed
}
