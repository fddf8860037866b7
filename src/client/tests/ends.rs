//! How a response ends that does not end as it should, and what is kept of it.

use super::*;

/// A peer that writes `head` and then `piece` again and again, as fast as it is taken, waiting
/// a millisecond after each.
async fn without_end(head: &str, piece: &'static str) -> RequestRecord {
    let pieces = std::iter::repeat_n((1, piece), 5_000);
    let head: &'static str = head.to_owned().leak();
    let steps = std::iter::once((1, head)).chain(pieces).collect();
    exchange(vec![vec![steps]], Setup::default())
        .await
        .remove(0)
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_last_event_is_read_for_a_short_time_only() {
    let head = format!("{HEAD}{TOKEN}{FINISH}{DONE}");
    let record = without_end(&head, ": and another thing\n\n").await;
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(since_start(&record, record.timeline.last_token), ms(1));
    assert!(since_start(&record, record.timeline.end) <= ms(2_003));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_pauses_still_meets_its_limits() {
    let mut setup = Setup::default();
    setup.limits.total = Duration::from_millis(900);
    let steps = std::iter::once((1, HEAD)).chain(std::iter::repeat_n((1, TOKEN), 3_000));
    let record = exchange(vec![vec![steps.collect()]], setup).await.remove(0);
    assert_eq!(record.outcome, Outcome::TimeoutTotal);
    assert!(record.chunks.len() <= 900);
}

#[tokio::test(start_paused = true)]
async fn an_encoding_we_did_not_ask_for_is_named() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let record = one(vec![(1, head), (1, "\u{1f}x")]).await;
    assert_eq!(record.outcome, Outcome::Malformed);
    let message = record.error.expect("it says why").message;
    assert!(message.contains("`gzip`"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_is_cut_and_cannot_steer_a_terminal() {
    let reason: &'static str = format!(
        "data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{}\"}}]}}\n\n",
        "x".repeat(10_000)
    )
    .leak();
    let record = one(vec![(1, HEAD), (1, TOKEN), (1, reason), (1, DONE)]).await;
    assert_eq!(record.finish_reason.map(|reason| reason.len()), Some(100));
    let error = "data: {\"error\":{\"message\":\"a\\u001b[2J\\nFAKE\\u202eb\"}}\n\n";
    let record = one(vec![(1, HEAD), (1, error)]).await;
    let message = record.error.expect("it says why").message;
    assert_eq!(&*message, "a [2J FAKE b");
}

#[tokio::test(start_paused = true)]
async fn a_count_of_no_tokens_is_no_count_where_tokens_came() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":0}}\n\n";
    let steps = vec![
        (1, HEAD),
        (1, TOKEN),
        (1, TOKEN),
        (1, FINISH),
        (1, usage),
        (1, DONE),
    ];
    let record = one(steps).await;
    assert_eq!(record.tokens.output, Some(2));
    assert_eq!(record.tokens.source, Some(TokenSource::Chunks));
    assert_eq!(record.tokens.input, Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_status_without_content_is_an_empty_answer() {
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n",
    ] {
        let record = one(vec![(1, head)]).await;
        assert_eq!(record.outcome, Outcome::Empty, "{head}");
        assert_eq!(record.error, None);
    }
    let nothing = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let record = one(vec![(1, nothing)]).await;
    assert_eq!(record.outcome, Outcome::StreamCut, "a stream owes its end");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_we_notice_late_marks_the_record() {
    let mut setup = Setup::default();
    setup.limits.first_token = Some(Duration::from_secs(1));
    let stall = tokio::spawn(async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tokio::time::advance(Duration::from_secs(3)).await;
    });
    let record = exchange(vec![vec![vec![(60_000, HEAD)]]], setup)
        .await
        .remove(0);
    stall.await.expect("it ended");
    assert_eq!(record.outcome, Outcome::TimeoutFirstToken);
    assert!(record.notes.has(Note::LateTimer) && record.is_lagged());
    let mut setup = Setup::default();
    setup.limits.first_token = Some(Duration::from_secs(1));
    let record = exchange(vec![vec![vec![(60_000, HEAD)]]], setup)
        .await
        .remove(0);
    assert!(!record.notes.has(Note::LateTimer) && !record.is_lagged());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_after_a_silence_ends_when_it_is_cut() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let token: &'static str = format!("{:x}\r\n{TOKEN}\r\n", TOKEN.len()).leak();
    for (head, token) in [(HEAD, TOKEN), (chunked, token)] {
        let record = one(vec![(4, head), (1, token), (700, "")]).await;
        assert_eq!(record.outcome, Outcome::StreamCut, "{head}");
        assert_eq!(since_start(&record, record.timeline.last_token), ms(5));
        assert_eq!(since_start(&record, record.timeline.end), ms(705), "{head}");
        // Before a token came.
        let record = one(vec![(4, head), (700, "")]).await;
        assert_ne!(record.outcome, Outcome::Ok, "{head}");
        assert_eq!(since_start(&record, record.timeline.end), ms(704), "{head}");
    }
    // What was whole ends with its last byte, however late the connection is closed.
    let whole: &'static str = format!("{TOKEN}{FINISH}{DONE}").leak();
    let record = one(vec![(4, HEAD), (1, whole), (700, "")]).await;
    assert_eq!(record.outcome, Outcome::Ok);
    assert_eq!(since_start(&record, record.timeline.end), ms(5));
}
