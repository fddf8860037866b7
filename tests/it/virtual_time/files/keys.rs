//! The keys of a configuration: they have the effect of the flags.

use super::*;

const TRACE: &str = r#"{"timestamp": 1000, "input_length": 10, "output_length": 3}
{"timestamp": 1500, "input_length": 11, "output_length": 2}
{"timestamp": 1500, "input_length": 12, "output_length": 2}
{"timestamp": 9000, "input_length": 13, "output_length": 1}
"#;

#[tokio::test(start_paused = true)]
async fn a_trace_is_played_as_its_keys_say() {
    let format = "format: mooncake_trace";
    for (arrivals, expected) in [
        ("process: trace", vec![0, 500, 500, 8_000]),
        ("process: trace, from: 1200ms", vec![300, 300, 7_800]),
        (
            "process: trace, from: 1200ms, shift: true",
            vec![0, 0, 7_500],
        ),
        ("process: trace, to: 1500ms", vec![0, 500, 500]),
        ("process: trace, speed: 2", vec![0, 250, 250, 4_000]),
        ("process: trace, gap_cap: 2s", vec![0, 500, 500, 2_500]),
    ] {
        let played = probe(TRACE, (format, arrivals), None).await;
        assert_eq!(played.times(), expected, "{arrivals}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_data_set_is_sent_as_its_keys_say() {
    let closed = "process: closed, concurrency: 1";
    let set = r#"{"turns": [{"text": "a"}, {"text": "b", "delay": 100}]}
{"turns": [{"text": "c"}]}
"#;
    let played = probe(set, ("output_tokens: 3", closed), Some(3)).await;
    assert_eq!(played.texts(), ["a", "b", "c"]);
    assert_eq!(played.times(), [0, 103, 106]);
    assert_eq!(played.sent[0].body["max_tokens"], 3);
    let keys = "output_tokens: 3, delay_ratio: 2, delay_cap: 150ms";
    let played = probe(set, (keys, closed), Some(2)).await;
    assert_eq!(played.times(), [0, 153]);
    let set = r#"[{"conversations": [{"from": "human", "value": "q1"}, {"from": "gpt", "value": "recorded"}, {"from": "human", "value": "q2"}, {"from": "gpt", "value": "x"}]}]"#;
    let played = probe(set, ("replies: recorded", closed), Some(2)).await;
    assert_eq!(played.sent[1].messages()[1], ("assistant", "recorded"));
    let rows: Vec<String> = (0..30)
        .map(|row| format!("{{\"text\": \"t{row}\"}}"))
        .collect();
    let keys = "sampling: shuffle, output_tokens: 1";
    let played = probe(&rows.join("\n"), (keys, closed), Some(30)).await;
    let mut texts = played.texts();
    assert_ne!(texts[..3], ["t0", "t1", "t2"]);
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 30);
    let trace = r#"{"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [1, 3]}
"#;
    let played = probe(trace, ("block_size: 16", closed), Some(2)).await;
    assert_eq!(played.sent[0].words()[..16], played.sent[1].words()[..16]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (workload, arrivals, wanted) in [
        (
            "synthetic: { input_tokens: 1, output_tokens: 1 }",
            "process: trace",
            "`workload.file` beside `process: trace`",
        ),
        (
            "file: { path: x, sampling: random }",
            "process: trace",
            "no `sampling` beside `process: trace`",
        ),
        (
            "file: { path: x }",
            "process: users, users: 1, rate: 1/s, turns: 2",
            "no `turns` beside `workload.file`",
        ),
        (
            "file: { path: x }, cache: warm",
            "process: closed, concurrency: 1",
            "either `file` or `synthetic`",
        ),
        (
            "file: { path: x, delay_ratio: -1 }",
            "process: closed, concurrency: 1",
            "a number from `0` to `1000`",
        ),
        (
            "file: { format: sharegpt }",
            "process: closed, concurrency: 1",
            "the path of a data set or a trace",
        ),
    ] {
        let text = format!(
            "targets: [{{ name: sim, url: 'http://sim' }}]
probes:
- name: probe
  targets: [sim]
  workload: {{ {workload} }}
  arrivals: {{ {arrivals} }}
"
        );
        let found = from_text(&text, Format::Yaml, "c.yaml").expect_err("refused");
        assert!(
            found.to_string().contains(wanted),
            "{workload}, {arrivals}: {found}"
        );
    }
}
