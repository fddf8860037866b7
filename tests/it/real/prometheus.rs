//! Ten thousand requests whose TTFT is known, on our page, read by a real Prometheus: what it
//! makes of the native and of the classic histogram, of a limit, and of the exemplars. And what
//! the reference parser and promtool say of the pages.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokencanary::aggregate::{ExportedSpan, Live, StreamRules};
use tokencanary::analysis::Watch;
use tokencanary::clock::{MonoTime, TimeAnchor};
use tokencanary::config::DEFAULT_STALL;
use tokencanary::export::catalog;
use tokencanary::export::prometheus::Gauge;
use tokencanary::measurement::{
    Api, CacheMode, Chunk, ConnectionPolicy, LengthMode, Observed, Outcome, RequestRecord, Slo,
    SloLimit, SloMetric, Stream, StreamId, TokenSource, TraceIds,
};
use tokencanary::telemetry::SelfMetrics;
use tokencanary::web::{Exposure, RunInfo, SurfaceState, router, serve};
use tokio_util::sync::CancellationToken;

use super::components::{Prometheus, Scrape, component};
use super::proxy::unix_ns;
use crate::program::{http_client, scratch, tell};

const REQUESTS: u32 = 10_000;
/// No bound of the grid: its neighbours are 0.25 and 0.354 s.
const LIMIT: Duration = Duration::from_millis(300);
/// Bucket width of the histogram: 32 buckets to a factor of two.
const BUCKET: f64 = 1.021_897_148_654_116_6;
const SOON: Duration = Duration::from_mins(1);

const TTFT: &str = "tokencanary_request_ttft_seconds";

/// One request as it was counted.
#[derive(Clone, Copy)]
struct Known {
    ttft: Duration,
    ids: TraceIds,
}

/// TTFT from 1 ms to 60 s, evenly on a logarithmic scale, in an order that is none.
fn known() -> Vec<Known> {
    let steps = f64::from(REQUESTS - 1);
    let one = |n: u32| {
        let place = (n * 7_919) % REQUESTS;
        let seconds = 1e-3 * 60_000.0_f64.powf(f64::from(place) / steps);
        Known {
            ttft: Duration::from_secs_f64(seconds),
            ids: TraceIds {
                trace: u128::from(n) + 1,
                span: u64::from(n) + 1,
            },
        }
    };
    (0..REQUESTS).map(one).collect()
}

fn stream() -> Arc<Stream> {
    Arc::new(Stream {
        id: StreamId(0),
        target_index: 0,
        target: "known".into(),
        endpoint: "http://known:1".into(),
        probe: "p\"q\\r".into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming: true,
        closed_loop: false,
        model: OnceLock::new(),
    })
}

fn record(stream: &Arc<Stream>, known: &Known, sequence: u64) -> RequestRecord {
    let due = MonoTime::ZERO + Duration::from_millis(sequence);
    let first = due + known.ttft;
    let last = first + Duration::from_millis(40);
    let mut record = RequestRecord::due(sequence, Arc::clone(stream), known.ids, due);
    let line = &mut record.timeline;
    line.slot_free = Some(due);
    line.start = Some(due);
    line.first_event = Some(first);
    line.first_token = Some(first);
    line.first_output = Some(first);
    line.last_token = Some(last);
    line.end = Some(last);
    record.chunks.push(Chunk::exact(first, 0));
    record.chunks.push(Chunk::exact(last, 1));
    record.tokens.input = Some(16);
    record.tokens.output = Some(2);
    record.tokens.source = Some(TokenSource::Usage);
    record.http_status = Some(200);
    record.outcome = Outcome::Ok;
    record
}

/// The live state after `all`, and one more that was cut without a token.
fn live(all: &[Known]) -> Live {
    let stream = stream();
    let limit = SloLimit {
        at_most: LIMIT,
        objective: Some(0.95),
    };
    let rules = StreamRules {
        stall: DEFAULT_STALL,
        total: Duration::from_mins(2),
        slo: Slo::NONE
            .with_limit(SloMetric::Ttft, limit)
            .with_success(0.99),
        knows_answers: false,
    };
    let mut live = Live::new(vec![(Arc::clone(&stream), rules)], 1);
    let began = unix_ns();
    let mut observe = |record: RequestRecord, sequence: u64| {
        let span = ExportedSpan {
            ids: record.ids,
            // A millisecond apart, the last one now.
            unix_ns: began - (u64::from(REQUESTS) - sequence) * 1_000_000,
        };
        let observed = Observed {
            record,
            at_intended: None,
            at_first_token: None,
            at_end: None,
            gpu: None,
        };
        live.observe(Arc::new(observed), Some(span));
    };
    for (sequence, known) in (0..).zip(all) {
        observe(record(&stream, known, sequence), sequence);
    }
    let cut = Known {
        ttft: Duration::ZERO,
        ids: TraceIds {
            trace: 0xdead,
            span: 0xdead,
        },
    };
    let mut record = record(&stream, &cut, u64::from(REQUESTS));
    record.outcome = Outcome::StreamCut;
    observe(record, u64::from(REQUESTS));
    live
}

/// Our page with the live state of `all`, until `stop`. Gives its address.
async fn page(all: &[Known], stop: CancellationToken) -> String {
    let anchor = TimeAnchor::start();
    let state = SurfaceState {
        live: Arc::new(Mutex::new(live(all))),
        watch: Arc::new(Mutex::new(Watch::new([]))),
        anchor,
        own: SelfMetrics::new().expect("our metrics do not collide"),
        gauges: Arc::new(|| {
            vec![Gauge {
                metric: &catalog::TARGET_INFO,
                labels: vec![("service_name", "tokencanary".to_owned())],
                value: 1.0,
            }]
        }),
        marked: Arc::new(drop),
        ready: Arc::new(AtomicBool::new(true)),
        info: RunInfo {
            version: "0",
            command: "run",
            seed: 0,
            started_unix_ns: unix_ns() - 3_600_000_000_000,
        },
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound").to_string();
    let served = serve(
        listener,
        router(state, Exposure::Loopback),
        stop.cancelled_owned(),
    );
    tokio::spawn(served);
    address
}

/// The ⌈0.95 n⌉-th smallest.
fn p95(all: &[Known]) -> f64 {
    let mut sorted: Vec<Duration> = all.iter().map(|known| known.ttft).collect();
    sorted.sort_unstable();
    sorted[(sorted.len() * 95).div_ceil(100) - 1].as_secs_f64()
}

fn held(all: &[Known]) -> usize {
    all.iter().filter(|known| known.ttft <= LIMIT).count()
}

/// Waits until `prometheus` has scraped, and gives the instant of a query that sees it.
async fn scraped(prometheus: &mut Prometheus) -> f64 {
    let url = format!(
        "{}/api/v1/query?query=tokencanary_arrivals_total",
        prometheus.url
    );
    prometheus
        .program
        .until("scrape of our page", SOON, async || {
            let answer: Value = serde_json::from_str(&crate::program::get(&url).await?).ok()?;
            answer["data"]["result"].as_array()?.first()?["value"][0].as_f64()
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_native_histogram_is_right_to_its_bucket() {
    let all = known();
    let stop = CancellationToken::new();
    let address = page(&all, stop.clone()).await;
    let folder = scratch("real_prometheus_native");
    let mut prometheus = Prometheus::start_as(&folder, &address, Scrape::Native).await;
    let at = scraped(&mut prometheus).await;

    let count = prometheus
        .value(&format!("histogram_count({TTFT})"), at)
        .await;
    assert_eq!(count, Some(10_000.0));
    let native = format!("histogram_quantile(0.95, {TTFT})");
    let found = prometheus.value(&native, at).await.expect("a quantile");
    let exact = p95(&all);
    let ratio = (found / exact).max(exact / found);
    tell(&format!(
        "p95 {found} s in the native histogram, {exact} s exactly: ratio {ratio:.5}"
    ));
    assert!(ratio <= BUCKET, "{found} against {exact}");

    let exemplars = prometheus.exemplars(TTFT, at).await;
    tell(&format!(
        "{} exemplars of the native histogram",
        exemplars.len()
    ));
    // 2.42 takes those of the classic buckets in the order of the buckets, and of these only
    // ones that are newer than the last; later versions sort the native list by time.
    check_exemplars(&all, &exemplars, 1);
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_classic_histogram_is_right_to_its_bucket_and_exact_at_a_limit() {
    let all = known();
    let stop = CancellationToken::new();
    let address = page(&all, stop.clone()).await;
    let folder = scratch("real_prometheus_classic");
    let mut prometheus = Prometheus::start_as(&folder, &address, Scrape::Classic).await;
    let at = scraped(&mut prometheus).await;

    let bounds = prometheus.bounds(&format!("{TTFT}_bucket"), at).await;
    assert_eq!(
        bounds.len(),
        32,
        "30 of the grid, the limit, +Inf: {bounds:?}"
    );
    let classic = format!("histogram_quantile(0.95, {TTFT}_bucket)");
    let found = prometheus.value(&classic, at).await.expect("a quantile");
    let exact = p95(&all);
    let above = bounds.partition_point(|bound| *bound < exact);
    let (lower, upper) = (bounds[above - 1], bounds[above]);
    tell(&format!(
        "p95 {found} s in the classic histogram, {exact} s exactly, bucket {lower} to {upper}"
    ));
    assert!(
        (lower..=upper).contains(&found),
        "{found} in {lower} to {upper}"
    );

    let share = format!("{TTFT}_bucket{{le=\"0.3\"}} / ignoring(le) {TTFT}_count");
    let objective = "tokencanary_slo_good_total{slo=\"ttft\"}";
    let events = "tokencanary_slo_events_total{slo=\"ttft\"}";
    let held = held(&all);
    tell(&format!("{held} of 10000 within the limit"));
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let exact = held as f64;
    for (query, wanted) in [
        (share.as_str(), exact / 10_000.0),
        (objective, exact),
        (events, 10_001.0),
        ("tokencanary_slo_good_total{slo=\"success\"}", 10_000.0),
        ("tokencanary_slo_limit_seconds", 0.3),
        (
            "tokencanary_request_ttft_or_failure_seconds_count",
            10_001.0,
        ),
        ("target_info{service_name=\"tokencanary\"}", 1.0),
    ] {
        let found = prometheus.value(query, at).await;
        assert!(
            found.is_some_and(|found| (found - wanted).abs() < 1e-12),
            "{query}: {found:?}, not {wanted}"
        );
    }

    let exemplars = prometheus.exemplars(&format!("{TTFT}_bucket"), at).await;
    tell(&format!(
        "{} exemplars of the classic histogram",
        exemplars.len()
    ));
    check_exemplars(&all, &exemplars, 5);
    let failures = "tokencanary_request_ttft_or_failure_seconds_bucket{le=\"+Inf\"}";
    let failed = prometheus.exemplars(failures, at).await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0]["labels"]["trace_id"], format!("{:032x}", 0xdead));
    assert_eq!(failed[0]["value"], "+Inf");
    stop.cancel();
}

/// There are at least `least`, and each is one of our requests, with its value.
fn check_exemplars(all: &[Known], exemplars: &[Value], least: usize) {
    let by_trace: HashMap<String, f64> = all
        .iter()
        .map(|known| (known.ids.trace_hex(), known.ttft.as_secs_f64()))
        .collect();
    assert!((least..=10).contains(&exemplars.len()), "{exemplars:?}");
    for exemplar in exemplars {
        let trace = exemplar["labels"]["trace_id"].as_str().expect("a trace id");
        let value: f64 = exemplar["value"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("a value");
        let wanted = by_trace[trace];
        assert!((value / wanted - 1.0).abs() < 1e-12, "{exemplar}: {wanted}");
        let span = exemplar["labels"]["span_id"].as_str().expect("a span id");
        assert_eq!(trace.trim_start_matches('0'), span.trim_start_matches('0'));
    }
}

/// Our page as someone who accepts `accept` gets it.
async fn page_as(address: &str, accept: &str) -> String {
    let client = http_client().build().expect("the options are fixed");
    let answer = client
        .get(format!("http://{address}/metrics"))
        .header("accept", accept)
        .send()
        .await
        .expect("it is served");
    assert_eq!(answer.status(), 200);
    let kind = answer.headers()["content-type"].to_str().expect("text");
    assert!(
        kind.starts_with(accept.split(';').next().unwrap_or_default()),
        "{kind}"
    );
    answer.text().await.expect("text")
}

/// What `command` prints of `page`; it must end well.
pub(super) fn told_of(mut command: Command, page: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is installed");
    let mut input = child.stdin.take().expect("it is piped");
    let page = page.to_owned();
    let writer = std::thread::spawn(move || input.write_all(page.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads all");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_parser_reads_the_page_as_it_was_meant() {
    let all = known();
    let stop = CancellationToken::new();
    let address = page(&all, stop.clone()).await;
    let page = page_as(&address, "application/openmetrics-text; version=1.0.0").await;
    let mut python = Command::new(component("TOKENCANARY_PYTHON"));
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/components/parse_open_metrics.py"
    );
    python.arg(script);
    let read: Value = serde_json::from_str(&told_of(python, &page)).expect("it prints JSON");

    let ttft = &read[TTFT];
    assert_eq!(ttft["type"], "histogram");
    assert_eq!(ttft["unit"], "seconds");
    let samples = ttft["samples"].as_array().expect("a list");
    let value = |name: &str, le: Option<&str>| {
        let mut found = samples
            .iter()
            .filter(|sample| sample["name"] == name && sample["labels"]["le"].as_str() == le);
        found.next().unwrap_or_else(|| panic!("no {name} {le:?}"))["value"].clone()
    };
    assert_eq!(value(&format!("{TTFT}_count"), None), 10_000.0);
    assert_eq!(value(&format!("{TTFT}_bucket"), Some("0.3")), held(&all));
    assert_eq!(samples[0]["labels"]["probe"], "p\"q\\r");
    let created = value(&format!("{TTFT}_created"), None);
    assert!(created.as_f64().is_some_and(|at| at > 1.7e9), "{created}");
    let with = samples
        .iter()
        .filter(|sample| !sample["exemplar"].is_null());
    assert!((5..=10).contains(&with.count()), "{ttft}");
    assert_eq!(read["tokencanary_slo_good"]["type"], "counter");
    assert_eq!(read["tokencanary_slo_limit_seconds"]["unit"], "seconds");
    assert_eq!(read["process_resident_memory_bytes"]["unit"], "bytes");
    assert_eq!(read["target"]["type"], "info");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_finds_nothing_wrong_with_the_text_page() {
    let stop = CancellationToken::new();
    let address = page(&known()[..100], stop.clone()).await;
    let page = page_as(&address, "text/plain; version=0.0.4").await;
    let mut promtool = Command::new(component("TOKENCANARY_PROMTOOL"));
    promtool.args(["check", "metrics"]);
    assert_eq!(told_of(promtool, &page), "");
    stop.cancel();
}
