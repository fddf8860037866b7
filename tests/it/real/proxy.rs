//! A proxy in front of a metrics page that keeps every page it hands out, with the moment at
//! which it was complete. What the canary says of a page can then be held against its bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longest request head taken.
const HEAD_LIMIT: usize = 16 * 1024;

/// One page as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
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
    /// Forwards to `upstream`, a URL without a path.
    pub(super) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let pages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&pages);
        let upstream = format!("{upstream}/metrics");
        let server = tokio::spawn(async move {
            // Connections end with this task, which owns them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, upstream.clone(), Arc::clone(&kept)));
            }
        });
        Self {
            address,
            pages,
            server,
        }
    }

    /// Where the page is, seen through the proxy.
    pub(super) fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// The pages sent so far, oldest first.
    pub(super) fn pages(&self) -> Vec<Page> {
        self.pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
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
    upstream: String,
    pages: Arc<Mutex<Vec<Page>>>,
) -> io::Result<()> {
    let client = crate::program::http_client()
        .build()
        .expect("the options are fixed");
    stream.set_nodelay(true)?;
    while read_head(&mut stream).await? {
        let fetched = async {
            client
                .get(&upstream)
                .send()
                .await?
                .error_for_status()?
                .bytes()
                .await
        };
        let Ok(body) = fetched.await else {
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
            sent_unix_ns: unix_ns(),
            body: body.to_vec(),
        };
        pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(page);
        stream.write_all(&[*last]).await?;
    }
    Ok(())
}

/// Reads one request without a body; `false` at the end of the connection.
async fn read_head(stream: &mut TcpStream) -> io::Result<bool> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > HEAD_LIMIT || stream.read_buf(&mut head).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
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
