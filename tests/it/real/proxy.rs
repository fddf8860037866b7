//! A proxy in front of metrics pages that keeps every page it hands out, with the moment at which
//! it was complete. What the canary says of a page can then be held against its bytes.
//!
//! One path may hand out several pages as one, as a Prometheus would that others read.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where the one page is of a proxy that has one.
pub(super) const METRICS: &str = "/metrics";
/// Longest request head taken.
const HEAD_LIMIT: usize = 16 * 1024;

/// What is behind one path.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The path.
    pub(super) path: &'static str,
    /// The pages that are handed out below it, one after the other.
    pub(super) upstream: Vec<String>,
    /// What they want to be asked with.
    pub(super) bearer: Option<&'static str>,
}

/// One page as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// The path it was asked for by.
    pub(super) path: &'static str,
    /// Just before its last byte was handed to the socket, nanoseconds since the Unix epoch: no
    /// reader can have had the page earlier.
    pub(super) sent_unix_ns: u64,
    /// The body, byte for byte.
    pub(super) body: Vec<u8>,
}

impl Page {
    /// The value of the unlabelled sample called `name`.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        let text = std::str::from_utf8(&self.body).ok()?;
        text.lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .find_map(|value| value.trim().parse().ok())
    }
}

/// The proxy; stops when dropped.
pub(super) struct RecordingProxy {
    address: SocketAddr,
    pages: Arc<Mutex<Vec<Page>>>,
    server: tokio::task::JoinHandle<()>,
}

impl RecordingProxy {
    /// Forwards to the page of `upstream`, a URL without a path.
    pub(super) async fn start(upstream: &str) -> Self {
        let route = Route {
            path: METRICS,
            upstream: vec![format!("{upstream}{METRICS}")],
            bearer: None,
        };
        Self::start_with(vec![route]).await
    }

    /// Forwards as `routes` say.
    pub(super) async fn start_with(routes: Vec<Route>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let pages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&pages);
        let routes: Arc<[Route]> = routes.into();
        let server = tokio::spawn(async move {
            // Connections end with this task, which owns them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&routes), Arc::clone(&kept)));
            }
        });
        Self {
            address,
            pages,
            server,
        }
    }

    /// Where the page at `path` is, seen through the proxy.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The pages sent so far by `path`, oldest first.
    pub(super) fn pages(&self, path: &str) -> Vec<Page> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pages: Vec<Page> = pages
            .iter()
            .filter(|one| one.path == path)
            .cloned()
            .collect();
        // Two connections may end their pages in another order than they keep them.
        pages.sort_by_key(|page| page.sent_unix_ns);
        pages
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Answers the requests of one connection until it is closed.
async fn serve(
    mut stream: TcpStream,
    routes: Arc<[Route]>,
    pages: Arc<Mutex<Vec<Page>>>,
) -> io::Result<()> {
    let client = crate::program::http_client()
        .build()
        .expect("the options are fixed");
    stream.set_nodelay(true)?;
    while let Some(asked) = read_head(&mut stream).await? {
        let route = routes.iter().find(|route| route.path == asked);
        let fetched = match route {
            Some(route) => fetch(&client, route).await.map(|body| (route.path, body)),
            None => None,
        };
        let Some((path, body)) = fetched else {
            stream
                .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
                .await?;
            continue;
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let whole = [head.as_bytes(), &body].concat();
        let (last, most) = whole.split_last().expect("a head is not empty");
        stream.write_all(most).await?;
        let page = Page {
            path,
            sent_unix_ns: unix_ns(),
            body,
        };
        pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(page);
        stream.write_all(&[*last]).await?;
    }
    Ok(())
}

/// All pages of `route` as one; `None` if one of them was not had.
async fn fetch(client: &reqwest::Client, route: &Route) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    for url in &route.upstream {
        let request = client.get(url);
        let request = match route.bearer {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        whole.extend_from_slice(&answer.bytes().await.ok()?);
    }
    Some(whole)
}

/// Reads one request without a body; its path, or nothing at the end of the connection.
async fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > HEAD_LIMIT || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.split(' ').nth(1).map(str::to_owned))
}

/// Wall time, since it is compared with the wall times in records.
pub(super) fn unix_ns() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with what another process wrote"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_nanos()).expect("it is before 2554")
}
