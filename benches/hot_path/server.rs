//! A server that does nothing but send: chunks made beforehand, one write for each token, on one
//! thread. It can keep when it read each request and when it was about to write each token.
//!
//! Pauses are absolute, so that a late write delays no later one.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

/// Longest request taken.
const MOST_REQUEST: usize = 1 << 20;

/// What every answer is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Tokens, one in each chunk.
    pub(crate) tokens: u32,
    /// From the read of the request to the first token.
    pub(crate) ttft: Duration,
    /// Between tokens; zero: no pause at all.
    pub(crate) itl: Duration,
}

/// One answer by the server's own clock, nanoseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// Its `x-request-id`.
    pub(crate) id: String,
    /// When the request was read.
    pub(crate) read: u64,
    /// Just before each token was written.
    pub(crate) tokens: Vec<u64>,
}

type Log = Rc<RefCell<Vec<Written>>>;

struct Parts {
    head: Vec<u8>,
    token: Vec<u8>,
    tail: Vec<u8>,
}

/// Serves until it is killed; says its address on standard output. With `keeps`, `GET /times`
/// hands out what was kept since the last one.
#[expect(clippy::print_stdout, reason = "the parent reads the address")]
pub(crate) async fn serve(pace: Pace, keeps: bool) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("loopback has free ports");
    println!("{}", listener.local_addr().expect("it is bound"));
    let parts = Rc::new(parts(pace.tokens));
    let log = keeps.then(Log::default);
    let tasks = async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (parts, log) = (Rc::clone(&parts), log.clone());
            tokio::task::spawn_local(async move {
                // A client that goes away ends its connection and nothing else.
                drop(connection(stream, (pace, &parts), log.as_ref()).await);
            });
        }
    };
    LocalSet::new().run_until(tasks).await;
}

/// The frames of vLLM: role, tokens, finish reason, usage, end.
fn parts(tokens: u32) -> Parts {
    let event = |choices: &str, rest: &str| {
        let data = format!(
            "data: {{\"id\":\"chatcmpl-8f3c2a7e5b1d4c6f9a0e1b2c3d4e5f60\",\"object\":\"chat.completion.chunk\",\"created\":1795968505,\"model\":\"bench\",\"choices\":[{choices}]{rest}}}\n\n"
        );
        chunk(&data)
    };
    let delta = |delta: &str, finish: &str| {
        let choice = format!(
            "{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}"
        );
        event(&choice, "")
    };
    let total = 16 + tokens;
    let usage = format!(
        ",\"usage\":{{\"prompt_tokens\":16,\"total_tokens\":{total},\"completion_tokens\":{tokens}}}"
    );
    Parts {
        head: ["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            delta("\"role\":\"assistant\",\"content\":\"\"", "null")].concat().into_bytes(),
        token: delta("\"content\":\" token\"", "null").into_bytes(),
        tail: [delta("", "\"length\""), event("", &usage), chunk("data: [DONE]\n\n"), "0\r\n\r\n".to_owned()]
            .concat().into_bytes(),
    }
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

async fn connection(
    mut stream: TcpStream,
    (pace, parts): (Pace, &Parts),
    log: Option<&Log>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::with_capacity(4096);
    loop {
        let Some(head) = request(&mut stream, &mut bytes).await? else {
            return Ok(());
        };
        if head.starts_with("POST ") {
            answer(&mut stream, (pace, parts), (&head, log)).await?;
        } else {
            let body = match log {
                Some(log) if head.starts_with("GET /times ") => lines(&log.take()),
                _ => "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}"
                    .to_owned(),
            };
            let length = body.len();
            let whole = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(whole.as_bytes()).await?;
        }
    }
}

/// Reads one request with its body; gives its head.
async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        if let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length: usize =
                header(&head, "content-length").map_or(0, |text| text.parse().unwrap_or(0));
            if bytes.len() >= end + 4 + length {
                bytes.drain(..end + 4 + length);
                return Ok(Some(head));
            }
        }
        if bytes.len() > MOST_REQUEST || stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

async fn answer(
    stream: &mut TcpStream,
    (pace, parts): (Pace, &Parts),
    (head, log): (&str, Option<&Log>),
) -> io::Result<()> {
    let begin = Instant::now();
    let mut written = log.map(|_| Written {
        id: header(head, "x-request-id").unwrap_or("").to_owned(),
        read: unix_ns(),
        tokens: Vec::with_capacity(pace.tokens as usize),
    });
    stream.write_all(&parts.head).await?;
    for number in 0..pace.tokens {
        if !pace.itl.is_zero() {
            sleep_until(begin + pace.ttft + pace.itl * number).await;
        }
        if let Some(written) = &mut written {
            written.tokens.push(unix_ns());
        }
        stream.write_all(&parts.token).await?;
    }
    stream.write_all(&parts.tail).await?;
    if let (Some(log), Some(written)) = (log, written) {
        log.borrow_mut().push(written);
    }
    Ok(())
}

fn lines(log: &[Written]) -> String {
    let mut text = String::new();
    for Written { id, read, tokens } in log {
        let sure = "a text takes what is written";
        write!(text, "{id} {read}").expect(sure);
        for token in tokens {
            write!(text, " {token}").expect(sure);
        }
        text.push('\n');
    }
    text
}

impl Written {
    /// Reads what `GET /times` gave.
    pub(crate) fn parse(text: &str) -> Vec<Self> {
        let line = |line: &str| {
            let (id, numbers) = line.split_once(' ').expect("an id comes first");
            let mut numbers = numbers
                .split(' ')
                .map(|number| number.parse().expect("a number"));
            Self {
                id: id.to_owned(),
                read: numbers.next().expect("a request was read"),
                tokens: numbers.collect(),
            }
        };
        text.lines().map(line).collect()
    }
}

/// The clock of kernel stamps.
pub(crate) fn unix_ns() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "two processes compare this clock"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_nanos()).expect("it is before 2554")
}
