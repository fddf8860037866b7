//! Answers of the engine: frames, instants, cancellation.

use super::*;

/// A chunk as it should be, once the time in `created` is taken out.
fn plain(chunk: &str) -> String {
    let (head, rest) = chunk.split_once("\"created\":").expect("a frame has it");
    let (_, tail) = rest.split_once(',').expect("more follows");
    format!("{head}{tail}")
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_written_frame_by_frame_at_the_engines_instants() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    let mut peer = rig.connect();
    let options = r#","stream":true,"stream_options":{"include_usage":true}"#;
    peer.say(&chat(3, options)).await;
    rig.until(1000).await;
    let writes = peer.writes();
    let instants: Vec<u64> = writes.iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 100, 100, 110, 120, 120, 120, 120]);

    let text = |write: usize| writes[write].1.as_str();
    assert!(text(0).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(text(0).contains("content-type: text/event-stream"));
    assert_eq!(
        plain(text(1)),
        "f1\r\ndata: {\"id\":\"chatcmpl-00000000000000000000000000000000\",\"object\":\"chat.completion.chunk\",\"model\":\"sim/canary-0.6b\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n\r\n"
    );
    for write in 2..5 {
        assert!(text(write).contains(r#""choices":[{"index":0,"delta":{"content":""#));
        assert!(!text(write).contains(r#""content":"""#));
        assert!(text(write).ends_with("\"logprobs\":null,\"finish_reason\":null}]}\n\n\r\n"));
    }
    assert!(text(5).contains(r#""delta":{},"logprobs":null,"finish_reason":"length""#));
    assert!(text(6).contains(
        r#""choices":[],"usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}"#
    ));
    assert_eq!(text(7), "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    assert!(!peer.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_http_1_0_gets_a_stream_without_chunks_that_ends_with_its_connection() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    let mut peer = rig.connect();
    let request = chat(2, r#","stream":true"#).replace("HTTP/1.1", "HTTP/1.0");
    peer.say(&request).await;
    rig.until(1000).await;
    let writes = peer.writes();
    let instants: Vec<u64> = writes.iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 100, 100, 110, 110, 110]);
    let head = &writes[0].1;
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    for (_, frame) in &writes[1..] {
        assert!(
            frame.starts_with("data: {") || frame == "data: [DONE]\n\n",
            "{frame}"
        );
        assert!(
            frame.ends_with("}\n\n") || frame == "data: [DONE]\n\n",
            "{frame}"
        );
    }
    assert!(peer.is_closed());
}

#[tokio::test(start_paused = true)]
async fn usage_so_far_is_on_every_frame_if_asked() {
    let rig = Rig::new(Profile::instant());
    let options = r#","stream":true,"stream_options":{"continuous_usage_stats":true}"#;
    let text = rig.ask(&chat(2, options)).await;
    for tokens in [0, 1, 2] {
        assert!(text.contains(&format!(r#""completion_tokens":{tokens},"#)));
    }
    assert!(!text.contains(r#""choices":[],"#));
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_comes_with_the_last_token() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    let mut peer = rig.connect();
    peer.say(&chat(3, "")).await;
    rig.until(1000).await;
    let writes = peer.writes();
    assert_eq!(writes.len(), 1);
    let (at, text) = &writes[0];
    assert_eq!(*at, 120);
    let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
    assert!(head.contains(&format!("content-length: {}", body.len())));
    let body: serde_json::Value = serde_json::from_str(body).expect("a JSON body");
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    let content = body["choices"][0]["message"]["content"].as_str();
    assert_eq!(content.map(|text| text.split(' ').count()), Some(3));
    assert_eq!(body["usage"]["completion_tokens"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_connection_serves_one_request_after_the_other() {
    let rig = Rig::new(Profile::fixed(ms(1), ms(1)));
    let mut peer = rig.connect();
    peer.say(&streamed(2)).await;
    rig.until(50).await;
    peer.say(&streamed(1)).await;
    rig.until(100).await;
    let instants: Vec<u64> = peer.writes().iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 1, 1, 2, 2, 2, 50, 51, 51, 51, 51]);
}

#[tokio::test(start_paused = true)]
async fn fifty_streams_keep_their_beat() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    let mut peers = Vec::new();
    for stream in 0..50 {
        rig.until(stream).await;
        let mut peer = rig.connect();
        peer.say(&streamed(128)).await;
        peers.push(peer);
    }
    rig.until(5000).await;
    for (stream, peer) in (0..50).zip(&peers) {
        let tokens: Vec<u64> = peer
            .writes()
            .iter()
            .filter(|(_, text)| text.contains(r#""delta":{"content":"#))
            .map(|(at, _)| *at)
            .collect();
        let expected: Vec<u64> = (0..128).map(|token| stream + 100 + token * 10).collect();
        assert_eq!(tokens, expected);
    }
    let times = rig.simulator.times();
    assert_eq!(times.len(), 50);
    assert_eq!(times[49].received, MonoTime::ZERO + ms(49));
    assert_eq!(times[49].admitted, Some(MonoTime::ZERO + ms(49)));
    assert_eq!(
        times[49].finished,
        Some(MonoTime::ZERO + ms(49 + 100 + 1270))
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_cancels_its_job() {
    let rig = Rig::new(Profile {
        max_running: 1,
        ..Profile::fixed(ms(10), ms(10))
    });
    let mut first = rig.connect();
    first.say(&streamed(100)).await;
    settle().await;
    let mut second = rig.connect();
    second.say(&streamed(1)).await;
    rig.until(25).await;
    let state = rig.simulator.state();
    assert_eq!((state.running, state.waiting), (1, 1));
    drop(first.io);
    rig.until(100).await;
    let instants: Vec<u64> = second.writes().iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 35, 35, 35, 35]);
    assert_eq!(rig.simulator.state().running, 0);
}

#[tokio::test(start_paused = true)]
async fn lengths_come_from_the_request() {
    let rig = Rig::new(Profile::instant());
    let tokens_of = async |fields: &str| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}]{fields}}}"#);
        let text = rig.ask(&post("/v1/chat/completions", &body)).await;
        let (_, body) = text.split_once("\r\n\r\n").expect("head and body");
        let body: serde_json::Value = serde_json::from_str(body).expect("a JSON body");
        body["usage"]["completion_tokens"].as_u64()
    };
    assert_eq!(tokens_of("").await, Some(64));
    assert_eq!(tokens_of(r#","max_tokens":7"#).await, Some(7));
    let both = r#","max_tokens":7,"max_completion_tokens":5"#;
    assert_eq!(tokens_of(both).await, Some(5));
}

#[tokio::test(start_paused = true)]
async fn the_log_has_a_line_for_each_write() {
    let directory = std::env::temp_dir();
    let path = directory.join(format!(
        "tokencanary-write-log-{}.jsonl",
        std::process::id()
    ));
    let rig = Rig::with(SimulatorConfig {
        log_times: Some(path.clone()),
        ..SimulatorConfig::new(Profile::fixed(ms(5), ms(1)))
    });
    let request = streamed(2).replace("host: sim", "host: sim\r\nX-Request-Id: r1");
    let mut peer = rig.connect();
    peer.say(&request).await;
    rig.until(1000).await;
    let finished = rig.simulator.finish().await;
    finished.expect("the log can be written");
    let text = std::fs::read_to_string(&path).expect("the log is there");
    std::fs::remove_file(&path).expect("the log can be removed");
    let lines: Vec<(String, u64, u64)> = text.lines().map(log_line).collect();
    let expected = [
        ("read", 0, 0),
        ("headers", 0, 0),
        ("role", 1, 5),
        ("token", 2, 5),
        ("token", 3, 6),
        ("finish", 4, 6),
        ("done", 5, 6),
    ];
    assert_eq!(
        lines,
        expected.map(|(kind, write, millis)| (kind.to_owned(), write, millis))
    );
}

/// Kind, number of the write, and milliseconds of a line about request `r1`.
fn log_line(line: &str) -> (String, u64, u64) {
    let line: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
    assert_eq!(line["request"], "r1");
    // After 2020-09-13, so it is wall time in nanoseconds.
    assert!(line["unix_ns"].as_u64() > Some(1_600_000_000_000_000_000));
    let number = |field: &str| line[field].as_u64().expect("a number");
    let kind = line["kind"].as_str().expect("a text").to_owned();
    (kind, number("write"), number("mono_ns") / 1_000_000)
}
