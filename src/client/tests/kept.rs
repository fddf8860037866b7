//! Which requests share a connection, and what a response head may hold.

use std::sync::atomic::Ordering;

use super::peer::{Peer, Trial};
use super::{DONE, FINISH, HEAD, TOKEN, one, since_start};
use crate::config::NetworkConfig;
use crate::measurement::{ConnectionPolicy, Outcome};
use std::time::Duration;

/// Which of the requests found a connection, and how many were opened.
async fn shared(
    policy: ConnectionPolicy,
    reuse_for: Option<Duration>,
    requests: Vec<(u64, Option<u64>)>,
) -> (Vec<bool>, u32) {
    let peer = Peer::new(None);
    let network = NetworkConfig {
        reuse_for,
        ..NetworkConfig::default()
    };
    let mut trial = Trial::of(&peer, network);
    trial.policy = policy;
    trial.requests = requests;
    let records = trial.run().await;
    let reused = records.iter().map(|record| {
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        record.reused == Some(true)
    });
    (reused.collect(), peer.connections.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn each_session_has_a_connection_of_its_own() {
    let requests = [Some(1), Some(2), Some(1), None, Some(2), None]
        .map(|session| (1, session))
        .to_vec();
    let (reused, opened) = shared(ConnectionPolicy::PerSession, None, requests.clone()).await;
    assert_eq!(reused, [false, false, true, false, true, false]);
    assert_eq!(opened, 4);
    let (reused, opened) = shared(ConnectionPolicy::Pooled, None, requests.clone()).await;
    assert_eq!(reused, [false, true, true, true, true, true]);
    assert_eq!(opened, 1);
    let (reused, opened) = shared(ConnectionPolicy::New, None, requests).await;
    assert_eq!((reused.contains(&true), opened), (false, 6));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_not_used_beyond_the_age_allowed() {
    // Each request takes 30 ms; the third would begin 130 ms after the connection was opened.
    let requests = vec![(0, None), (35, None), (35, None), (35, None)];
    let limit = Some(Duration::from_millis(100));
    let (reused, opened) = shared(ConnectionPolicy::Pooled, limit, requests).await;
    assert_eq!(reused, [false, true, false, true]);
    assert_eq!(opened, 2);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed_and_says_where_to() {
    for (head, expected) in [
        (
            "HTTP/1.1 302 Found\r\nlocation: https://u:p@gw.example/v1?sig=x\r\ncontent-length: 0\r\n\r\n",
            "302 Found to `https://gw.example/v1?…`, not followed",
        ),
        (
            "HTTP/1.1 308 Permanent Redirect\r\nlocation: /elsewhere\r\ncontent-length: 7\r\n\r\n<html/>",
            "308 Permanent Redirect to `/elsewhere`, not followed",
        ),
        (
            "HTTP/1.1 307 Temporary Redirect\r\ncontent-length: 0\r\n\r\n",
            "307 Temporary Redirect without a location",
        ),
    ] {
        let record = one(vec![(1, head)]).await;
        assert_eq!(record.outcome, Outcome::HttpStatus);
        let error = record.error.expect("it says why");
        assert_eq!((&*error.kind, &*error.message), ("redirect", expected));
    }
}

#[tokio::test(start_paused = true)]
async fn interim_responses_are_skipped() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let record = one(vec![
        (3, hints),
        (4, HEAD),
        (5, TOKEN),
        (1, FINISH),
        (0, DONE),
    ])
    .await;
    assert_eq!(
        (record.outcome, record.http_status),
        (Outcome::Ok, Some(200))
    );
    assert_eq!(
        since_start(&record, record.timeline.first_token),
        Some(Duration::from_millis(12))
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_told_in_either_form() {
    for (value, shown) in [
        ("120", "503 Service Unavailable, retry after 120"),
        (
            "Wed, 21 Oct 2026 07:28:00 GMT",
            "503 Service Unavailable, retry after Wed, 21 Oct 2026 07:28:00 GMT",
        ),
    ] {
        let head: &'static str =
            format!("HTTP/1.1 503 Busy\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n")
                .leak();
        let error = one(vec![(1, head)]).await.error.expect("it says why");
        assert_eq!(&*error.message, shown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_head_has_limits() {
    let many = "x: y\r\n".repeat(200);
    let long = format!("x: {}\r\n", "y".repeat(70_000));
    for fields in [many, long] {
        let head: &'static str = format!("HTTP/1.1 200 OK\r\n{fields}\r\n").leak();
        let record = one(vec![(1, head)]).await;
        assert_eq!(record.outcome, Outcome::Malformed, "{:?}", record.error);
    }
}
