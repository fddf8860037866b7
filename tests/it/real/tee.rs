//! A pipe in front of a server that keeps what the server sent, byte for byte. What a record says
//! can then be held against the server's own words in the very same answer.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// An answer of these tests has some kilobytes.
const MOST_KEPT: usize = 8 << 20;
/// From the end of an exchange to the end of its connection.
const SOON: Duration = Duration::from_secs(10);

/// The pipe; ends when dropped. Takes one connection after the other, one exchange on each.
pub(super) struct Tee {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<u8>>>,
    server: JoinHandle<()>,
}

impl Tee {
    /// Forwards to `upstream`, `http://` and an address.
    pub(super) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A connection that breaks shows in the record of the exchange on it.
                drop(pass(stream, &upstream, &kept).await);
            }
        });
        Self {
            address,
            sent,
            server,
        }
    }

    /// `http://` and the pipe's own address.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All the server sent, once its last byte has passed.
    pub(super) async fn answer(&self) -> Answer {
        let deadline = Instant::now() + SOON;
        loop {
            let answer = Answer::parse(&self.sent.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(answer) = answer {
                return answer;
            }
            assert!(Instant::now() < deadline, "no whole answer passed");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(client: TcpStream, upstream: &str, sent: &Mutex<Vec<u8>>) -> io::Result<()> {
    let server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    tokio::select! {
        asked = copy(&mut from_client, &mut to_server) => asked.map(drop),
        told = keep(from_server, to_client, sent) => told,
    }
}

async fn keep(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    sent: &Mutex<Vec<u8>>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        {
            let mut kept = sent.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(kept.len() + read <= MOST_KEPT, "an answer without end");
            kept.extend_from_slice(&buffer[..read]);
        }
        to.write_all(&buffer[..read]).await?;
    }
}

/// One answer, as the server sent it.
#[derive(Debug)]
pub(super) struct Answer {
    /// Status of its head.
    pub(super) status: u16,
    /// Every JSON value in it, in order: one for each event, or one for the whole.
    pub(super) said: Vec<Value>,
    /// Whether `[DONE]` was in it.
    pub(super) done: bool,
}

impl Answer {
    /// `None` while it is not whole.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let rest = &bytes[head_end + 4..];
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let body = match length {
            Some(length) => rest.get(..length)?.to_vec(),
            None => dechunked(rest)?,
        };
        let body = String::from_utf8(body).expect("these servers send UTF-8");
        let json = |text: &str| serde_json::from_str::<Value>(text).ok();
        let said = match json(&body) {
            Some(whole) => vec![whole],
            None => body
                .lines()
                .filter_map(|line| json(line.strip_prefix("data:")?))
                .collect(),
        };
        let done = body.lines().any(|line| line == "data: [DONE]");
        Some(Self { status, said, done })
    }

    /// The last value at `pointer` that is not null, over all it said.
    pub(super) fn last(&self, pointer: &str) -> Option<&Value> {
        let found = self.said.iter().rev();
        let mut found = found.filter_map(|value| value.pointer(pointer));
        found.find(|value| !value.is_null())
    }

    /// The last count at `pointer`.
    pub(super) fn count(&self, pointer: &str) -> Option<u32> {
        u32::try_from(self.last(pointer)?.as_u64()?).ok()
    }

    /// The last text at `pointer`.
    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.last(pointer)?.as_str()
    }

    /// How many of the values have a text at `pointer` that is not empty.
    pub(super) fn texts(&self, pointer: &str) -> usize {
        let texts = self.said.iter().filter_map(|value| value.pointer(pointer));
        texts
            .filter(|text| text.as_str().is_some_and(|text| !text.is_empty()))
            .count()
    }
}

/// The body of a chunked message; `None` while its last chunk is missing.
fn dechunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..line_end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        bytes = &bytes[line_end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_last_chunk_came() {
        let stream = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n12\r\ndata: {\"a\":null}\n\n\r\n20\r\ndata: {\"a\":{\"b\":7}}\n\ndata: [DONE\r\n3\r\n]\n\n\r\n0\r\n\r\n";
        let answer = Answer::parse(stream).expect("it is whole");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.said.len(), 2);
        assert!(answer.done);
        assert_eq!(answer.count("/a/b"), Some(7));
        assert_eq!(answer.count("/a/c"), None);
        assert!(Answer::parse(&stream[..stream.len() - 5]).is_none());
        let whole = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n{\"e\":\"x\"}";
        let answer = Answer::parse(whole).expect("it is whole");
        assert_eq!((answer.status, answer.text("/e")), (404, Some("x")));
        assert!(Answer::parse(&whole[..whole.len() - 1]).is_none());
    }
}
