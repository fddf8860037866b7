//! Faults that users of other tools reported about times, reports, loads and probes, each by its
//! number in the list.

use std::time::Duration;

use super::case::{A, DONE, Expected, LENGTH, ROLE, STOP, chat, ended, ok, usage};
use super::peer::{answered, ask, only};
use crate::config::Limits;
use crate::measurement::TokenSource::Usage;
use crate::measurement::{Note, Outcome};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

#[test]
pub(super) fn b003_a_missing_first_token_is_no_time_at_all() {
    for reads in [
        &[][..],
        &[(30, "")],
        &[(30, "\n\n")],
        &[(30, ROLE)],
        &[(30, ": ping\n\n")],
    ] {
        let record = chat(reads).gives(&ended(Outcome::StreamCut));
        let none = [
            record.ttft(),
            record.ttfo(),
            record.itl(),
            record.response_ttft(),
        ];
        assert_eq!(none, [None; 4]);
    }
    let json = r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#;
    chat(&[(30, json)]).gives(&ended(Outcome::Empty).finish("stop"));
}

#[tokio::test(start_paused = true)]
pub(super) async fn b036_the_beginning_of_a_wrong_body_is_kept() {
    let long = format!("<html><h1>502 Bad Gateway</h1>{}</html>", "x".repeat(5_000));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
    let record = answered(&[(20, head), (10, &long)]).await;
    ended(Outcome::Malformed).check(&record);
    let message = record.error.expect("it says why").message;
    assert!(
        message.starts_with("<html><h1>502 Bad Gateway</h1>"),
        "{message}"
    );
    assert!(message.len() <= 500, "{}", message.len());
    let record = chat(&[(30, A), (40, &A[..20])]).broken().record();
    assert_eq!(record.outcome, Outcome::StreamCut);
    let error = record.error.expect("it says why");
    assert_eq!(&*error.kind, "connection broken");
    assert_eq!(record.bytes, A.len() as u64 + 20);
}

#[tokio::test(start_paused = true)]
pub(super) async fn b038_an_error_after_two_minutes_took_two_minutes() {
    let limits = Limits {
        first_token: None,
        total: Duration::from_mins(10),
        ..Limits::PROBE
    };
    let head = "HTTP/1.1 524 Timeout\r\ncontent-length: 0\r\n\r\n".as_bytes();
    let steps = vec![(125_000, head.to_vec())];
    let record = only(ask(vec![vec![steps]], limits).await);
    ended(Outcome::HttpStatus).check(&record);
    let end = record.timeline.end.expect("it ended");
    let start = record.timeline.start.expect("it started");
    assert_eq!(end.since(start), Duration::from_secs(125));
    assert_eq!(record.http_status, Some(524));
}

#[test]
pub(super) fn b041_fewer_tokens_than_asked_for_are_noted() {
    let record = chat(&[
        (30, A),
        (400, A),
        (401, STOP),
        (402, &usage(371)),
        (403, DONE),
    ])
    .asking(2_048)
    .gives(
        &ok("stop")
            .times(30, 400, 2)
            .tokens(371, Usage)
            .itl_us(1_000)
            .notes(&[Note::LengthNotAsked]),
    );
    assert_eq!(record.tokens.requested_output, Some(2_048));
    chat(&[(30, A), (40, A), (41, LENGTH), (42, &usage(2)), (43, DONE)])
        .asking(2)
        .gives(&two().finish("length"));
}

#[tokio::test(start_paused = true)]
pub(super) async fn b050_a_kept_connection_is_used_again_and_the_record_says_so() {
    let body = [A, STOP, DONE].concat();
    let whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = || vec![(20, whole.clone().into_bytes())];
    let all = ask(vec![vec![answer(), answer(), answer()]], Limits::PROBE).await;
    let reused: Vec<_> = all.records.iter().map(|record| record.reused).collect();
    assert_eq!(reused, [Some(false), Some(true), Some(true)]);
    let connected: Vec<bool> = all
        .records
        .iter()
        .map(|record| record.timeline.connected.is_some())
        .collect();
    assert_eq!(
        connected,
        [true, false, false],
        "no time of another request"
    );
}

#[tokio::test(start_paused = true)]
pub(super) async fn b052_a_target_that_never_answers_is_a_counted_failure() {
    let record = only(ask(vec![vec![vec![(3_600_000, Vec::new())]]], Limits::PROBE).await);
    ended(Outcome::TimeoutFirstToken).silent().check(&record);
    assert!(record.is_failure());
    let (start, end) = (record.timeline.start, record.timeline.end);
    let took = end.expect("it ended").since(start.expect("it started"));
    assert_eq!(took, Duration::from_secs(10));
}
