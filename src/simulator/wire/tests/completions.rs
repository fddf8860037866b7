//! Answers to `/v1/completions`.

use super::*;

fn completion(fields: &str) -> String {
    post("/v1/completions", &format!("{{{fields}}}"))
}

#[tokio::test(start_paused = true)]
async fn a_streamed_completion_says_with_its_last_token_why_it_ended() {
    let rig = Rig::new(Profile::fixed(ms(100), ms(10)));
    let mut peer = rig.connect();
    let fields = r#""prompt":"one two three","max_tokens":2,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}"#;
    peer.say(&completion(fields)).await;
    rig.until(1000).await;
    let writes = peer.writes();
    let instants: Vec<u64> = writes.iter().map(|(at, _)| *at).collect();
    // Headers, two tokens, usage, end.
    assert_eq!(instants, [0, 100, 110, 110, 110]);
    let text = |write: usize| writes[write].1.as_str();
    assert!(text(1).contains(
        r#"data: {"id":"cmpl-00000000000000000000000000000000","object":"text_completion","created":"#
    ));
    assert!(text(1).contains(r#""choices":[{"index":0,"text":" "#));
    assert!(text(1).contains(r#""finish_reason":null,"stop_reason":null}]}"#));
    assert!(text(2).contains(r#""finish_reason":"length","stop_reason":null}]}"#));
    assert!(text(3).contains(
        r#""choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"#
    ));
    assert!(text(4).ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
}

#[tokio::test(start_paused = true)]
async fn a_whole_completion_is_one_object() {
    let rig = Rig::new(Profile::instant());
    let text = rig.ask(&completion(r#""prompt":[5,6,7,8]"#)).await;
    let (_, body) = text.split_once("\r\n\r\n").expect("head and body");
    let body: serde_json::Value = serde_json::from_str(body).expect("a JSON body");
    assert_eq!(body["object"], "text_completion");
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    let said = body["choices"][0]["text"].as_str();
    assert_eq!(said.map(|text| text.split_whitespace().count()), Some(16));
    assert_eq!(body["usage"]["prompt_tokens"], 4);
    assert_eq!(body["usage"]["completion_tokens"], 16);
}

#[tokio::test(start_paused = true)]
async fn a_cut_comes_before_the_last_chunk_of_a_completion() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let cut = crate::simulator::FaultKind::Cut { after_chunks: 9 };
    let fault = Fault {
        kind: cut,
        from: MonoTime::ZERO,
        lasts: ms(1000),
    };
    rig.simulator.inject(fault).expect("few faults");
    let mut peer = rig.connect();
    let fields = r#""prompt":"hi","max_tokens":3,"ignore_eos":true,"stream":true"#;
    peer.say(&completion(fields)).await;
    rig.until(500).await;
    let instants: Vec<u64> = peer.writes().iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [0, 10, 20]);
    assert!(peer.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_template_adds_its_tokens_to_chats_only() {
    let rig = Rig::with(SimulatorConfig {
        template_tokens: 7,
        ..SimulatorConfig::new(Profile::instant())
    });
    let of_chat = rig.ask(&chat(1, "")).await;
    assert!(of_chat.contains(r#""prompt_tokens":10,"#), "{of_chat}");
    let plain = rig.ask(&completion(r#""prompt":"one two three""#)).await;
    assert!(plain.contains(r#""prompt_tokens":3,"#), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_prompt_and_no_salt_is_refused() {
    let rig = Rig::new(Profile::instant());
    for (fields, message) in [
        (r#""max_tokens":1"#, "`prompt` is missing"),
        (r#""prompt":["a","b"]"#, "wanted one text or a list"),
        (r#""prompt":"a","cache_salt":"""#, "`cache_salt` is empty"),
    ] {
        let answer = rig.ask(&completion(fields)).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{fields}: {answer}");
        assert!(answer.contains(message), "{fields}: {answer}");
    }
}
