//! Prompts of our own making: what the server receives for every flag that says what is sent.

use std::collections::BTreeSet;

use super::*;
use tokencanary::measurement::{CacheMode, Note};

/// `bench` without a file, with `flags`; two tokens each where they do not say.
async fn made(flags: &str) -> Played {
    let common = "--url http://sim -m sim/canary-0.6b --random-seed 7";
    let says = flags.contains("--osl") || flags.contains("--seq-dist");
    let length = if says { "" } else { "--osl 2" };
    let flags = [common, length, flags];
    let flags = flags.iter().flat_map(|part| part.split_whitespace());
    let (mut config, extent) = benchmark(flags).expect("good flags");
    config.targets[0].server_metrics = ServerMetrics::Off;
    let at = (server(1), Vec::new());
    play((config, extent), at).await.expect("it begins")
}

/// The number in the field `max_tokens` of each request.
fn asked(played: &Played) -> Vec<u64> {
    let numbers = played
        .sent
        .iter()
        .map(|sent| sent.body["max_tokens"].as_u64());
    numbers.map(|number| number.expect("a number")).collect()
}

/// Words of the last message of each request, split at any blank.
fn lengths(played: &Played) -> Vec<usize> {
    let texts = played.sent.iter().map(Sent::text);
    texts.map(|text| text.split_whitespace().count()).collect()
}

/// Words that two texts begin with alike.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.split_whitespace().zip(other.split_whitespace());
    pairs.take_while(|(one, other)| one == other).count()
}

#[tokio::test(start_paused = true)]
async fn lengths_are_those_of_the_flags() {
    let played = made("--isl 40 --osl 9 --request-count 3").await;
    assert_eq!(lengths(&played), [40, 40, 40]);
    assert_eq!(asked(&played), [9, 9, 9]);
    for record in &played.records {
        assert_eq!(record.tokens.requested_input, Some(40));
        assert_eq!(record.tokens.input, Some(40));
        assert_eq!(record.tokens.output, Some(9));
    }
    let played = made("--isl uniform(10,20) --osl one_of(3,5) --request-count 200").await;
    let found: BTreeSet<_> = lengths(&played).into_iter().collect();
    assert_eq!(found, (10..=20).collect());
    let found: BTreeSet<_> = asked(&played).into_iter().collect();
    assert_eq!(found, BTreeSet::from([3, 5]));
    let played = made("--isl 100 --random-range-ratio 0.1,0.5 --osl 4 --request-count 200").await;
    let found = lengths(&played);
    // 100 · 1.1 is a little more than 110, in floating point, there as here.
    assert!(found.iter().all(|length| (90..=111).contains(length)));
    assert!(found.iter().any(|length| *length < 95));
    let found: BTreeSet<_> = asked(&played).into_iter().collect();
    assert_eq!(found, (2..=6).collect());
    let played =
        made("--isl 100 --random-range-ratio 0.5 --random-corpus-style sglang --request-count 100")
            .await;
    let found = lengths(&played);
    assert!(found.iter().all(|length| (50..=100).contains(length)));
}

#[tokio::test(start_paused = true)]
async fn normal_lengths_and_pairs_are_spread_as_told() {
    let played =
        made("--isl 200 --isl-stddev 20 --osl 50 --osl-stddev 5 --request-count 400").await;
    let mean = |found: Vec<f64>| {
        let count = f64::from(u32::try_from(found.len()).expect("small"));
        let mean = found.iter().sum::<f64>() / count;
        let square = found.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        (mean, (square / count).sqrt())
    };
    let float = |number: u64| f64::from(u32::try_from(number).expect("small"));
    let found = lengths(&played)
        .into_iter()
        .map(|length| float(length as u64));
    let (input, spread) = mean(found.collect());
    assert!((input - 200.0).abs() < 4.0, "{input}");
    assert!((spread - 20.0).abs() < 3.0, "{spread}");
    let (output, spread) = mean(asked(&played).into_iter().map(float).collect());
    assert!((output - 50.0).abs() < 1.0, "{output}");
    assert!((spread - 5.0).abs() < 1.0, "{spread}");
    let played = made("--seq-dist 30,4:75;60,8:25 --request-count 200").await;
    let pairs: Vec<_> = lengths(&played).into_iter().zip(asked(&played)).collect();
    let short = pairs.iter().filter(|pair| **pair == (30, 4)).count();
    let long = pairs.iter().filter(|pair| **pair == (60, 8)).count();
    assert_eq!(short + long, 200);
    assert!((130..=170).contains(&short), "{short}");
}

#[tokio::test(start_paused = true)]
async fn a_system_message_is_the_same_in_all() {
    let played = made("--isl 5 --shared-system-prompt-length 20 --request-count 3").await;
    let systems: BTreeSet<_> = played.sent.iter().map(|sent| sent.messages()[0]).collect();
    assert_eq!(systems.len(), 1);
    let (role, text) = systems.first().expect("one");
    assert_eq!((*role, text.split_whitespace().count()), ("system", 20));
    for (record, shared) in played.records.iter().zip([0, 20, 20]) {
        assert_eq!(record.tokens.requested_input, Some(25));
        assert_eq!(record.tokens.requested_cached, Some(shared));
    }
    let common = "--url http://sim -m sim/canary-0.6b --osl 2 --isl 5 --request-count 1";
    let flags = common.split(' ').chain(["--system-prompt", "be brief"]);
    let (mut config, extent) = benchmark(flags).expect("good flags");
    config.targets[0].server_metrics = ServerMetrics::Off;
    let at = (server(1), Vec::new());
    let played = play((config, extent), at).await.expect("it begins");
    assert_eq!(played.sent[0].messages()[0], ("system", "be brief"));
}

#[tokio::test(start_paused = true)]
async fn prefixes_come_from_a_pool() {
    let flags = "--isl 5 --num-prefix-prompts 2 --prefix-prompt-length 12 --request-count 40";
    let played = made(flags).await;
    assert!(lengths(&played).iter().all(|length| *length == 17));
    let prefix = |sent: &Sent| {
        let words: Vec<_> = sent.text().split_whitespace().take(12).collect();
        words.join(" ")
    };
    let prefixes: BTreeSet<_> = played.sent.iter().map(prefix).collect();
    assert_eq!(prefixes.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_user_has_a_context() {
    let flags = "--isl 5 --user-context-prompt-length 30 --num-users 2 --user-centric-rate 20 \
                 --session-turns-mean 100 --request-count 10";
    let played = made(flags).await;
    let contexts: Vec<_> = played
        .sent
        .iter()
        .map(|sent| sent.messages()[0].1)
        .collect();
    assert!(
        contexts
            .iter()
            .all(|text| text.split_whitespace().count() == 30)
    );
    let distinct: BTreeSet<_> = contexts.iter().collect();
    assert_eq!(distinct.len(), 2);
    assert_eq!(contexts[0], contexts[2], "they take turns");
    assert_eq!(played.sent[0].messages().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn cold_prompts_are_not_served_from_the_cache_and_warm_ones_are() {
    let cold = made("--isl 400 --request-count 4").await;
    for record in &cold.records {
        assert_eq!(record.tokens.cached, Some(0));
        assert_eq!(record.tokens.requested_cached, Some(0));
    }
    let warm = made("--isl 400 --cache warm --request-count 4").await;
    // 384 of 400 tokens are the same: 24 blocks of 16.
    let cached = warm.records.iter().map(|record| record.tokens.cached);
    assert_eq!(
        cached.collect::<Vec<_>>(),
        [Some(0), Some(384), Some(384), Some(384)]
    );
    for (record, expected) in warm.records.iter().zip([0, 384, 384, 384]) {
        assert_eq!(record.tokens.requested_cached, Some(expected));
        assert!(!record.notes.has(Note::CacheMissed) && !record.notes.has(Note::CacheHit));
        assert_eq!(record.stream.cache, CacheMode::Warm);
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_are_two_streams() {
    let played = made("--isl 400 --cache paired --request-count 6").await;
    let texts = played.texts();
    for pair in texts.chunks(2) {
        assert!((384..388).contains(&common(pair[0], pair[1])));
    }
    // Words of the beginning are drawn afresh: now and then one is the same.
    assert!(common(texts[0], texts[2]) < 3);
    let seen = played.records.iter().map(|record| {
        let tokens = record.tokens;
        (record.stream.cache, tokens.cached, tokens.requested_cached)
    });
    let cold = (CacheMode::Cold, Some(0), Some(0));
    let warm = (CacheMode::Warm, Some(384), Some(384));
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [cold, warm, cold, warm, cold, warm]
    );
    let summary = played.report.summary.expect("asked for");
    let part = |mode: &str| {
        let part = &summary.by_cache[mode];
        let cached = part.metrics.cached_length.as_ref().expect("counted");
        (part.records, cached.count, format!("{:.1}", cached.max))
    };
    assert_eq!((summary.records, summary.by_cache.len()), (6, 2));
    assert_eq!(part("cold"), (3, 3, "0.0".to_owned()));
    assert_eq!(part("warm"), (3, 3, "384.0".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_salt_keeps_prompts_apart() {
    let played = made("--isl 20 --cache-salt --request-count 3").await;
    let salts: BTreeSet<_> = played
        .sent
        .iter()
        .map(|sent| sent.body["cache_salt"].as_str())
        .collect();
    assert_eq!(salts.len(), 3);
    assert!(!salts.contains(&None));
    let played = made("--isl 20 --cache-salt --cache warm --request-count 3").await;
    let salts: BTreeSet<_> = played
        .sent
        .iter()
        .map(|sent| sent.body["cache_salt"].as_str())
        .collect();
    assert_eq!(salts.len(), 1);
    assert!(!salts.contains(&None));
    let played = made("--isl 20 --request-count 1").await;
    assert_eq!(played.sent[0].body.get("cache_salt"), None);
}

#[tokio::test(start_paused = true)]
async fn pictures_sounds_and_tools_stand_beside_the_text() {
    let flags = "--isl 5 --image-width-mean 8 --image-height-mean 4 --image-batch-size 2 \
                 --audio-length-mean 0.5 --tools 3 --request-count 2";
    let played = made(flags).await;
    let mut pictures = BTreeSet::new();
    for sent in &played.sent {
        let messages = sent.body["messages"].as_array().expect("chat");
        let parts = messages[0]["content"].as_array().expect("parts");
        let types: Vec<_> = parts.iter().map(|part| part["type"].as_str()).collect();
        assert_eq!(
            types,
            [
                Some("text"),
                Some("image_url"),
                Some("image_url"),
                Some("input_audio")
            ]
        );
        for part in &parts[1..3] {
            let url = part["image_url"]["url"].as_str().expect("a URL");
            assert!(
                url.starts_with("data:image/png;base64,iVBORw0KGgo"),
                "{url:.40}"
            );
            pictures.insert(url.to_owned());
        }
        assert_eq!(parts[3]["input_audio"]["format"], "wav");
        let tools = sent.body["tools"].as_array().expect("a list");
        assert_eq!(tools.len(), 3);
        assert_eq!(tools[0]["type"], "function");
        assert_eq!(sent.body["tools"], played.sent[0].body["tools"]);
    }
    assert_eq!(pictures.len(), 4, "each is another");
}

#[tokio::test(start_paused = true)]
async fn a_style_is_heard() {
    for (style, mark) in [
        ("prose", "."),
        ("code", "("),
        ("dialogue", ":"),
        ("coding", "("),
    ] {
        let played = made(&format!(
            "--isl 200 --prompt-style {style} --request-count 1"
        ))
        .await;
        let text = played.sent[0].text();
        assert!(text.contains(mark), "{style}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_how_it_counts() {
    // It counts runs of marks as one token, where words and marks are one each.
    let flags = "--isl 300 --prompt-style code --prompt-count server --request-count 20";
    let played = made(flags).await;
    assert_eq!(played.sent.len(), 22, "two requests more than were due");
    assert_eq!(asked(&played)[..2], [1, 1]);
    assert_eq!(played.records.len(), 20);
    let counted = played.records.iter().map(|record| record.tokens.input);
    let counted: u32 = counted.map(|tokens| tokens.expect("counted")).sum();
    let mean = f64::from(counted) / 20.0;
    assert!((mean - 300.0).abs() < 12.0, "{mean}");
}

#[tokio::test(start_paused = true)]
async fn a_tokenizer_counts_exactly() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/tokenizer/tiny.json"
    );
    let flags = format!("--isl 64 --tokenizer {path} --request-count 3");
    let played = made(&flags).await;
    let bytes = std::fs::read(path).expect("it is there");
    let tokenizer = tokencanary::load::workload::Tokenizer::json(&bytes).expect("valid");
    for sent in &played.sent {
        assert_eq!(tokenizer.count(sent.text()).ok(), Some(64));
    }
}
