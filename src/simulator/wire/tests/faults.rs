//! Faults as a client meets them.

use super::*;
use crate::simulator::FaultKind;

fn fault(kind: FaultKind, from: u64, until: u64) -> Fault {
    Fault {
        kind,
        from: MonoTime::ZERO + ms(from),
        lasts: ms(until - from),
    }
}

fn inject(rig: &Rig, kind: FaultKind, from: u64, until: u64) {
    let injected = rig.simulator.inject(fault(kind, from, until));
    injected.expect("there is room for a fault");
}

fn instants(peer: &Peer) -> Vec<u64> {
    peer.writes().iter().map(|(at, _)| *at).collect()
}

#[tokio::test(start_paused = true)]
async fn a_freeze_holds_the_writes_back() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    inject(&rig, FaultKind::Freeze, 15, 1015);
    let mut peer = rig.connect();
    peer.say(&streamed(3)).await;
    rig.until(500).await;
    let page = rig.ask(&get("/health")).await;
    assert!(page.starts_with("HTTP/1.1 200 OK"));
    rig.until(2000).await;
    assert_eq!(instants(&peer), [0, 10, 10, 1020, 1030, 1030, 1030]);
}

#[tokio::test(start_paused = true)]
async fn slow_steps_are_slow_only_while_the_fault_lasts() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let said = rig
        .ask(&post(
            "/sim/faults",
            r#"{"fault":"slow_prefill","factor":4,"for":"5ms"}"#,
        ))
        .await;
    assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    let mut peer = rig.connect();
    peer.say(&streamed(2)).await;
    rig.until(1000).await;
    assert_eq!(instants(&peer), [0, 40, 40, 50, 50, 50]);
}

#[tokio::test(start_paused = true)]
async fn a_hang_loses_what_arrives_and_stops_what_runs() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    inject(&rig, FaultKind::Hang, 5, 105);
    let mut early = rig.connect();
    early.say(&streamed(1)).await;
    rig.until(50).await;
    let mut lost = rig.connect();
    lost.say(&streamed(1)).await;
    rig.until(1000).await;
    assert_eq!(instants(&early), [0, 110, 110, 110, 110]);
    assert_eq!(instants(&lost), [0; 0]);
    assert!(!lost.is_closed());
    let mut late = rig.connect();
    late.say(&streamed(1)).await;
    rig.until(2000).await;
    assert_eq!(instants(&late), [1000, 1010, 1010, 1010, 1010]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_closes_without_a_terminal_event() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    inject(&rig, FaultKind::Cut { after_chunks: 2 }, 0, 1);
    let mut long = rig.connect();
    long.say(&streamed(9)).await;
    let mut short = rig.connect();
    short.say(&streamed(1)).await;
    rig.until(19).await;
    assert!(short.is_closed());
    assert!(!long.is_closed());
    rig.until(1000).await;
    assert!(long.is_closed());
    assert_eq!(instants(&long), [0, 10, 10, 20]);
    assert_eq!(instants(&short), [0, 10, 10]);
    assert!(!short.text().contains("\"finish_reason\":\"length\""));
    assert_eq!(rig.simulator.state().running, 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_inside_the_stream() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    inject(&rig, FaultKind::StreamError { after_chunks: 1 }, 0, 1);
    let mut peer = rig.connect();
    peer.say(&streamed(9)).await;
    rig.until(1000).await;
    assert_eq!(instants(&peer), [0, 10, 10, 10]);
    let text = peer.text();
    assert!(text.contains("data: {\"error\":{"), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_answered_with_its_retry_after() {
    let rig = Rig::new(Profile::instant());
    let body = r#"{"fault":"status","code":429,"retry_after":"7s","for":"5s"}"#;
    rig.ask(&post("/sim/faults", body)).await;
    let text = rig.ask(&streamed(1)).await;
    assert!(
        text.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{text}"
    );
    assert!(text.contains("\r\nretry-after: 7\r\n"), "{text}");
    rig.until(5000).await;
    let text = rig.ask(&streamed(1)).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_drops_connections_and_begins_anew() {
    let rig = Rig::new(Profile::fixed(ms(10), ms(10)));
    let before = rig.ask(&get("/metrics")).await;
    inject(&rig, FaultKind::Restart { version: None }, 2000, 5000);
    let mut idle = rig.connect();
    idle.say(&streamed(1)).await;
    rig.until(1995).await;
    let mut busy = rig.connect();
    busy.say(&streamed(9)).await;
    rig.until(2000).await;
    settle().await;
    assert!(idle.is_closed() && busy.is_closed());
    let loading = rig.ask(&get("/health")).await;
    assert!(loading.starts_with("HTTP/1.1 503 "), "{loading}");
    assert!(loading.contains("\r\nretry-after: 3\r\n"), "{loading}");
    rig.until(5000).await;
    let version = rig.ask(&get("/version")).await;
    assert!(version.ends_with(r#"{"version":"0.11.1"}"#), "{version}");
    let after = rig.ask(&get("/metrics")).await;
    let tokens = "vllm:generation_tokens_total{engine=\"0\",model_name=\"sim/canary-0.6b\"} 0.0";
    assert!(after.contains(tokens), "{after}");
    assert_ne!(start_of(&before), start_of(&after));
}

fn start_of(page: &str) -> Option<&str> {
    page.lines()
        .find(|line| line.starts_with("process_start_time_seconds "))
}

#[tokio::test(start_paused = true)]
async fn faults_are_listed_while_they_last_and_bad_ones_refused() {
    let rig = Rig::new(Profile::instant());
    let bad = rig.ask(&post("/sim/faults", r#"{"fault":"fire"}"#)).await;
    assert!(bad.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{bad}");
    assert!(bad.contains("`for` is missing; wanted a duration"), "{bad}");
    rig.ask(&post(
        "/sim/faults",
        r#"{"fault":"cut","for":"5s","after_chunks":3}"#,
    ))
    .await;
    rig.until(2000).await;
    let listed = rig.ask(&get("/sim/faults")).await;
    assert!(
        listed.ends_with(
            r#"{"faults":[{"after_chunks":3,"ends_in":"3s","fault":"cut","for":"5s","starts_in":"0s"}]}"#
        ),
        "{listed}"
    );
    rig.until(5000).await;
    let listed = rig.ask(&get("/sim/faults")).await;
    assert!(listed.ends_with(r#"{"faults":[]}"#), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn the_engine_is_empty_after_any_mixture_of_faults() {
    let rig = Rig::new(Profile {
        max_running: 3,
        ..Profile::fixed(ms(20), ms(10))
    });
    let kinds = [
        FaultKind::Cut { after_chunks: 2 },
        FaultKind::Freeze,
        FaultKind::Restart { version: None },
        FaultKind::StreamError { after_chunks: 0 },
        FaultKind::SlowDecode { factor: 3.0 },
        FaultKind::Hang,
        FaultKind::Status {
            code: 500,
            retry_after: None,
        },
    ];
    for (at, kind) in (0..).map(|fault| fault * 300).zip(kinds) {
        inject(&rig, kind, at, at + 200);
    }
    let mut peers = Vec::new();
    for arrival in 0..100 {
        rig.until(arrival * 25).await;
        let mut peer = rig.connect();
        peer.say(&streamed(1 + u32::try_from(arrival % 7).unwrap_or(0)))
            .await;
        peers.push(peer);
    }
    rig.until(60_000).await;
    let state = rig.simulator.state();
    assert_eq!((state.running, state.waiting), (0, 0));
    let ended = |peer: &&Peer| peer.is_closed() || peer.text().contains("[DONE]");
    let refused = |peer: &&Peer| peer.text().starts_with("HTTP/1.1 50");
    let open = peers.iter().filter(|p| !ended(p) && !refused(p)).count();
    // Those that arrived in the hang, from 1500 to 1700: 1500, 1525 ... 1675.
    assert_eq!(open, 8);
}
