//! The KV cache as a client sees it.

use super::*;

/// A chat whose content is that many different words, with further fields, each after a comma.
fn words(count: u32, more: &str) -> String {
    let content: Vec<String> = (0..count).map(|word| format!("w{word}")).collect();
    let content = content.join(" ");
    post(
        "/v1/chat/completions",
        &format!(
            r#"{{"messages":[{{"role":"user","content":"{content}"}}],"max_tokens":2{more}}}"#
        ),
    )
}

/// What an answer says of its cached tokens, each time it does.
fn cached(answer: &str) -> Vec<u32> {
    let parts = answer.split(r#""cached_tokens":"#).skip(1);
    let number = |part: &str| part.split('}').next().map(str::parse);
    parts
        .map(|part| number(part).expect("a part").expect("a number"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn usage_tells_how_much_of_the_prompt_was_cached() {
    let rig = Rig::new(Profile::instant());
    assert_eq!(cached(&rig.ask(&words(40, "")).await), [0]);
    assert_eq!(cached(&rig.ask(&words(40, "")).await), [32]);
    assert_eq!(cached(&rig.ask(&words(32, "")).await), [16]);
    let streamed =
        r#","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}"#;
    // The role, two tokens, the end, and the usage.
    assert_eq!(cached(&rig.ask(&words(50, streamed)).await), [32; 5]);
    let salted = r#","cache_salt":"mine""#;
    assert_eq!(cached(&rig.ask(&words(40, salted)).await), [0]);
    assert_eq!(cached(&rig.ask(&words(40, salted)).await), [32]);
}

#[tokio::test(start_paused = true)]
async fn the_prefix_cache_can_be_emptied_while_nothing_runs() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let ask = async |request: String| {
        let mut peer = rig.connect();
        peer.say(&request).await;
        tokio::time::sleep(ms(50)).await;
        peer.text()
    };
    assert_eq!(cached(&ask(words(40, "")).await), [0]);
    let mut running = rig.connect();
    running.say(&words(40, "")).await;
    settle().await;
    let refused = rig.ask(&post("/reset_prefix_cache", "")).await;
    assert!(refused.starts_with("HTTP/1.1 200 "), "{refused}");
    assert_eq!(cached(&ask(words(40, "")).await), [32]);
    let emptied = rig.ask(&post("/reset_prefix_cache", "")).await;
    assert!(emptied.starts_with("HTTP/1.1 200 "), "{emptied}");
    assert_eq!(cached(&ask(words(40, "")).await), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_client_sees_nothing_of_giving_way_but_a_gap() {
    let rig = Rig::with(SimulatorConfig {
        keep_times: 10,
        ..SimulatorConfig::new(Profile {
            kv_blocks: 4,
            block_tokens: 4,
            prefix_caching: false,
            ..Profile::fixed(ms(10), ms(10))
        })
    });
    let chat = |count: u32, output: u32| {
        words(count, r#","stream":true,"ignore_eos":true"#)
            .replace(r#""max_tokens":2"#, &format!(r#""max_tokens":{output}"#))
    };
    let mut first = rig.connect();
    first.say(&chat(7, 3)).await;
    settle().await;
    let mut second = rig.connect();
    second.say(&chat(5, 4)).await;
    rig.until(1000).await;
    // At 20 the first needs a third block, just before the second gets its next token. The
    // second waits until 30 and is then prefilled for 10.
    let tokens = |peer: &Peer| -> Vec<u64> {
        let writes = peer.writes().into_iter();
        let said = writes.filter(|(_, text)| text.contains(r#""delta":{"content":"#));
        said.map(|(at, _)| at).collect()
    };
    assert_eq!(tokens(&first), [10, 20, 30]);
    assert_eq!(tokens(&second), [10, 40, 50, 60]);
    let times = rig.simulator.times();
    assert_eq!((times[0].preemptions, times[1].preemptions), (0, 1));
    assert_eq!((times[0].prompt_tokens, times[1].prompt_tokens), (7, 5));
    let page = rig.ask(&get("/metrics")).await;
    assert!(
        page.contains(r#"vllm:num_preemptions_total{engine="0",model_name="sim/canary-0.6b"} 1.0"#)
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_in_the_cache_is_longer_than_the_model_takes() {
    let rig = Rig::new(Profile {
        kv_blocks: 4,
        block_tokens: 4,
        ..Profile::instant()
    });
    let models = rig.ask(&get("/v1/models")).await;
    assert!(models.contains(r#""max_model_len":16,"#), "{models}");
    let fits = rig.ask(&words(14, "")).await;
    assert!(fits.starts_with("HTTP/1.1 200 "), "{fits}");
    let refused = rig.ask(&words(15, "")).await;
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
    assert!(
        refused.contains("maximum context length is 16 tokens"),
        "{refused}"
    );
}
