//! Sessions with sub-agents, which are at work beside the session.

use tokencanary::clock::MonoTime;
use tokencanary::measurement::Outcome;
use tokencanary::simulator::FaultKind;

use super::*;

/// A sub-agent with two requests, during which the session asks once; after both it asks again.
const SESSION: &str = r#"{"id": "s", "models": ["m"], "block_size": 16, "hash_id_scope": "local", "requests": [
{"t": 0.0, "type": "n", "in": 5, "out": 2, "hash_ids": [], "api_time": 0.01},
{"t": 0.02, "type": "subagent", "agent_id": "x", "requests": [
 {"t": 0.02, "type": "n", "in": 6, "out": 2, "hash_ids": [], "api_time": 0.1},
 {"t": 0.13, "type": "n", "in": 7, "out": 2, "hash_ids": [], "api_time": 0.1}]},
{"t": 0.05, "type": "n", "in": 8, "out": 2, "hash_ids": [], "api_time": 0.02},
{"t": 0.3, "type": "n", "in": 9, "out": 2, "hash_ids": [], "api_time": 0.01}]}"#;

fn one_line() -> String {
    SESSION.replace('\n', " ")
}

#[tokio::test(start_paused = true)]
async fn sub_agents_are_at_work_beside_their_session() {
    let played = bench(&one_line(), "--num-sessions 1").await;
    // Each takes 2 ms. The sub-agent begins 10 ms after the first, and goes on 10 ms after its
    // own first; the session asks 40 ms after its first, and again 70 ms after the last of all.
    assert_eq!(played.times(), [0, 12, 24, 42, 114]);
    assert_eq!(played.counts(), [5, 6, 7, 8, 9]);
    let ids: Vec<_> = played.records.iter().map(|one| one.ids).collect();
    let links = played.records.iter().map(|one| one.link);
    let links: Vec<_> = links.map(|link| link.map(|link| link.ids)).collect();
    assert_eq!(
        links,
        [None, Some(ids[0]), Some(ids[1]), Some(ids[0]), Some(ids[3])]
    );
    let slower = bench_at(&one_line(), "--num-sessions 1", (server(30), Vec::new())).await;
    // 31 ms each: the sub-agent, from 41 on, is not over when the session asks at 71.
    assert_eq!(slower.times(), [0, 41, 71, 82, 183]);
    assert_eq!(slower.counts(), [5, 6, 8, 7, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_session_has_one_place_and_the_next_begins_when_all_of_it_has_ended() {
    let two = [one_line(), one_line().replace("\"s\"", "\"t\"")].join("\n");
    let played = bench(&two, "--num-sessions 2 --concurrency 1").await;
    assert_eq!(
        played.times(),
        [0, 12, 24, 42, 114, 116, 128, 140, 158, 230]
    );
    let cut = bench(&one_line(), "--benchmark-duration 0.03 --num-sessions 1").await;
    assert_eq!(cut.times(), [0, 12, 24]);
    assert_eq!(cut.report.files[0].unsent_turns, 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_ends_its_session_and_those_under_way_end() {
    let fault = Fault {
        kind: FaultKind::Cut { after_chunks: 1 },
        from: MonoTime::from_nanos(20_000_000),
        lasts: Duration::from_millis(5),
    };
    let at = (server(1), vec![fault]);
    let flags = "--num-sessions 2 --concurrency 1";
    let two = [one_line(), one_line().replace("\"s\"", "\"t\"")].join("\n");
    let played = bench_at(&two, flags, at).await;
    // The sub-agent is cut at 25 ms; nothing else is under way, so the next session begins.
    assert_eq!(played.records[2].outcome, Outcome::StreamCut);
    assert_eq!(played.sent.len(), 3 + 5);
    let file = &played.report.files[0];
    assert_eq!((file.cut_sessions, file.unsent_turns), (1, 2));
}
