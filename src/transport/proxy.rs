//! Asks a forward proxy for a tunnel (`CONNECT`), for plain targets as for TLS ones, so that
//! the proxy carries bytes and does not rewrite requests.
//!
//! The answer is read byte by byte: what follows it belongs to the target. It has a limit of
//! size here; time is limited by whoever waits.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::config::ProxyConfig;

/// Longest answer that is read.
const MAX_ANSWER: usize = 16 * 1024;

/// Makes a tunnel to `target` (host and port) of the fresh connection `stream` to `proxy`.
///
/// The error says what the proxy answered instead.
pub(super) async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    proxy: &ProxyConfig,
    target: &str,
) -> io::Result<()> {
    let authorization = match &proxy.authorization {
        Some(secret) => format!("proxy-authorization: {}\r\n", secret.reveal()),
        None => String::new(),
    };
    let request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let head = answer(stream).await?;
    match status(&head) {
        Some((200..=299, _)) => Ok(()),
        Some((_, line)) => Err(io::Error::other(format!("it answered `{line}`"))),
        None => Err(io::Error::other("its answer is not HTTP")),
    }
}

async fn answer<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::other("it closed without an answer"));
            }
            Err(error) => return Err(error),
        }
        let is_http = head.iter().zip(b"HTTP/1.").all(|(is, should)| is == should);
        if !is_http || head.len() > MAX_ANSWER {
            return Err(io::Error::other("its answer is not HTTP"));
        }
    }
    Ok(head)
}

/// Status and the text from it to the end of the line.
fn status(head: &[u8]) -> Option<(u16, String)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = String::from_utf8_lossy(line);
    let (_, rest) = line.split_once(' ')?;
    let digits = rest.get(..3)?;
    Some((digits.parse().ok()?, rest.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;
    use crate::config::{BaseUrl, Secret};

    /// What came of the proxy's answer, and what it had been asked.
    async fn asked(answer: &[u8], secret: Option<&str>) -> (Result<(), String>, String) {
        let (mut ours, mut theirs) = duplex(64 * 1024);
        let proxy = ProxyConfig {
            url: BaseUrl::parse("http://proxy:3128").expect("good"),
            authorization: secret.map(Secret::new),
        };
        theirs.write_all(answer).await.expect("room");
        theirs.shutdown().await.expect("open");
        let made = tunnel(&mut ours, &proxy, "vllm:8000").await;
        drop(ours);
        let mut request = String::new();
        theirs.read_to_string(&mut request).await.expect("text");
        (made.map_err(|error| error.to_string()), request)
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_with_the_targets_name_and_our_authorization() {
        let (made, request) =
            asked(b"HTTP/1.1 200 Fine\r\nvia: x\r\n\r\n", Some("Basic eA==")).await;
        assert_eq!(made, Ok(()));
        assert_eq!(
            request,
            "CONNECT vllm:8000 HTTP/1.1\r\nhost: vllm:8000\r\nproxy-authorization: Basic eA==\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn another_answer_is_no_tunnel_and_says_which() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(20_000));
        for (answer, expected) in [
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
                "it answered `407 Proxy Authentication Required`",
            ),
            ("HTTP/1.0 502\r\n\r\n", "it answered `502`"),
            ("SSH-2.0-OpenSSH_9\r\n", "its answer is not HTTP"),
            ("HTTP/1.1 nonsense\r\n\r\n", "its answer is not HTTP"),
            ("", "it closed without an answer"),
            ("HTTP/1.1 200 OK\r\n", "it closed without an answer"),
            (&long, "its answer is not HTTP"),
        ] {
            let (made, request) = asked(answer.as_bytes(), None).await;
            assert_eq!(made, Err(expected.to_owned()));
            assert!(!request.contains("authorization"));
        }
    }

    #[tokio::test]
    async fn what_follows_the_answer_is_left_for_the_target() {
        let (mut ours, mut theirs) = duplex(1024);
        let proxy = ProxyConfig {
            url: BaseUrl::parse("http://proxy:3128").expect("good"),
            authorization: None,
        };
        theirs
            .write_all(b"HTTP/1.1 200\r\n\r\nrest")
            .await
            .expect("room");
        tunnel(&mut ours, &proxy, "x:1").await.expect("a tunnel");
        let mut rest = [0; 4];
        ours.read_exact(&mut rest).await.expect("it is there");
        assert_eq!(&rest, b"rest");
    }
}
