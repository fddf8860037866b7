//! Data sets: what becomes of each kind of entry, and in which order.

use std::collections::BTreeSet;

use super::*;

#[tokio::test(start_paused = true)]
async fn single_turns_are_sent_in_order_and_again_from_the_beginning() {
    let set = "{\"text\": \"a\"}\n{\"text\": \"b\", \"output_length\": 2}\n{\"text\": \"c\"}\n";
    let played = bench(set, "--request-count 5 --osl 3").await;
    assert_eq!(played.texts(), ["a", "b", "c", "a", "b"]);
    let lengths: Vec<_> = played
        .sent
        .iter()
        .map(|sent| sent.body["max_tokens"].clone())
        .collect();
    assert_eq!(lengths, [3, 2, 3, 3, 2], "a row says more than a flag");
    assert_eq!(played.report.files[0].wraps, 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_by_chance_is_one() {
    let rows: Vec<String> = (0..40)
        .map(|row| format!("{{\"text\": \"t{row}\"}}"))
        .collect();
    let set = rows.join("\n");
    let with = async |flags: &str| -> Vec<String> {
        let flags = format!("--request-count 40 --osl 1 {flags}");
        let played = bench(&set, &flags).await;
        played.texts().into_iter().map(str::to_owned).collect()
    };
    let plain: Vec<String> = (0..40).map(|row| format!("t{row}")).collect();
    assert_eq!(with("--dataset-sampling-strategy sequential").await, plain);
    let shuffled = with("--dataset-sampling-strategy shuffle").await;
    assert_ne!(shuffled, plain);
    let all = |texts: &[String]| texts.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(all(&shuffled), all(&plain), "each once");
    let random = with("--dataset-sampling-strategy random").await;
    assert!(all(&random).len() < 40, "some twice");
    assert_eq!(with("--custom-dataset-type random_pool").await, random);
}

#[tokio::test(start_paused = true)]
async fn messages_and_tools_are_sent_as_they_are() {
    let set = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}], "name": "x"}], "tools": [{"type": "function", "function": {"name": "f"}}], "max_tokens": 4}"#;
    let played = bench(set, "--request-count 1").await;
    let body = &played.sent[0].body;
    let given: Value = serde_json::from_str(set).expect("JSON");
    assert_eq!(body["messages"], given["messages"]);
    assert_eq!(body["tools"], given["tools"]);
    assert_eq!(
        (&body["max_tokens"], &body["stream"]),
        (&4.into(), &true.into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_sent_byte_by_byte() {
    let whole = r#"{"model":"sim/canary-0.6b",  "messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":2,"x":1.50}"#;
    let played = bench(whole, "--request-count 1 --custom-dataset-type raw_payload").await;
    assert_eq!(played.sent[0].raw, whole);
    let without = r#"{"messages":[{"role":"user","content":"hi"}],"stream":true}"#;
    let played = bench(
        without,
        "--request-count 1 --custom-dataset-type raw_payload",
    )
    .await;
    assert_eq!(
        played.sent[0].raw,
        r#"{"model":"sim/canary-0.6b","messages":[{"role":"user","content":"hi"}],"stream":true}"#
    );
}

#[tokio::test(start_paused = true)]
async fn payloads_of_a_session_follow_each_other() {
    let body = |text: &str| {
        format!(
            r#"{{"model":"sim/canary-0.6b","messages":[{{"role":"user","content":"{text}"}}],"stream":true,"max_tokens":2}}"#
        )
    };
    let set = format!(
        r#"{{"data":[{{"session_id":"a","payloads":[{},{}]}},{{"session_id":"b","payloads":[{}]}}]}}"#,
        body("a1"),
        body("a2"),
        body("b1")
    );
    let played = bench(
        &set,
        "--num-sessions 2 --connection-reuse-strategy sticky-user-sessions",
    )
    .await;
    assert_eq!(played.texts(), ["a1", "a2", "b1"]);
    assert_eq!(played.sent[1].messages(), [("user", "a2")], "each is whole");
    let connections: Vec<usize> = played.sent.iter().map(|sent| sent.connection).collect();
    assert_eq!(
        connections[0], connections[1],
        "a session keeps its connection"
    );
}

#[tokio::test(start_paused = true)]
async fn media_become_parts_of_the_message() {
    let set = r#"{"text": "what?", "image": "data:image/png;base64,AA==", "audio": "wav,BB=="}"#;
    let played = bench(set, "--request-count 1 --osl 1").await;
    assert_eq!(
        played.sent[0].body["messages"][0]["content"],
        serde_json::json!([
            {"type": "text", "text": "what?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            {"type": "input_audio", "input_audio": {"data": "BB==", "format": "wav"}},
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn the_dirt_of_sharegpt_is_left_out_and_told() {
    let set = r#"[
{"id": "a", "conversations": []},
{"id": "b", "conversations": [{"from": "gpt", "value": "late"}, {"from": "human", "value": "q1"}, {"from": "gpt", "value": "one two three"}]},
{"id": "c", "conversations": [{"from": "human", "value": "unanswered"}]},
{"id": "d", "conversations": [{"from": "user", "value": "q\ud83d2"}, {"from": "chatgpt", "value": "ok"}, {"from": "alien", "value": "q3"}, {"from": "bard", "value": " "}]}
]"#;
    let played = bench(set, "--num-sessions 2").await;
    assert_eq!(played.texts(), ["q1", "q\u{fffd}2", "q3"]);
    assert!(
        played.sent[0].body["max_tokens"].as_u64() >= Some(3),
        "as long as it was answered"
    );
    let notes = &played.report.files[0].notes;
    assert_eq!(notes.len(), 6, "{notes:?}");
    assert_eq!(played.report.files[0].bad_rows, 0);
}
