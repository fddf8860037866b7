//! Connections that ask late, in part, twice or not at all.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;

use super::*;

/// Serves until it is dropped.
struct Served {
    address: SocketAddr,
    _stop: tokio_util::sync::DropGuard,
}

async fn served() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let stop = CancellationToken::new();
    let router = router(state(live(), true), Exposure::Loopback);
    tokio::spawn(serve(listener, router, stop.clone().cancelled_owned()));
    Served {
        address,
        _stop: stop.drop_guard(),
    }
}

impl Served {
    async fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).await;
        stream.expect("the server listens")
    }

    /// All that is answered to `text`.
    async fn answer(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.expect("it reads");
        stream.shutdown().await.expect("it is ours");
        rest(stream).await
    }
}

async fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    let read = timeout(Duration::from_secs(30), stream.read_to_end(&mut all)).await;
    read.expect("an end").expect("no reset");
    String::from_utf8(all).expect("a text")
}

/// Status and error of an answer in JSON.
fn problem(answer: &str) -> (u16, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    let status = head[9..12].parse().expect("a status");
    assert!(head.contains("content-type: application/json"), "{answer}");
    let body: Value = serde_json::from_str(body).expect("it is JSON");
    let error = body["error"].clone();
    assert!(error["wanted"].is_string(), "{answer}");
    (status, error["message"].clone())
}

#[tokio::test]
async fn http_1_1_names_one_host() {
    let served = served().await;
    for (path, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/api/v1/status", 200),
    ] {
        let old = served.answer(&format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert!(old.starts_with(&format!("HTTP/1.0 {status}")), "{old}");
        let none = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n");
        let none = problem(&served.answer(&none).await);
        assert_eq!(none, (400, "the request names no host".into()));
        let two = "host: localhost\r\nhost: localhost\r\nconnection: close";
        let two = format!("GET {path} HTTP/1.1\r\n{two}\r\n\r\n");
        let two = problem(&served.answer(&two).await);
        assert_eq!(two, (400, "the request names a host 2 times".into()));
    }
}

fn post(length: usize, body: &str) -> String {
    format!(
        "POST /api/v1/marks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_body_that_is_too_long_or_not_whole_is_told_as_all_else() {
    let served = served().await;
    let long = post(8_193, &"x".repeat(8_193));
    let expected = (413, "the body is longer than 8192 bytes".into());
    assert_eq!(problem(&served.answer(&long).await), expected);
    // It says that more will come, and nothing does for ten seconds.
    let mut late = served.connect().await;
    let half = post(100, "{\"text\":");
    late.write_all(half.as_bytes()).await.expect("it reads");
    let expected = (408, "the body did not come within ten seconds".into());
    assert_eq!(problem(&rest(late).await), expected);
}

#[tokio::test]
async fn connections_that_are_only_held_open_keep_no_scrape_out() {
    let served = served().await;
    let mut asking = served.connect().await;
    let (half, other) = (
        "GET /healthz HTTP/1.1\r\nhost: loc",
        "alhost\r\nconnection: close\r\n\r\n",
    );
    asking.write_all(half.as_bytes()).await.expect("it reads");
    let mut kept = served.connect().await;
    let whole = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    kept.write_all(whole.as_bytes()).await.expect("it reads");
    let mut answer = [0; 12];
    kept.read_exact(&mut answer).await.expect("it answers");
    let mut held = Vec::new();
    for _ in 0..80 {
        held.push(served.connect().await);
    }
    let scrape =
        served.answer("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let scrape = timeout(Duration::from_secs(5), scrape).await;
    let scrape = scrape.expect("no idle connection is waited for");
    assert!(scrape.starts_with("HTTP/1.1 200"), "{scrape}");
    // Whoever was asking is answered; those that were silent for longest are gone.
    asking
        .write_all(other.as_bytes())
        .await
        .expect("it is there");
    assert!(rest(asking).await.starts_with("HTTP/1.1 200"));
    let mut gone = Vec::new();
    let ended = timeout(Duration::from_secs(5), kept.read_to_end(&mut gone)).await;
    assert!(ended.is_ok(), "the first one that fell silent");
}
