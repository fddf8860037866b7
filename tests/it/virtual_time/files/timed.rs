//! Turns that are due at times of their own: rows of a session, and users who work through the
//! conversations of a file. Each waits for the one before it.

use tokencanary::clock::MonoTime;
use tokencanary::measurement::{LinkKind, Outcome, RefusedReason};
use tokencanary::simulator::FaultKind;

use super::*;

const MOONCAKE: &str = "--custom-dataset-type mooncake_trace";

fn in_ms(span: Option<Duration>) -> u128 {
    span.expect("it had a slot").as_millis()
}

fn slot_waits(played: &Played) -> Vec<u128> {
    let records = played.records.iter();
    records.map(|record| in_ms(record.slot_wait())).collect()
}

const LENGTHS: &str = r#"{"session_id": "a", "timestamp": 0, "input_length": 5, "output_length": 20}
{"session_id": "a", "timestamp": 5, "input_length": 6, "output_length": 2}
{"session_id": "b", "timestamp": 6, "input_length": 7, "output_length": 2}
{"session_id": "a", "timestamp": 7, "input_length": 8, "output_length": 2}
{"session_id": "a", "timestamp": 100, "input_length": 9, "output_length": 2}
"#;

#[tokio::test(start_paused = true)]
async fn a_row_waits_for_the_row_of_its_session_before_it_and_others_go_on() {
    for when in ["", "--concurrency 9"] {
        let played = bench(LENGTHS, &format!("{MOONCAKE} {when}")).await;
        // The first takes 20 ms, the others 2.
        assert_eq!(played.times(), [0, 6, 20, 22, 100]);
        assert_eq!(played.counts(), [5, 7, 6, 8, 9]);
        assert_eq!(slot_waits(&played), [0, 15, 0, 15, 0]);
        let lags = played.records.iter().map(RequestRecord::schedule_lag);
        assert!(lags.map(in_ms).all(|lag| lag == 0), "we caused none of it");
        let links = played.records.iter().map(|one| one.link);
        let linked: Vec<_> = links.map(|link| link.map(|link| link.ids)).collect();
        let ids: Vec<_> = played.records.iter().map(|one| one.ids).collect();
        assert_eq!(
            linked,
            [None, Some(ids[0]), None, Some(ids[1]), Some(ids[3])]
        );
        let kind = played.records[1].link.map(|link| link.kind);
        assert_eq!(kind, Some(LinkKind::Turn));
    }
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_row_without_a_time_is_waited_for_too() {
    let trace = r#"{"session_id": "a", "timestamp": 0, "input_length": 5, "output_length": 2}
{"session_id": "a", "delay": 10, "input_length": 6, "output_length": 2}
{"session_id": "a", "timestamp": 5, "input_length": 7, "output_length": 2}
"#;
    let played = bench(trace, MOONCAKE).await;
    assert_eq!(played.times(), [0, 12, 14]);
    assert_eq!(played.counts(), [5, 6, 7]);
}

const TEXTS: &str = r#"{"session_id": "a", "timestamp": 0, "text_input": "a1", "output_length": 3}
{"session_id": "b", "timestamp": 0, "text_input": "b1", "output_length": 3}
{"session_id": "a", "timestamp": 1, "text_input": "a2", "output_length": 3}
{"session_id": "a", "timestamp": 50, "text_input": "a3", "output_length": 3}
"#;

#[tokio::test(start_paused = true)]
async fn rows_with_texts_carry_what_was_said_on_one_connection() {
    let flags = format!("{MOONCAKE} --connection-reuse-strategy sticky-user-sessions");
    let played = bench(TEXTS, &flags).await;
    assert_eq!(played.times(), [0, 0, 3, 50]);
    let last = &played.sent[3];
    let said = last.messages();
    let texts: Vec<_> = said.iter().step_by(2).map(|(_, text)| *text).collect();
    assert_eq!(texts, ["a1", "a2", "a3"]);
    let roles: Vec<_> = said.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    for (_, answer) in said.iter().skip(1).step_by(2) {
        assert!(played.answers.iter().any(|said| said == answer), "{answer}");
    }
    let of = |text: &str| {
        let sent = played.sent.iter().find(|sent| sent.text() == text);
        sent.expect("it was sent").connection
    };
    assert_eq!((of("a1"), of("a1")), (of("a2"), of("a3")));
    assert_ne!(of("a1"), of("b1"));
    assert!(played.records.iter().all(|record| record.reply.is_none()));
    let recorded = bench(TEXTS, &format!("{MOONCAKE} --replies recorded")).await;
    let said = recorded.sent[3].messages();
    assert_eq!(said, [("user", "a1"), ("user", "a2"), ("user", "a3")]);
}

#[tokio::test(start_paused = true)]
async fn a_row_is_sent_whatever_became_of_the_one_before() {
    let fault = Fault {
        kind: FaultKind::Cut { after_chunks: 2 },
        from: MonoTime::ZERO,
        lasts: Duration::from_millis(1),
    };
    let at = (server(1), vec![fault]);
    let played = bench_at(TEXTS, MOONCAKE, at).await;
    let outcomes: Vec<_> = played.records.iter().map(|one| one.outcome).collect();
    let (ok, cut) = (Outcome::Ok, Outcome::StreamCut);
    assert_eq!(outcomes, [cut, cut, ok, ok]);
    assert_eq!(played.sent[2].messages(), [("user", "a2")]);
    let third = played.sent[3].messages();
    assert_eq!(
        (third.len(), third[0], third[2]),
        (3, ("user", "a2"), ("user", "a3"))
    );
    assert_eq!(played.report.files[0].cut_sessions, 0);
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_when_a_run_ends_are_records_too() {
    let flags = format!("{MOONCAKE} --benchmark-duration 0.01 --benchmark-grace-period 0");
    let played = bench(LENGTHS, &flags).await;
    let ended: Vec<_> = played
        .records
        .iter()
        .map(|one| (one.outcome, one.refused))
        .collect();
    let late = (Outcome::Refused, Some(RefusedReason::InFlight));
    assert_eq!(
        ended,
        [(Outcome::Cancelled, None), late, (Outcome::Ok, None), late]
    );
}

const SET: &str = r#"{"session_id": "a", "turns": [{"text": "a1"}, {"text": "a2", "delay": 500}, {"text": "a3", "delay": 2000}]}
{"session_id": "b", "turns": [{"text": "b1"}, {"text": "b2"}]}
"#;
const USERS: &str = "--num-users 2 --user-centric-rate 10 --osl 3";

#[tokio::test(start_paused = true)]
async fn users_work_through_the_conversations_of_a_file() {
    let played = bench(SET, &format!("{USERS} --num-sessions 2")).await;
    // A turn every 100 ms, of each user every 200 ms: pauses of the file are left out.
    assert_eq!(played.times(), [0, 100, 200, 300, 400]);
    assert_eq!(played.texts(), ["a1", "b1", "a2", "b2", "a3"]);
    let third = played.sent[4].messages();
    let asked: Vec<_> = third.iter().step_by(2).map(|(_, text)| *text).collect();
    assert_eq!(asked, ["a1", "a2", "a3"]);
    assert_eq!(played.sent[3].messages().len(), 3);
    let played = bench(SET, &format!("{USERS} --request-count 9")).await;
    // Who has come to an end goes on with the next conversation of the file.
    let texts = ["a1", "b1", "a2", "b2", "a3", "a1", "b1", "a2", "b2"];
    assert_eq!(played.texts(), texts);
    assert_eq!(played.sent[5].messages(), [("user", "a1")]);
    assert_eq!(played.report.files[0].unsent_turns, 1);
    let sessions: Vec<_> = played
        .records
        .iter()
        .map(|one| one.link.is_some())
        .collect();
    let linked = [false, false, true, true, true, false, false, true, true];
    assert_eq!(sessions, linked);
}

#[tokio::test(start_paused = true)]
async fn a_user_waits_for_its_last_answer() {
    let at = (server(350), Vec::new());
    let flags = "--num-users 1 --user-centric-rate 10 --osl 3 --request-count 3";
    let played = bench_at(SET, flags, at).await;
    assert_eq!(played.times(), [0, 352, 704]);
    assert_eq!(slot_waits(&played), [0, 252, 504]);
    assert_eq!(played.sent[2].messages().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_probe_can_have_users_and_a_file() {
    let arrivals = "process: users, users: 2, rate: 10/s";
    let played = probe(SET, ("output_tokens: 3", arrivals), Some(5)).await;
    assert_eq!(played.texts(), ["a1", "b1", "a2", "b2", "a3"]);
    let text = format!(
        "targets: [{{ name: sim, url: 'http://sim' }}]
probes:
- name: probe
  targets: [sim]
  workload: {{ file: {{ path: x }} }}
  arrivals: {{ {arrivals}, turns: 3 }}
"
    );
    let refused = from_text(&text, Format::Yaml, "c.yaml").expect_err("turns are the file's");
    let refused = refused.to_string();
    assert!(
        refused.contains("no `turns` beside `workload.file`"),
        "{refused}"
    );
}
