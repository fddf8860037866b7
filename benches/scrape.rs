//! How long a page of fifty busy streams takes to write, in each format, and how large it is.
//!
//! `cargo bench --bench scrape`. Every stream has two thousand records whose latencies fill the
//! histograms, a limit of its own and exemplars. The bar is 20 ms for the page, which is what the
//! lock on the live state is held for; packing it comes after, without the lock. Prints the
//! least and the middle of the runs.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints what it measured in real time"
)]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokencanary::aggregate::{ExportedSpan, Live, StreamRules};
use tokencanary::clock::MonoTime;
use tokencanary::config::DEFAULT_STALL;
use tokencanary::export::prometheus::{Encoding, Format, View, pack, render};
use tokencanary::measurement::{
    Api, CacheMode, Chunk, ConnectionPolicy, LengthMode, Observed, Outcome, RequestRecord, Slo,
    SloLimit, SloMetric, Stream, StreamId, TokenSource, TraceIds,
};
use tokencanary::telemetry::SelfMetrics;

const STREAMS: u16 = 50;
const RECORDS: u32 = 2_000;
const RUNS: usize = 41;
const STARTED: u64 = 1_795_953_601_000_000_000;

fn main() {
    let live = busy();
    let own = SelfMetrics::new().expect("our metrics do not collide");
    let gathered = own.gather();
    let view = View {
        live: &live,
        gauges: &[],
        own: &gathered,
        started_unix_ns: STARTED,
    };
    println!("{STREAMS} streams, {RECORDS} records each; milliseconds, {RUNS} runs");
    println!("format            bytes   least  middle    gzip: bytes   least  middle");
    for (name, format) in [
        ("text 0.0.4", Format::Text),
        ("OpenMetrics", Format::OpenMetrics),
        ("protobuf", Format::Protobuf),
    ] {
        let page = render(format, &view);
        let packed = pack(Encoding::Gzip, page.clone()).len();
        let (least, middle) = timed(|| render(format, &view));
        let (least_packing, middle_packing) = timed(|| pack(Encoding::Gzip, page.clone()));
        println!(
            "{name:<14} {:>8}  {least:>6.2}  {middle:>6.2}       {packed:>8}  {least_packing:>6.2}  {middle_packing:>6.2}",
            page.len(),
        );
    }
}

/// The least and the middle time that `work` takes.
fn timed(work: impl Fn() -> Vec<u8>) -> (f64, f64) {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            std::hint::black_box(work());
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    (ms(times[0]), ms(times[RUNS / 2]))
}

fn busy() -> Live {
    let streams: Vec<Arc<Stream>> = (0..STREAMS).map(stream).collect();
    let rules = |stream: &Arc<Stream>| {
        // Ten different limits, none of them on the grid.
        let ms = 310 + 10 * u64::from(stream.id.0 % 10);
        let limit = SloLimit {
            at_most: Duration::from_millis(ms),
            objective: Some(0.95),
        };
        let rules = StreamRules {
            stall: DEFAULT_STALL,
            total: Duration::from_mins(1),
            slo: Slo::NONE.with_limit(SloMetric::Ttft, limit),
            knows_answers: false,
        };
        (Arc::clone(stream), rules)
    };
    let mut live = Live::new(streams.iter().map(rules).collect(), 1);
    for stream in &streams {
        for n in 0..RECORDS {
            let (observed, span) = record(stream, n);
            live.observe(Arc::new(observed), Some(span));
        }
    }
    live
}

/// Request `n`: its latencies are spread over three factors of ten.
fn record(stream: &Arc<Stream>, n: u32) -> (Observed, ExportedSpan) {
    let ids = TraceIds {
        trace: u128::from(n) + 1,
        span: u64::from(n) + 1,
    };
    let share = f64::from((n * 619) % RECORDS) / f64::from(RECORDS);
    let scale = 1_000.0_f64.powf(share);
    let due = MonoTime::ZERO + Duration::from_secs(u64::from(n));
    let start = due + Duration::from_secs_f64(30e-6 * scale);
    let first = start + Duration::from_secs_f64(8e-3 * scale);
    let gap = Duration::from_secs_f64(1e-3 * scale);
    let mut record = RequestRecord::due(u64::from(n), Arc::clone(stream), ids, due);
    let line = &mut record.timeline;
    line.slot_free = Some(due + Duration::from_secs_f64(1e-3 * scale));
    line.start = Some(start);
    line.connected = Some(start + Duration::from_secs_f64(200e-6 * scale));
    line.first_event = Some(first);
    line.first_token = Some(first);
    line.first_output = Some(first);
    for read in 0..16 {
        record.chunks.push(Chunk::exact(first + gap * read, read));
    }
    line.last_token = Some(first + gap * 15);
    line.end = Some(first + gap * 15);
    record.read_lag = Some(Duration::from_secs_f64(20e-6 * scale));
    record.tokens.input = Some(128);
    record.tokens.output = Some(16);
    record.tokens.source = Some(TokenSource::Usage);
    record.http_status = Some(200);
    record.outcome = Outcome::Ok;
    let observed = Observed {
        record,
        at_intended: None,
        at_first_token: None,
        at_end: None,
        gpu: None,
    };
    let unix_ns = STARTED + u64::from(n) * 1_000_000_000;
    (observed, ExportedSpan { ids, unix_ns })
}

fn stream(id: u16) -> Arc<Stream> {
    let stream = Stream {
        id: StreamId(id),
        target_index: 0,
        target: "qwen-prod".into(),
        endpoint: format!("http://vllm-{id}.inference.svc.cluster.local:8000").into(),
        probe: format!("short-chat-{id}").into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming: true,
        closed_loop: false,
        model: OnceLock::new(),
    };
    stream
        .model
        .set("Qwen/Qwen3-0.6B".into())
        .expect("set once");
    Arc::new(stream)
}
