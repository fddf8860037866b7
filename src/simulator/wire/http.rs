//! Reading HTTP/1.1 requests, by hand and with limits. HTTP/1.0 is taken too, since nginx asks
//! by it unless it is told otherwise.
//!
//! One request at a time; bytes that come early stay in the buffer. This is the simulator's own
//! reader on purpose: a misunderstanding shared with the client would hide itself.

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest request line and headers.
const MAX_HEAD: usize = 16 * 1024;
/// Longest body: a prompt of about a million words.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// Bytes read ahead while an answer is being written.
const MAX_AHEAD: usize = 64 * 1024;

/// A request that was read to its end.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// Value of `x-request-id`.
    pub(super) id: Option<String>,
    pub(super) body: BytesMut,
    /// Whether the connection is closed after the answer: the client wants it, or knows only
    /// HTTP/1.0.
    pub(super) close: bool,
    /// Whether the client knows chunks, as of HTTP/1.1. Else a stream ends with its connection.
    pub(super) chunked: bool,
}

/// Why no request was read.
#[derive(Debug)]
pub(super) enum Unread {
    /// The client is gone, or was never going to say anything.
    Closed,
    /// The request cannot be answered otherwise than with this status and message.
    Refused(u16, &'static str),
}

/// What the head said.
struct Head {
    method: String,
    path: String,
    id: Option<String>,
    length: usize,
    close: bool,
    chunked: bool,
    expects_continue: bool,
}

/// Reads the next request from `io`; `buffer` keeps what came early.
pub(super) async fn read_request<Io>(io: &mut Io, buffer: &mut BytesMut) -> Result<Request, Unread>
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let head_end = loop {
        if let Some(at) = memmem::find(buffer, b"\r\n\r\n") {
            break at;
        }
        if buffer.len() > MAX_HEAD {
            return Err(Unread::Refused(431, "the request's head is too long"));
        }
        fill(io, buffer).await?;
    };
    if head_end > MAX_HEAD {
        return Err(Unread::Refused(431, "the request's head is too long"));
    }
    let head = parse_head(&buffer[..head_end])?;
    buffer.advance(head_end + 4);
    if head.length > MAX_BODY {
        return Err(Unread::Refused(413, "the request's body is too long"));
    }
    if head.expects_continue && buffer.len() < head.length {
        let go_on = io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        go_on.map_err(|_| Unread::Closed)?;
        io.flush().await.map_err(|_| Unread::Closed)?;
    }
    while buffer.len() < head.length {
        fill(io, buffer).await?;
    }
    Ok(Request {
        method: head.method,
        path: head.path,
        id: head.id,
        body: buffer.split_to(head.length),
        close: head.close,
        chunked: head.chunked,
    })
}

/// Ends when the client is gone. Can be dropped at any time without losing bytes.
pub(super) async fn gone<Io: AsyncRead + Unpin>(io: &mut Io, buffer: &mut BytesMut) {
    loop {
        if buffer.len() >= MAX_AHEAD {
            std::future::pending::<()>().await;
        }
        if fill(io, buffer).await.is_err() {
            return;
        }
    }
}

async fn fill<Io: AsyncRead + Unpin>(io: &mut Io, buffer: &mut BytesMut) -> Result<(), Unread> {
    match io.read_buf(buffer).await {
        Ok(0) | Err(_) => Err(Unread::Closed),
        Ok(_) => Ok(()),
    }
}

fn parse_head(bytes: &[u8]) -> Result<Head, Unread> {
    const BAD: Unread = Unread::Refused(400, "not an HTTP/1 request");
    let text = std::str::from_utf8(bytes).map_err(|_| BAD)?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().ok_or(BAD)?.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    let chunked = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => return Err(BAD),
    };
    if method.is_empty() || !target.starts_with('/') {
        return Err(BAD);
    }
    let path = target.split('?').next().unwrap_or(target);
    let mut head = Head {
        method: method.to_owned(),
        path: path.to_owned(),
        id: None,
        length: 0,
        close: !chunked,
        chunked,
        expects_continue: false,
    };
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(BAD)?;
        read_header(&mut head, name, value.trim())?;
    }
    Ok(head)
}

fn read_header(head: &mut Head, name: &str, value: &str) -> Result<(), Unread> {
    if name.eq_ignore_ascii_case("content-length") {
        head.length = value
            .parse()
            .map_err(|_| Unread::Refused(400, "`content-length` is not a number"))?;
    } else if name.eq_ignore_ascii_case("transfer-encoding") {
        return Err(Unread::Refused(411, "send the body with `content-length`"));
    } else if name.eq_ignore_ascii_case("connection") {
        head.close |= value.eq_ignore_ascii_case("close");
    } else if name.eq_ignore_ascii_case("expect") {
        head.expects_continue = value.eq_ignore_ascii_case("100-continue");
    } else if name.eq_ignore_ascii_case("x-request-id") {
        head.id = Some(value.to_owned());
    }
    Ok(())
}
