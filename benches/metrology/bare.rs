//! The floor: a plain socket and a buffer, which stamps the read that holds the first
//! non-empty content and throws everything away.

use std::net::SocketAddr;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{One, TOKENS, micros, stagger};

const BUFFER: usize = 64 * 1024;

/// Some kept connections.
pub(crate) struct Readers(Vec<Reader>);

/// One kept connection.
pub(crate) struct Reader {
    stream: TcpStream,
    buffer: Vec<u8>,
    address: SocketAddr,
    number: usize,
    sent: usize,
}

impl Readers {
    pub(crate) async fn connect(address: SocketAddr, count: usize) -> Self {
        let mut readers = Vec::new();
        for number in 0..count {
            readers.push(Reader::connect(address, number).await);
        }
        Self(readers)
    }

    /// One request on each connection, one beginning after the other: TTFT of each.
    pub(crate) async fn round(&mut self) -> Vec<One> {
        let count = self.0.len();
        let readers = self.0.iter_mut().enumerate();
        join_all(readers.map(|(place, reader)| async move {
            sleep(stagger(place, count)).await;
            reader.exchange().await
        }))
        .await
    }
}

impl Reader {
    pub(crate) async fn connect(address: SocketAddr, number: usize) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self {
            stream,
            buffer: vec![0; BUFFER],
            address,
            number,
            sent: 0,
        }
    }

    /// One request and its answer.
    #[expect(
        clippy::disallowed_methods,
        reason = "the floor has a clock of its own"
    )]
    pub(crate) async fn exchange(&mut self) -> One {
        let id = format!("bare-{}-{}", self.number, self.sent);
        let request = request(self.address, &id);
        self.sent += 1;
        let start = Instant::now();
        self.stream.write_all(&request).await.expect("written");
        let mut first = None;
        let mut tail = Vec::new();
        loop {
            let read = self.stream.read(&mut self.buffer).await.expect("read");
            let now = Instant::now();
            assert!(read > 0, "the server closed");
            let bytes = &self.buffer[..read];
            if first.is_none() && has_content(bytes) {
                first = Some(now);
            }
            tail.extend_from_slice(&bytes[read.saturating_sub(5)..]);
            if tail.ends_with(b"0\r\n\r\n") {
                break;
            }
            let keep = tail.len().saturating_sub(5);
            tail.drain(..keep);
        }
        One {
            request: id,
            ttft: micros(first.expect("a token came") - start),
            itl: None,
        }
    }
}

fn has_content(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"\"content\":\"";
    memchr::memmem::find_iter(bytes, KEY).any(|at| bytes.get(at + KEY.len()) != Some(&b'"'))
}

fn request(address: SocketAddr, id: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"one two three four"}}],"stream":true,"stream_options":{{"include_usage":true}},"max_tokens":{TOKENS},"min_tokens":{TOKENS},"ignore_eos":true}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nx-request-id: {id}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
