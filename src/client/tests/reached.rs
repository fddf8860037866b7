//! Ways to a server over the real network of this machine: TCP, Unix sockets, proxies.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::peer::{Authority, Peer, Trial, trusting};
use super::{DONE, HEAD, TOKEN};
use crate::clock::TimeAnchor;
use crate::config::{AddressFamily, BaseUrl, HttpVersion, NetworkConfig, ProxyConfig, Secret};
use crate::measurement::{Outcome, RequestRecord};
use crate::transport::fetch::{Fetch, FetchTimeouts};
use crate::transport::{Endpoint, TcpConnect};

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    (listener, address)
}

/// Serves `peer` on a port of its own.
async fn serving(peer: Peer) -> SocketAddr {
    let (listener, address) = listening().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a TCP socket");
            tokio::spawn(peer.clone().serve(stream));
        }
    });
    address
}

fn trial(url: String, network: NetworkConfig) -> Trial {
    let mut trial = Trial::of(&Peer::new(None), network);
    trial.url = url;
    trial.connect = Arc::new(TcpConnect);
    trial
}

fn secure_peer(alpn: &[&str]) -> Peer {
    let ours = Authority::ours();
    let identity = ours.identity("localhost", 2099);
    Peer::new(Some(ours.server(identity, alpn, false)))
}

fn assert_streamed(record: &RequestRecord) {
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(record.chunks.len(), 3);
    assert!(record.chunks.gaps().all(|gap| gap < Duration::from_secs(5)));
}

#[tokio::test]
async fn tls_and_http2_over_tcp_with_a_name_to_resolve() {
    for (alpn, http) in [
        (&["http/1.1"][..], HttpVersion::Http1),
        (&["h2"][..], HttpVersion::Auto),
    ] {
        let address = serving(secure_peer(alpn)).await;
        let network = NetworkConfig {
            http,
            family: AddressFamily::Ipv4,
            ..trusting()
        };
        let url = format!("https://localhost:{}", address.port());
        let record = trial(url, network).one().await;
        assert_streamed(&record);
        let timeline = record.timeline;
        assert!(timeline.resolved.is_some() && timeline.resolved <= timeline.connected);
        assert!(timeline.connected < timeline.tls_done);
        assert!(timeline.tls_done <= timeline.sent_first && timeline.sent <= timeline.headers);
    }
}

#[tokio::test]
async fn a_unix_socket_is_a_way() {
    let path = std::env::temp_dir().join(format!("tokencanary-way-{}.sock", std::process::id()));
    let _gone = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a writable directory");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Peer::new(None).serve(stream));
        }
    });
    let url = format!("unix://{}", path.display());
    let record = trial(url, NetworkConfig::default()).one().await;
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    std::fs::remove_file(&path).expect("it was there");
    let url = format!("unix://{}", path.display());
    let record = trial(url, NetworkConfig::default()).one().await;
    assert_eq!(record.outcome, Outcome::Connect);
    let message = record.error.expect("it says why").message;
    assert!(message.contains(&*path.display().to_string()), "{message}");
}

/// What a proxy does with what it is asked.
#[derive(Clone, Copy)]
enum Manners {
    Connects,
    Answers(&'static str),
    IsSilent,
}

/// A proxy, and the first line and the authorization that it is sent.
async fn proxy(manners: Manners) -> (SocketAddr, tokio::task::JoinHandle<String>) {
    let (listener, address) = listening().await;
    let asked = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a client");
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(client.read_u8().await.expect("a request"));
        }
        let asked = String::from_utf8(asked).expect("text");
        match manners {
            Manners::Connects => {
                let target = asked.split(' ').nth(1).expect("a target");
                let mut server = TcpStream::connect(target).await.expect("a server");
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await
                    .expect("the client waits");
                tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
            }
            Manners::Answers(text) => {
                client
                    .write_all(text.as_bytes())
                    .await
                    .expect("the client waits");
            }
            Manners::IsSilent => {
                tokio::spawn(async move { client.read_u8().await });
            }
        }
        asked
    });
    (address, asked)
}

fn by(proxy: SocketAddr) -> NetworkConfig {
    NetworkConfig {
        proxy: Some(ProxyConfig {
            url: BaseUrl::parse(&format!("http://{proxy}")).expect("good"),
            authorization: Some(Secret::new("Basic dTpw")),
        }),
        ..trusting()
    }
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_for_plain_and_tls_targets() {
    for (scheme, peer) in [("http", Peer::new(None)), ("https", secure_peer(&[]))] {
        let server = serving(peer).await;
        let (address, asked) = proxy(Manners::Connects).await;
        let url = format!("{scheme}://localhost:{}", server.port());
        let record = trial(url, by(address)).one().await;
        assert_streamed(&record);
        let asked = asked.await.expect("no panic");
        let first = format!("CONNECT localhost:{} HTTP/1.1\r\n", server.port());
        assert!(asked.starts_with(&first), "{asked}");
        assert!(
            asked.contains("proxy-authorization: Basic dTpw\r\n"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn a_proxy_that_gives_no_way_is_a_failure_to_connect() {
    for (answer, expected) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "it answered `407 Proxy Authentication Required`",
        ),
        ("no HTTP at all\r\n\r\n", "its answer is not HTTP"),
    ] {
        let (address, _asked) = proxy(Manners::Answers(answer)).await;
        let record = trial("http://vllm.test:8000".to_owned(), by(address))
            .one()
            .await;
        assert_eq!(record.outcome, Outcome::Connect);
        let error = record.error.expect("it says why");
        assert_eq!(&*error.kind, "proxy");
        assert!(error.message.ends_with(expected), "{}", error.message);
        assert!(!error.message.contains("dTpw"));
    }
    let (listener, address) = listening().await;
    drop(listener);
    let record = trial("http://vllm.test:8000".to_owned(), by(address))
        .one()
        .await;
    assert_eq!(record.outcome, Outcome::Connect);
    assert_eq!(&*record.error.expect("it says why").kind, "proxy");
}

#[tokio::test]
async fn a_silent_proxy_meets_the_limit_of_connecting() {
    let (address, _asked) = proxy(Manners::IsSilent).await;
    let mut trial = trial("http://vllm.test:8000".to_owned(), by(address));
    trial.limits.connect = Duration::from_millis(50);
    let record = trial.one().await;
    assert_eq!(record.outcome, Outcome::TimeoutConnect);
    assert_eq!(&*record.error.expect("it says why").kind, "silent proxy");
}

#[tokio::test]
async fn an_address_of_the_wrong_family_is_none() {
    let address = serving(Peer::new(None)).await;
    let network = |family| NetworkConfig {
        family,
        ..NetworkConfig::default()
    };
    let record = trial(format!("http://{address}"), network(AddressFamily::Ipv6))
        .one()
        .await;
    assert_eq!(record.outcome, Outcome::Dns);
    let message = record.error.expect("it says why").message;
    assert!(message.contains("none of its 1 addresses"), "{message}");
    let record = trial(format!("http://{address}"), network(AddressFamily::Ipv4))
        .one()
        .await;
    assert_streamed(&record);
}

#[tokio::test]
async fn a_peer_that_resets_the_connection_cuts_the_stream() {
    let (listener, address) = listening().await;
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a client");
        let mut request = [0; 4096];
        let count = client.read(&mut request).await.expect("a request");
        assert_ne!(count, 0, "closed before it asked");
        let text = format!("{HEAD}{TOKEN}");
        client.write_all(text.as_bytes()).await.expect("room");
        // Long enough for the token to be read before the reset, which throws away what was not.
        tokio::time::sleep(Duration::from_millis(300)).await;
        client.set_zero_linger().expect("a TCP socket");
    });
    let record = trial(format!("http://{address}"), NetworkConfig::default())
        .one()
        .await;
    assert_eq!(record.outcome, Outcome::StreamCut);
    assert_eq!(record.chunks.len(), 1);
    let message = record.error.expect("it says why").message;
    assert!(message.contains("reset by peer"), "{message}");
}

/// The page of a peer, fetched beside the measured requests.
async fn page(endpoint: &str, network: NetworkConfig, url: &str) -> String {
    let endpoint = Endpoint::new(BaseUrl::parse(endpoint).expect("good"), network);
    let endpoint = endpoint.expect("good files");
    let timeouts = FetchTimeouts {
        connect: Duration::from_secs(5),
        total: Duration::from_secs(5),
    };
    let fetch = Fetch::beside(&endpoint, TimeAnchor::start(), timeouts).expect("a client");
    let page = fetch.get(url, &hyper::HeaderMap::new(), 10_000).await;
    let page = page.expect("a page");
    String::from_utf8(page.body.to_vec()).expect("text")
}

#[tokio::test]
async fn pages_are_fetched_the_way_of_the_requests() {
    let ours = Authority::ours();
    let identity = ours.identity("other.test", 2099);
    let address = serving(Peer::new(Some(ours.server(identity, &[], false)))).await;
    let mut network = trusting();
    network.tls.server_name = Some("other.test".to_owned());
    let url = format!("https://{address}");
    let whole = format!("{url}/v1/chat/completions");
    assert!(page(&url, network, &whole).await.ends_with(DONE));

    let address = serving(secure_peer(&[])).await;
    let (by_proxy, asked) = proxy(Manners::Connects).await;
    let url = format!("https://localhost:{}", address.port());
    let whole = format!("{url}/v1/chat/completions");
    assert!(page(&url, by(by_proxy), &whole).await.ends_with(DONE));
    let asked = asked.await.expect("no panic").to_lowercase();
    assert!(
        asked.contains("proxy-authorization: basic dtpw\r\n"),
        "{asked}"
    );

    let path = std::env::temp_dir().join(format!("tokencanary-page-{}.sock", std::process::id()));
    let _gone = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a writable directory");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Peer::new(None).serve(stream));
        }
    });
    let url = format!("unix://{}", path.display());
    let whole = "http://localhost/v1/chat/completions";
    assert!(
        page(&url, NetworkConfig::default(), whole)
            .await
            .ends_with(DONE)
    );
    std::fs::remove_file(&path).expect("it was there");
}
