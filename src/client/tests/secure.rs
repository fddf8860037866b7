//! TLS and HTTP/2, in virtual time: handshakes take none, tokens come when they are due.

use std::sync::atomic::Ordering;

use super::peer::{Answer, Authority, Peer, Trial, file, trusting};
use super::{ms, since_start};
use crate::config::{BaseUrl, HttpVersion, NetworkConfig, TlsConfig};
use crate::measurement::{Outcome, RequestRecord};
use crate::transport::Endpoint;

/// 2099-12-31 in seconds of Unix time.
const END_OF_2099: i64 = 4_102_358_400;

fn good_server(alpn: &[&str]) -> Peer {
    let ours = Authority::ours();
    let identity = ours.identity("canary.test", 2099);
    Peer::new(Some(ours.server(identity, alpn, false)))
}

fn speaking(http: HttpVersion) -> NetworkConfig {
    NetworkConfig { http, ..trusting() }
}

fn message(record: &RequestRecord) -> String {
    let error = record.error.as_ref().expect("it says why");
    format!("{}: {}", error.kind, error.message)
}

/// A stream of three tokens, 10 ms before each.
fn assert_streamed(record: &RequestRecord) {
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let timeline = record.timeline;
    for (mark, expected) in [
        (timeline.sent, 0),
        (timeline.first_token, 10),
        (timeline.last_token, 30),
        (timeline.end, 30),
    ] {
        assert_eq!(since_start(record, mark), ms(expected), "{timeline:?}");
    }
    let gaps: Vec<_> = record.chunks.gaps().collect();
    assert_eq!(gaps, [ms(10), ms(10)].map(Option::unwrap_or_default));
}

#[tokio::test(start_paused = true)]
async fn tls_is_timed_and_tells_when_the_certificate_expires() {
    let record = Trial::of(&good_server(&["http/1.1"]), trusting())
        .one()
        .await;
    assert_streamed(&record);
    let timeline = record.timeline;
    assert_eq!(since_start(&record, timeline.tls_done), ms(0));
    assert!(timeline.connected <= timeline.tls_done && timeline.tls_done <= timeline.sent_first);
    assert_eq!(record.certificate_expiry, Some(END_OF_2099));
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_tls_response_is_not_what_tls_itself_says() {
    // The server's session tickets come right after the handshake, the head with the first token.
    let record = Trial::of(&good_server(&[]), trusting()).one().await;
    assert!(since_start(&record, record.timeline.headers) >= ms(0));
    assert!(record.timeline.headers >= record.timeline.sent);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_nobody_vouches_for_is_refused() {
    let stranger = Authority::called("a stranger");
    let identity = stranger.identity("canary.test", 2099);
    let peer = Peer::new(Some(stranger.server(identity, &[], false)));
    let record = Trial::of(&peer, trusting()).one().await;
    assert_eq!(record.outcome, Outcome::Tls);
    assert!(
        message(&record).contains("nobody who is trusted"),
        "{}",
        message(&record)
    );
    let timeline = record.timeline;
    assert!(timeline.connected.is_some() && timeline.tls_done.is_none());
    assert_eq!(record.certificate_expiry, None);
}

#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_named_as_such() {
    let ours = Authority::ours();
    let identity = ours.identity("canary.test", 2021);
    let peer = Peer::new(Some(ours.server(identity, &[], false)));
    let record = Trial::of(&peer, trusting()).one().await;
    assert_eq!(record.outcome, Outcome::Tls);
    assert!(message(&record).contains("expired"), "{}", message(&record));
}

#[tokio::test(start_paused = true)]
async fn a_server_must_prove_the_name_that_is_wanted() {
    let ours = Authority::ours();
    let server = || {
        let identity = ours.identity("other.test", 2099);
        Peer::new(Some(ours.server(identity, &[], false)))
    };
    let record = Trial::of(&server(), trusting()).one().await;
    assert_eq!(record.outcome, Outcome::Tls);
    assert!(
        message(&record).contains("not valid for name"),
        "{}",
        message(&record)
    );
    let mut network = trusting();
    network.tls.server_name = Some("other.test".to_owned());
    assert_streamed(&Trial::of(&server(), network).one().await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_certificate_gets_it_or_the_record_says_so() {
    let ours = Authority::ours();
    let identity = ours.identity("canary.test", 2099);
    let peer = Peer::new(Some(ours.server(identity, &[], true)));
    let record = Trial::of(&peer, trusting()).one().await;
    assert_eq!(record.outcome, Outcome::Tls, "{:?}", record.error);
    assert!(
        message(&record).contains("certificate required"),
        "{}",
        message(&record)
    );
    let mine = ours.identity("client.test", 2099);
    let mut network = trusting();
    network.tls.cert = Some(mine.cert);
    network.tls.key = Some(mine.key);
    assert_streamed(&Trial::of(&peer, network).one().await);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tls_behind_https_is_named_as_such() {
    let mut trial = Trial::of(&Peer::new(None), trusting());
    trial.url = "https://canary.test:1".to_owned();
    let record = trial.one().await;
    assert_eq!(record.outcome, Outcome::Tls);
    let message = message(&record);
    assert!(
        message.contains("is not TLS") || message.contains("closed the connection"),
        "{message}"
    );
}

#[test]
fn files_that_are_no_certificates_are_refused_with_their_name() {
    let refused = |tls: TlsConfig| {
        let url = BaseUrl::parse("https://canary.test").expect("good");
        let network = NetworkConfig {
            tls,
            ..NetworkConfig::default()
        };
        Endpoint::new(url, network)
            .expect_err("a bad file")
            .to_string()
    };
    let empty = file("nothing here");
    let mine = Authority::ours().identity("client.test", 2099);
    let ca = |path| TlsConfig {
        ca: Some(path),
        ..TlsConfig::default()
    };
    let shown = refused(ca(empty.clone()));
    assert!(shown.contains("wanted certificates in PEM"), "{shown}");
    assert!(shown.contains(&*empty.display().to_string()), "{shown}");
    let shown = refused(ca("/nowhere/ca.pem".into()));
    assert!(
        shown.starts_with("`/nowhere/ca.pem`: No such file"),
        "{shown}"
    );
    let trusted = Authority::ours().pem.clone();
    for (cert, key, wanted) in [
        (Some(mine.cert.clone()), None, "wanted its private key"),
        (None, Some(mine.key.clone()), "wanted its certificate"),
        (
            Some(mine.cert.clone()),
            Some(mine.cert.clone()),
            "wanted a private key in PEM",
        ),
        (
            Some(trusted.clone()),
            Some(mine.key.clone()),
            "not usable with its key",
        ),
    ] {
        let shown = refused(TlsConfig {
            ca: Some(trusted.clone()),
            cert,
            key,
            server_name: None,
        });
        assert!(shown.contains(wanted), "{shown}");
    }
    let shown = refused(TlsConfig {
        ca: Some(trusted),
        server_name: Some("no name".to_owned()),
        ..TlsConfig::default()
    });
    assert!(shown.contains("`no name`"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn http2_is_spoken_where_the_server_picks_it() {
    for (offered, http, connections) in [
        (&["h2", "http/1.1"][..], HttpVersion::Auto, 1),
        (&["h2"][..], HttpVersion::Http2, 1),
        (&["http/1.1"][..], HttpVersion::Auto, 1),
        (&[][..], HttpVersion::Auto, 1),
    ] {
        let peer = good_server(offered);
        let mut trial = Trial::of(&peer, speaking(http));
        trial.requests = vec![(0, None); 3];
        let records = trial.run().await;
        for record in &records {
            assert_streamed(record);
        }
        let reused: Vec<_> = records.iter().map(|record| record.reused).collect();
        assert_eq!(reused, [Some(false), Some(true), Some(true)]);
        assert_eq!(peer.connections.load(Ordering::Relaxed), connections);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_http2_ends_the_handshake() {
    let record = Trial::of(&good_server(&["http/1.1"]), speaking(HttpVersion::Http2))
        .one()
        .await;
    assert_eq!(record.outcome, Outcome::Tls);
    assert!(
        message(&record).contains("no version of HTTP that was offered"),
        "{}",
        message(&record)
    );
}

#[tokio::test(start_paused = true)]
async fn http2_with_prior_knowledge_needs_no_tls() {
    let mut peer = Peer::new(None);
    peer.http2 = true;
    let mut trial = Trial::of(&peer, speaking(HttpVersion::Http2));
    trial.requests = vec![(0, None), (5, None)];
    for record in trial.run().await {
        assert_streamed(&record);
        assert_eq!(record.http_status, Some(200));
    }
}

#[tokio::test(start_paused = true)]
async fn http2_to_a_server_that_speaks_http1_is_a_record_too() {
    let record = Trial::of(&Peer::new(None), speaking(HttpVersion::Http2))
        .one()
        .await;
    assert!(record.error.is_some());
    assert!(
        matches!(
            record.outcome,
            Outcome::StreamCut | Outcome::Connect | Outcome::Malformed
        ),
        "{:?}",
        record.outcome
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_reset_is_cut_and_says_why() {
    for http2 in [false, true] {
        let mut peer = Peer::new(None);
        peer.http2 = http2;
        peer.answer = Answer::Cut;
        let http = if http2 {
            HttpVersion::Http2
        } else {
            HttpVersion::Http1
        };
        let record = Trial::of(&peer, speaking(http)).one().await;
        assert_eq!(record.outcome, Outcome::StreamCut);
        assert_eq!(record.chunks.len(), 2);
        assert!(
            message(&record).starts_with("connection broken: "),
            "{}",
            message(&record)
        );
        if http2 {
            assert!(
                message(&record).contains("stream error"),
                "{}",
                message(&record)
            );
        }
    }
}
