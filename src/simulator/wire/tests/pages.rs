//! Answers known at once, refusals, and the metrics page.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_small_pages_are_there() {
    let rig = Rig::new(Profile::instant());
    let models = rig.ask(&get("/v1/models")).await;
    assert!(models.contains(r#""id":"sim/canary-0.6b""#), "{models}");
    let version = rig.ask(&get("/version?x=1")).await;
    assert!(
        version.ends_with("\r\n\r\n{\"version\":\"0.11.0\"}"),
        "{version}"
    );
    let health = rig.ask(&get("/health")).await;
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n"), "{health}");
    assert!(health.contains("\r\ncontent-length: 0\r\n"), "{health}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_is_refused() {
    let rig = Rig::new(Profile::instant());
    let body = r#"{"model":"gpt","messages":[{"role":"user","content":"hi"}]}"#;
    let model = post("/v1/chat/completions", body);
    let long_head = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(17_000));
    let cases = [
        (
            "hello\r\n\r\n".to_owned(),
            "HTTP/1.1 400 ",
            "not an HTTP/1 request",
        ),
        (get("/nowhere"), "HTTP/1.1 404 ", "Not Found"),
        (get("/v1/chat/completions"), "HTTP/1.1 405 ", "allow: POST"),
        (post("/health", ""), "HTTP/1.1 405 ", "allow: GET"),
        (
            post("/v1/chat/completions", "{}"),
            "HTTP/1.1 400 ",
            "`messages` is missing",
        ),
        (
            post("/v1/chat/completions", "{"),
            "HTTP/1.1 400 ",
            "bad body",
        ),
        (
            chat(0, ""),
            "HTTP/1.1 400 ",
            "`max_tokens` is 0; wanted 1 to 131072",
        ),
        (chat(131_072, ""), "HTTP/1.1 400 ", "maximum context length"),
        (model, "HTTP/1.1 404 ", "The model `gpt` does not exist."),
        (
            "POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n".to_owned(),
            "HTTP/1.1 413 ",
            "too long",
        ),
        (
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            "HTTP/1.1 411 ",
            "content-length",
        ),
        (long_head, "HTTP/1.1 431 ", "too long"),
    ];
    for (request, status, message) in cases {
        let answer = rig.ask(&request).await;
        assert!(answer.starts_with(status), "{request:.80}: {answer}");
        assert!(answer.contains(message), "{request:.80}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_read_after_the_client_is_told_to_go_on() {
    let rig = Rig::new(Profile::instant());
    let words = "word ".repeat(1000);
    let body = format!(r#"{{"messages":[{{"role":"user","content":"{words}"}}],"max_tokens":1}}"#);
    let mut peer = rig.connect();
    let length = body.len();
    peer.say(&format!(
        "POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    ))
    .await;
    settle().await;
    assert_eq!(peer.text(), "HTTP/1.1 100 Continue\r\n\r\n");
    peer.say(&body).await;
    settle().await;
    assert!(peer.text().contains(r#""prompt_tokens":1000,"#));
}

/// One sample of the page: name with labels, value.
fn samples(page: &str) -> Vec<(&str, f64)> {
    let (head, body) = page.split_once("\r\n\r\n").expect("head and body");
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
    body.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("series and value");
            (series, value.parse().expect("a number"))
        })
        .collect()
}

/// What the page of the next test shows of the KV cache.
fn of_the_cache(labels: &str) -> Vec<(String, f64)> {
    vec![
        // 100 blocks of 2 tokens. The second has 3 + 3 tokens in 3 blocks; the third has 3 in
        // 2 blocks, the first of which it shares.
        (format!("vllm:kv_cache_usage_perc{{{labels}}}"), 0.04),
        // Three prompts of 3 tokens were looked up; the second and third found a block of 2.
        (format!("vllm:prefix_cache_queries_total{{{labels}}}"), 9.0),
        (format!("vllm:prefix_cache_hits_total{{{labels}}}"), 4.0),
        (format!("vllm:num_preemptions_total{{{labels}}}"), 0.0),
        (
            r#"vllm:cache_config_info{block_size="2",enable_prefix_caching="True",engine="0",num_gpu_blocks="100"}"#.to_owned(),
            1.0,
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_metrics_page_shows_a_known_sequence() {
    let rig = Rig::new(Profile {
        max_running: 2,
        kv_blocks: 100,
        block_tokens: 2,
        ..Profile::fixed(ms(100), ms(10))
    });
    let mut peers = Vec::new();
    for tokens in [3, 100, 100] {
        let mut peer = rig.connect();
        peer.say(&streamed(tokens)).await;
        settle().await;
        peers.push(peer);
    }
    // At 125 the first has ended (3 tokens, at 120), the second has 3 tokens and the third
    // has been running since 120.
    rig.until(125).await;
    let page = rig.ask(&get("/metrics")).await;
    let samples = samples(&page);
    let labels = r#"engine="0",model_name="sim/canary-0.6b""#;
    let le = |name: &str, bound: &str| {
        format!(r#"vllm:{name}_bucket{{engine="0",le="{bound}",model_name="sim/canary-0.6b"}}"#)
    };
    let reason = |reason: &str| {
        format!(
            r#"vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="sim/canary-0.6b"}}"#
        )
    };
    let expected = [
        (format!("vllm:num_requests_running{{{labels}}}"), 2.0),
        (format!("vllm:num_requests_waiting{{{labels}}}"), 0.0),
        (format!("vllm:prompt_tokens_total{{{labels}}}"), 6.0),
        (format!("vllm:generation_tokens_total{{{labels}}}"), 6.0),
        (reason("length"), 1.0),
        (reason("stop"), 0.0),
        (reason("abort"), 0.0),
        (le("time_to_first_token_seconds", "0.08"), 0.0),
        (le("time_to_first_token_seconds", "0.1"), 2.0),
        (le("time_to_first_token_seconds", "2560.0"), 2.0),
        (le("time_to_first_token_seconds", "+Inf"), 2.0),
        (
            format!("vllm:time_to_first_token_seconds_count{{{labels}}}"),
            2.0,
        ),
        (
            format!("vllm:time_to_first_token_seconds_sum{{{labels}}}"),
            0.2,
        ),
        (le("inter_token_latency_seconds", "0.01"), 4.0),
        (
            format!("vllm:inter_token_latency_seconds_sum{{{labels}}}"),
            0.04,
        ),
        (le("e2e_request_latency_seconds", "0.3"), 1.0),
        (
            format!("vllm:e2e_request_latency_seconds_sum{{{labels}}}"),
            0.12,
        ),
    ];
    for (series, value) in expected.into_iter().chain(of_the_cache(labels)) {
        let got = samples.iter().find(|(name, _)| *name == series);
        let close = got.is_some_and(|(_, got)| (got - value).abs() < 1e-12);
        assert!(close, "{series}: {got:?}, wanted {value}");
    }
    // 4 gauges, 5 counters, 4 reasons, 22 + 19 + 5 * 21 buckets with 3 lines more each, 2 of the
    // process.
    assert_eq!(samples.len(), 4 + 5 + 4 + (22 + 19 + 5 * 21 + 7 * 3) + 2);
    assert_eq!(page.matches("# TYPE vllm:").count(), 17);
    assert!(page.contains("# TYPE vllm:prompt_tokens_total counter\n"));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_read_alike_wherever_it_is_cut() {
    let request = post("/v1/chat/completions", "{}");
    let whole = Rig::new(Profile::instant()).ask(&request).await;
    for cut in 1..request.len() {
        let rig = Rig::new(Profile::instant());
        let mut peer = rig.connect();
        peer.say(&request[..cut]).await;
        settle().await;
        assert_eq!(peer.text(), "", "answered after {cut} bytes");
        peer.say(&request[cut..]).await;
        settle().await;
        assert_eq!(peer.text(), whole, "cut after {cut} bytes");
    }
}
