//! What reading servers' metrics pages costs.
//!
//! `cargo bench --bench pages`. First the speed of reading a page that is in memory, line by line
//! and into roles; the bar is 200 MB/s. Then twenty servers whose pages have 1,500 lines each,
//! read once a second over loopback for [`SECONDS`], by a thread whose CPU time is counted: the
//! requests, the reading, and what is kept for windows. The bar is 3 % of a core. The servers
//! write from a thread of their own.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints what it measured in real time"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use hyper::HeaderMap;
use rustix::time::{ClockId, clock_gettime};
use tokencanary::aggregate::Live;
use tokencanary::clock::TimeAnchor;
use tokencanary::measurement::server::ScrapeResult;
use tokencanary::scrape::{Lines, Poll, read_page};
use tokencanary::telemetry::SelfMetrics;
use tokencanary::transport::fetch::{Fetch, FetchTimeouts};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

const RUNS: usize = 15;
const SERVERS: usize = 20;
const LINES: usize = 1_500;
const SECONDS: u64 = 20;

const CAPTURES: [(&str, &str); 4] = [
    (
        "llama.cpp",
        include_str!("../tests/fixtures/metrics/llama-server.txt"),
    ),
    (
        "dynamo worker",
        include_str!("../tests/fixtures/metrics/dynamo-mocker-worker.txt"),
    ),
    (
        "dynamo frontend",
        include_str!("../tests/fixtures/metrics/dynamo-frontend.txt"),
    ),
    (
        "litellm",
        include_str!("../tests/fixtures/metrics/litellm.txt"),
    ),
];

fn main() {
    let page = page();
    println!("page              lines     bytes   lines MB/s   roles MB/s   µs a page");
    for (name, text) in CAPTURES.into_iter().chain([("eight ranks", &*page)]) {
        let lines = speed(text, |page| Lines::new(page).count());
        let roles = speed(text, |page| read_page(page, None).page.ranks.len());
        #[expect(clippy::cast_precision_loss, reason = "a size")]
        let micros = text.len() as f64 / roles;
        println!(
            "{name:<16} {:>6} {:>9} {lines:>12.0} {roles:>12.0} {micros:>11.0}",
            text.lines().count(),
            text.len(),
        );
    }
    let (wall, cpu, pages) = scraped(page);
    println!(
        "{SERVERS} servers of {LINES} lines, once a second for {:.1} s: {pages} pages, {:.3} s of CPU, {:.2} % of a core",
        wall.as_secs_f64(),
        cpu.as_secs_f64(),
        100.0 * cpu.as_secs_f64() / wall.as_secs_f64()
    );
}

/// Megabytes per second, the best of [`RUNS`].
fn speed(page: &str, read: impl Fn(&str) -> usize) -> f64 {
    let rounds = (4_000_000 / page.len()).max(1);
    let best = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..rounds {
                black_box(read(black_box(page)));
            }
            began.elapsed()
        })
        .min();
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let bytes = (page.len() * rounds) as f64;
    bytes / best.unwrap_or_default().as_secs_f64() / 1e6
}

/// A page of vLLM with eight data-parallel ranks: every family that has a role and many that
/// have none, [`LINES`] lines in all.
fn page() -> String {
    let mut page = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        writeln!(page, "{text}").expect("a text takes all");
    };
    let label = |rank: usize| format!("engine=\"{rank}\",model_name=\"Qwen/Qwen3-0.6B\"");
    for name in ["num_requests_running", "num_requests_waiting"] {
        line(format_args!("# TYPE vllm:{name} gauge"));
        for rank in 0..8 {
            line(format_args!("vllm:{name}{{{}}} {rank}.0", label(rank)));
        }
    }
    for rank in 0..8 {
        line(format_args!(
            "vllm:kv_cache_usage_perc{{{}}} 0.{rank}",
            label(rank)
        ));
        line(format_args!(
            "vllm:generation_tokens_total{{{}}} 123456.0",
            label(rank)
        ));
        line(format_args!(
            "vllm:prompt_tokens_total{{{}}} 1.23456e+06",
            label(rank)
        ));
    }
    for name in [
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "request_inference_time_seconds",
    ] {
        line(format_args!(
            "# HELP vllm:{name} Histogram of what the name says in seconds."
        ));
        line(format_args!("# TYPE vllm:{name} histogram"));
        for rank in 0..8 {
            for bound in 1..=22_u32 {
                let le = f64::from(bound) * 0.25;
                let below = bound * 40;
                line(format_args!(
                    "vllm:{name}_bucket{{engine=\"{rank}\",le=\"{le:?}\",model_name=\"Qwen/Qwen3-0.6B\"}} {below}.0"
                ));
            }
            line(format_args!(
                "vllm:{name}_sum{{{}}} 1234.5678901234",
                label(rank)
            ));
            line(format_args!("vllm:{name}_count{{{}}} 900.0", label(rank)));
        }
    }
    let lines = page.lines().count();
    for rest in lines..LINES {
        writeln!(
            page,
            "http_requests_total{{handler=\"/v1/{rest}\",method=\"POST\",status=\"2xx\"}} {rest}.0"
        )
        .expect("a text takes all");
    }
    assert_eq!(page.lines().count(), LINES);
    page
}

/// Where the servers' pages are.
fn serve(page: String) -> String {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            tell.send(listener.local_addr().expect("it is bound"))
                .expect("somebody listens");
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            let page = move || async move { ([(CONTENT_TYPE, kind)], page) };
            let router = Router::new().route("/metrics", get(page));
            axum::serve(listener, router).await.expect("it serves");
        });
    });
    let address = told.recv().expect("it is bound");
    format!("http://{address}/metrics")
}

/// Wall time, CPU time of the reading thread, and pages read.
fn scraped(page: String) -> (Duration, Duration, u64) {
    let url = serve(page);
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async move {
        let anchor = TimeAnchor::start();
        let own = SelfMetrics::new().expect("our metrics do not collide");
        let timeouts = FetchTimeouts {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(5),
        };
        let mut live = Live::new(Vec::new(), SERVERS)
            .reading_every((0..SERVERS).map(|_| Duration::from_secs(1)));
        let (scrapes, mut read) = tokio::sync::mpsc::channel(256);
        for target_index in 0..SERVERS {
            let poll = Poll {
                target_index,
                target: format!("t{target_index}"),
                urls: vec![url.clone()],
                model: None,
                headers: HeaderMap::new(),
                every: Duration::from_secs(1),
                anchor,
                fetch: Fetch::new(anchor, timeouts).expect("a client"),
                own: own.clone(),
            };
            tokio::spawn(poll.run(scrapes.clone()));
        }
        // The first round opens connections.
        for _ in 0..SERVERS {
            live.scrape(read.recv().await.expect("twenty readers"));
        }
        let (began, cpu) = (Instant::now(), cpu());
        let mut pages = 0;
        let end = tokio::time::sleep(Duration::from_secs(SECONDS));
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                Some(scrape) = read.recv() => {
                    assert_eq!(scrape.result, ScrapeResult::Ok);
                    pages += 1;
                    live.scrape(scrape);
                }
            }
        }
        black_box(&live);
        (began.elapsed(), self::cpu().saturating_sub(cpu), pages)
    })
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}
