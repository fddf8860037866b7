//! A server that speaks something else than it is spoken to in, or nothing, is named as such;
//! and what this machine lacks is no failure of a server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::peer::{Authority, Peer, Trial, trusting};
use crate::config::{HttpVersion, NetworkConfig};
use crate::measurement::{Outcome, RefusedReason, RequestRecord};
use crate::transport::{Connect, ConnectError, Endpoint, Opening, Progress, TcpConnect};

/// A port that answers the first bytes with `answer` and closes; with none it is silent.
async fn port(answer: Option<&'static [u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let Some(answer) = answer else {
                kept.push(client);
                continue;
            };
            let mut asked = [0; 4096];
            if client.read(&mut asked).await.is_ok() {
                client.write_all(answer).await.expect("room");
                // What was not read would turn the close into a reset, and lose the answer.
                while client.read(&mut asked).await.is_ok_and(|count| count > 0) {}
            }
        }
    });
    address
}

async fn record(url: String, network: NetworkConfig) -> RequestRecord {
    let mut trial = Trial::of(&Peer::new(None), network);
    trial.url = url;
    trial.connect = Arc::new(TcpConnect);
    trial.limits.connect = Duration::from_millis(100);
    trial.limits.first_token = Some(Duration::from_secs(20));
    trial.one().await
}

fn speaking(http: HttpVersion) -> NetworkConfig {
    NetworkConfig { http, ..trusting() }
}

#[track_caller]
fn check(record: &RequestRecord, (outcome, kind): (Outcome, &str)) {
    let error = record.error.as_ref().expect("it says why");
    assert_eq!((record.outcome, &*error.kind), (outcome, kind), "{error:?}");
}

#[tokio::test]
async fn the_first_bytes_tell_what_a_port_speaks() {
    const ALERT: &[u8] = b"\x15\x03\x01\x00\x02\x02\x46";
    const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    const BAD_REQUEST: &[u8] =
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for (answer, http, expected) in [
        (ALERT, HttpVersion::Http1, "speaks TLS"),
        (ALERT, HttpVersion::Http2, "speaks TLS"),
        (SETTINGS, HttpVersion::Http1, "speaks HTTP/2"),
        (BAD_REQUEST, HttpVersion::Http2, "speaks HTTP/1.1"),
    ] {
        let url = format!("http://{}", port(Some(answer)).await);
        let record = record(url, speaking(http)).await;
        check(&record, (Outcome::Malformed, expected));
    }
}

#[tokio::test]
async fn a_port_of_tls_that_answers_in_plain_text_is_named_too() {
    let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 57\r\n\r\n\
                   <h1>The plain HTTP request was sent to HTTPS port</h1>\r\n\r\n";
    let url = format!("http://{}", port(Some(&answer[..])).await);
    let record = record(url, speaking(HttpVersion::Http1)).await;
    check(&record, (Outcome::HttpStatus, "speaks TLS"));
}

#[tokio::test]
async fn a_server_that_closes_without_a_byte_may_speak_otherwise() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _read = client.read(&mut asked).await;
        }
    });
    let record = record(format!("http://{address}"), speaking(HttpVersion::Http1)).await;
    let kind = "closed without an answer";
    check(&record, (Outcome::StreamCut, kind));
}

#[tokio::test]
async fn silence_is_told_by_what_was_waited_for() {
    let silent = port(None).await;
    let record = record(format!("https://{silent}"), trusting()).await;
    check(&record, (Outcome::TimeoutConnect, "silent TLS"));
    assert!(record.timeline.connected.is_some(), "{:?}", record.timeline);
    assert_eq!(record.timeline.tls_done, None);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_fails_says_why_in_our_words() {
    let ours = Authority::ours();
    let trial = |identity, alpn: &[&str], http| {
        let peer = Peer::new(Some(ours.server(identity, alpn, false)));
        Trial::of(&peer, speaking(http)).one()
    };
    let good = ours.identity("canary.test", 2099);
    let record = trial(good, &["http/1.1"], HttpVersion::Http2).await;
    check(&record, (Outcome::Tls, "HTTP version"));
    let record = trial(ours.itself(), &[], HttpVersion::Http1).await;
    check(&record, (Outcome::Tls, "certificate of a CA"));
    let stranger = Authority::called("stranger").identity("canary.test", 2099);
    let record = trial(stranger, &[], HttpVersion::Http1).await;
    check(&record, (Outcome::Tls, "untrusted certificate"));
    let other = ours.identity("other.test", 2099);
    let record = trial(other, &[], HttpVersion::Http1).await;
    check(&record, (Outcome::Tls, "other name"));
}

/// A machine without file descriptors.
struct Exhausted;

impl Connect for Exhausted {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, _progress: &'a Progress) -> Opening<'a> {
        let authority = endpoint.url().authority();
        let source = io::Error::from(Errno::EMFILE);
        Box::pin(async move {
            Err(ConnectError::Refused {
                authority,
                resolved: None,
                source,
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_this_machine_lacks_is_not_the_servers_failure() {
    let mut trial = Trial::of(&Peer::new(None), trusting());
    trial.connect = Arc::new(Exhausted);
    let record = trial.one().await;
    check(&record, (Outcome::Refused, "own limit"));
    assert_eq!(record.refused, Some(RefusedReason::OwnLimit));
    assert!(!record.is_failure());
    let marks = record.timeline;
    assert_eq!(
        (marks.start, marks.end, marks.slot_free),
        (None, None, None)
    );
}
