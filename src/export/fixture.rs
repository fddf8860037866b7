//! Records with hand-written instants for the tests of this room.

use std::sync::{Arc, OnceLock};

use crate::clock::{MonoTime, WallAnchor};
use crate::measurement::{
    Api, CacheMode, Chunk, ConnectionPolicy, GpuAt, GpuState, GpuStates, LengthMode, Observed,
    Outcome, RefusedReason, RequestError, RequestRecord, StallRule, StateAt, Stream, StreamId,
    TcpFacts, TokenCounts, TokenSource, TraceIds,
};
use crate::telemetry::{ExportCounters, SelfMetrics};

/// A stall is a gap above 20 ms here.
pub(super) const STALL: StallRule = StallRule {
    factor: 2.0,
    floor: std::time::Duration::from_millis(20),
};

/// The instant `us` microseconds after the origin.
pub(super) fn us(us: u64) -> MonoTime {
    MonoTime::from_nanos(us * 1_000)
}

/// The origin is 2026-11-29T12:00:00Z.
pub(super) fn wall() -> WallAnchor {
    WallAnchor::new(MonoTime::ZERO, 1_795_953_600_000_000_000)
}

/// Counters in a registry of their own.
pub(super) fn counters() -> ExportCounters {
    SelfMetrics::new()
        .expect("the metrics do not collide")
        .export("test")
}

/// All that ended one way or another.
pub(super) fn settled(counters: &ExportCounters) -> u64 {
    counters.sent.get() + counters.rejected.get() + counters.dropped.get() + counters.failed.get()
}

fn stream(streaming: bool) -> Arc<Stream> {
    let stream = Stream {
        id: StreamId(0),
        target_index: 0,
        target: "qwen-prod".into(),
        endpoint: "http://vllm.svc:8000".into(),
        probe: "short-chat".into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming,
        closed_loop: false,
        model: OnceLock::new(),
    };
    stream.model.set("qwen".into()).expect("set once");
    Arc::new(stream)
}

fn due(sequence: u64, streaming: bool) -> RequestRecord {
    let ids = TraceIds {
        trace: 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef,
        span: 0x00f0_67aa_0ba9_02b7 + sequence,
    };
    RequestRecord::due(sequence, stream(streaming), ids, us(1_000_000))
}

/// What the workload asked for, once a prompt was made.
fn asked() -> TokenCounts {
    TokenCounts {
        requested_input: Some(128),
        requested_output: Some(64),
        ..TokenCounts::default()
    }
}

fn with_state(record: RequestRecord) -> Observed {
    Observed {
        record,
        at_intended: Some(StateAt {
            running: Some(3.0),
            waiting: Some(0.0),
            swapped: None,
            kv_usage: Some(0.41),
            prefix_hit_rate: None,
            age_ms: 180.5,
        }),
        at_first_token: None,
        at_end: None,
        gpu: None,
    }
}

/// Due at 1 s; slot after 2 ms, start 0.25 ms later; chunks at 10.2, 12, 13 and 43 ms from
/// start, the last one a stall.
pub(super) fn streamed() -> Observed {
    let mut record = due(17, true);
    let start = 1_002_250;
    let time = &mut record.timeline;
    time.slot_free = Some(us(1_002_000));
    time.start = Some(us(start));
    time.sent_first = Some(us(start + 80));
    time.sent = Some(us(start + 100));
    time.headers = Some(us(start + 9_800));
    time.first_byte = Some(us(start + 9_900));
    time.first_event = Some(us(start + 10_000));
    time.first_token = Some(us(start + 10_200));
    time.first_output = Some(us(start + 12_000));
    time.last_token = Some(us(start + 43_000));
    time.end = Some(us(start + 43_400));
    for (read, offset) in (0..).zip([10_200, 12_000, 13_000, 43_000]) {
        let at = us(start + offset);
        record.chunks.push(Chunk::exact(at, read));
    }
    record.reused = Some(true);
    record.tokens = TokenCounts {
        input: Some(130),
        output: Some(5),
        reasoning: Some(1),
        reasoning_came: true,
        cached: Some(0),
        source: Some(TokenSource::Usage),
        ..asked()
    };
    record.bytes = 31_244;
    record.outcome = Outcome::Ok;
    record.http_status = Some(200);
    record.finish_reason = Some("length".into());
    with_state(record)
}

/// The same, with what is known of two GPUs when it was due and at its first token.
pub(super) fn with_gpus() -> Observed {
    let state = GpuState {
        gpus: 2,
        utilization: Some(0.75),
        utilization_min: Some(0.5),
        utilization_max: Some(1.0),
        memory_min: Some(0.8),
        memory_max: Some(0.9),
        sm_clock_hz: Some(1.98e9),
        power_w: Some(800.5),
        energy_j: Some(123_456.5),
        temperature_c: Some(61.0),
        throttled: Some(false),
        xid: Some(0),
        sm_active: Some(0.5),
        tensor_active: Some(0.25),
        dram_active: None,
    };
    let at = |age_ms| Some(GpuAt { state, age_ms });
    let mut record = streamed().record;
    record.tcp = Some(TcpFacts {
        rtt: std::time::Duration::from_micros(1_250),
        rtt_deviation: std::time::Duration::from_micros(300),
        retransmits: Some(1),
    });
    Observed {
        record,
        gpu: Some(Box::new(GpuStates {
            intended: at(250.0),
            first_token: at(262.25),
            end: None,
        })),
        ..streamed()
    }
}

/// Refused for a full in-flight cap; nothing is known of the server.
pub(super) fn refused() -> Observed {
    let mut record = due(18, true);
    record.outcome = Outcome::Refused;
    record.refused = Some(RefusedReason::InFlight);
    Observed {
        record,
        at_intended: None,
        at_first_token: None,
        at_end: None,
        gpu: None,
    }
}

/// A new connection: resolved after 0.5 ms, refused after 0.9 ms; the model is not known.
pub(super) fn no_connection() -> Observed {
    let mut record = due(19, true);
    let mut stream = Arc::into_inner(record.stream).expect("no one else has it");
    stream.model = OnceLock::new();
    stream.connection = ConnectionPolicy::New;
    record.stream = Arc::new(stream);
    record.timeline.slot_free = Some(us(1_000_000));
    record.timeline.start = Some(us(1_000_060));
    record.timeline.resolved = Some(us(1_000_560));
    record.timeline.end = Some(us(1_000_960));
    record.reused = Some(false);
    record.tokens = asked();
    record.outcome = Outcome::Connect;
    record.error = Some(RequestError {
        kind: "connection refused".into(),
        message: "tcp connect: \"refused\"".into(),
    });
    Observed {
        record,
        at_intended: None,
        at_first_token: None,
        at_end: None,
        gpu: None,
    }
}

/// Not streamed, on a new connection: resolved after 0.5 ms, connected 0.25 ms later.
pub(super) fn unary() -> Observed {
    let mut record = due(20, false);
    let start = 1_000_000;
    let time = &mut record.timeline;
    time.slot_free = Some(us(start));
    time.start = Some(us(start));
    time.resolved = Some(us(start + 500));
    time.connected = Some(us(start + 750));
    time.sent_first = Some(us(start + 800));
    time.sent = Some(us(start + 810));
    time.headers = Some(us(start + 320_000));
    time.first_byte = Some(us(start + 320_000));
    time.last_token = Some(us(start + 320_100));
    time.end = Some(us(start + 320_100));
    record.reused = Some(false);
    record.tokens = TokenCounts {
        input: Some(130),
        output: Some(64),
        source: Some(TokenSource::Usage),
        ..asked()
    };
    record.bytes = 812;
    record.outcome = Outcome::Ok;
    record.http_status = Some(200);
    record.finish_reason = Some("stop".into());
    with_state(record)
}

/// Any record at all.
pub(super) fn observed() -> Arc<Observed> {
    Arc::new(streamed())
}

/// The streamed record as number `sequence`, with a span id of its own.
pub(super) fn numbered(sequence: u64) -> Arc<Observed> {
    let mut observed = streamed();
    observed.record.sequence = sequence;
    observed.record.ids.span = 1_000 + sequence;
    Arc::new(observed)
}
