//! Conversations: each turn after the one before, with what was said.

use tokencanary::clock::MonoTime;
use tokencanary::measurement::Outcome;
use tokencanary::simulator::FaultKind;

use super::*;

const SET: &str = r#"{"session_id": "a", "turns": [{"text": "a1"}, {"text": "a2", "delay": 500}, {"text": "a3", "delay": 2000}]}
{"session_id": "b", "turns": [{"text": "b1"}, {"text": "b2"}]}
"#;

#[tokio::test(start_paused = true)]
async fn a_turn_is_due_after_the_answer_and_its_pause_and_carries_what_was_said() {
    let played = bench(SET, "--num-sessions 2 --osl 3").await;
    // Each takes 3 ms: the first token after 1 ms, then one each ms.
    assert_eq!(played.times(), [0, 503, 2_506, 2_509, 2_512]);
    assert_eq!(played.texts(), ["a1", "a2", "a3", "b1", "b2"]);
    let answers = &played.answers;
    assert_eq!(answers.len(), 5);
    let third = played.sent[2].messages();
    let roles: Vec<&str> = third.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!((third[0].1, third[2].1), ("a1", "a2"));
    for said in [third[1].1, third[3].1] {
        assert!(answers.iter().any(|answer| answer == said), "{said}");
    }
    assert_eq!(
        played.sent[3].messages(),
        [("user", "b1")],
        "a new one begins"
    );
    let intended: Vec<u64> = played
        .records
        .iter()
        .map(|record| record.timeline.intended.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(
        intended,
        [0, 503, 2_506, 2_509, 2_512],
        "each is an arrival"
    );
    assert!(played.records.iter().all(|record| record.reply.is_none()));
}

#[tokio::test(start_paused = true)]
async fn pauses_can_be_scaled_capped_and_left_out() {
    for (flags, expected) in [
        ("--session-delay-ratio 2", vec![0, 1_003, 5_006]),
        ("--conversation-turn-delay-ratio 0.5", vec![0, 253, 1_256]),
        ("--inter-turn-delay-cap-seconds 1", vec![0, 503, 1_506]),
        ("--ignore-trace-delays", vec![0, 3, 6]),
    ] {
        let played = bench(SET, &format!("--num-sessions 1 --osl 3 {flags}")).await;
        assert_eq!(played.times(), expected, "{flags}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_conversations_and_a_count_is_requests() {
    let played = bench(SET, "--concurrency 2 --num-sessions 2 --osl 3").await;
    assert_eq!(played.times(), [0, 0, 3, 503, 2_506]);
    let played = bench(SET, "--request-count 2 --osl 3").await;
    assert_eq!(played.texts(), ["a1", "a2"]);
    assert_eq!(played.report.files[0].unsent_turns, 1);
    let flags = "--request-rate 10 --arrival-pattern constant --num-sessions 2 --osl 3";
    let played = bench(SET, flags).await;
    assert_eq!(played.times(), [0, 100, 103, 503, 2_506]);
    let played = bench(SET, "--benchmark-duration 1 --num-sessions 1 --osl 3").await;
    assert_eq!(
        played.times(),
        [0, 503],
        "what is due after the end is no arrival"
    );
}

#[tokio::test(start_paused = true)]
async fn recorded_replies_are_carried_if_they_are_asked_for() {
    let set = r#"[{"conversations": [{"from": "human", "value": "q1"}, {"from": "gpt", "value": "recorded"}, {"from": "human", "value": "q2"}, {"from": "gpt", "value": "more"}]}]"#;
    let played = bench(set, "--num-sessions 1 --replies recorded").await;
    assert_eq!(
        played.sent[1].messages(),
        [("user", "q1"), ("assistant", "recorded"), ("user", "q2")]
    );
    let played = bench(set, "--num-sessions 1").await;
    assert_ne!(played.sent[1].messages()[1].1, "recorded");
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_ends_its_conversation_and_is_counted() {
    let fault = Fault {
        kind: FaultKind::Status {
            code: 500,
            retry_after: None,
        },
        from: MonoTime::ZERO,
        lasts: Duration::from_millis(1),
    };
    let at = (server(1), vec![fault]);
    let flags = "--request-rate 1 --arrival-pattern constant --num-sessions 2 --osl 3";
    let played = bench_at(SET, flags, at).await;
    assert_eq!(played.texts(), ["a1", "b1", "b2"]);
    let outcomes: Vec<Outcome> = played.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [Outcome::HttpStatus, Outcome::Ok, Outcome::Ok]);
    let file = &played.report.files[0];
    assert_eq!((file.cut_sessions, file.unsent_turns), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_trace_without_a_time_follow_the_one_before() {
    let trace = r#"{"session_id": "a", "timestamp": 100, "input_length": 5, "output_length": 2}
{"session_id": "a", "delay": 400, "input_length": 6, "output_length": 2}
{"session_id": "b", "timestamp": 300, "input_length": 7, "output_length": 2}
"#;
    let format = "--custom-dataset-type mooncake_trace";
    let played = bench(trace, format).await;
    // Two tokens take 2 ms; 0 + 2 + 400.
    assert_eq!(played.times(), [0, 200, 402]);
    assert_eq!(played.counts(), [5, 7, 6]);
    let played = bench(trace, &format!("{format} --speed 2")).await;
    assert_eq!(
        played.times(),
        [0, 100, 202],
        "pauses too are played faster"
    );
}

#[tokio::test(start_paused = true)]
async fn every_arrival_is_one_record_when_a_run_ends_among_turns() {
    let rows: Vec<String> = (0..50)
        .map(|row| format!(r#"{{"turns": [{{"text": "{row}a"}}, {{"text": "{row}b", "delay": 30}}, {{"text": "{row}c", "delay": 70}}]}}"#))
        .collect();
    let flags = "--request-rate 50 --arrival-pattern constant --concurrency 4 --benchmark-duration 1 --benchmark-grace-period 0 --osl 20";
    let played = bench(&rows.join("\n"), flags).await;
    let summary = played.report.summary.as_ref().expect("kept");
    assert_eq!(summary.records, played.records.len() as u64);
    let sequence: Vec<u64> = played
        .records
        .iter()
        .map(|record| record.sequence)
        .collect();
    let all: Vec<u64> = (0..sequence.len() as u64).collect();
    assert_eq!(sequence, all, "no number is missing");
    assert!(played.sent.len() > 20);
}
