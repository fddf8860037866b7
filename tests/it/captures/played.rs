//! The recorded responses, played to the client over an in-memory pipe with a paused clock:
//! heads, statuses and the framing of HTTP included, and times that are exact.

use std::sync::Arc;
use std::time::Duration;

use hyper::HeaderMap;
use tokencanary::client::{Call, Cancel, Client, ClientSetup, Protocol};
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
use tokencanary::load::workload::Prompt;
use tokencanary::measurement::RequestRecord;
use tokencanary::transport::{Connect, Endpoint, Opened, Opening, Progress, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{INSTANTS, RECORDED, Recorded, Response, check};
use crate::fuzz::invariants::view::{self, View};

/// One write of the server: when, in milliseconds after the request, and what.
type Write = (u64, Vec<u8>);

/// A network with one host, which answers with the same writes on every connection.
struct Server(Vec<Write>);

impl Connect for Server {
    fn open<'a>(&'a self, _endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            tokio::spawn(answer(theirs, self.0.clone()));
            Ok(Opened {
                wire: Wire::Pipe(ours),
                resolved: None,
                connected: progress.now(),
                tls: None,
                http2: false,
            })
        })
    }
}

/// Reads the request, writes, and closes.
async fn answer(mut peer: DuplexStream, writes: Vec<Write>) {
    let mut request = [0; 4096];
    let read = peer.read(&mut request).await.expect("a pipe");
    assert!(read < request.len(), "these requests are short");
    let start = tokio::time::Instant::now();
    for (ms, bytes) in writes {
        tokio::time::sleep_until(start + Duration::from_millis(ms)).await;
        peer.write_all(&bytes).await.expect("the client reads on");
    }
}

/// The writes of `response`: its head at once, then one a piece of its body, framed as the head
/// says.
fn writes(response: &Response, pieces: Vec<(u64, &[u8])>) -> Vec<Write> {
    let head = response.head.to_ascii_lowercase();
    let mut writes = vec![(0, response.head.clone().into_bytes())];
    if head.contains("transfer-encoding: chunked\r\n") && !head.contains("content-length:") {
        for (ms, piece) in pieces {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            writes.push((ms, chunk));
        }
        writes.push((200, b"0\r\n\r\n".to_vec()));
    } else {
        let length = format!("content-length: {}\r\n", response.body.len());
        assert!(head.contains(&length), "the whole body is in the file");
        writes.extend(pieces.into_iter().map(|(ms, piece)| (ms, piece.to_vec())));
    }
    writes
}

async fn exchange(recorded: &Recorded, writes: Vec<Write>) -> RequestRecord {
    let url = BaseUrl::parse("http://server").expect("good");
    let client = Client::new(ClientSetup {
        endpoint: Endpoint::new(url, NetworkConfig::default()).expect("no files"),
        protocol: Protocol::new(recorded.api, RequestConfig::default()).expect("needs no body"),
        headers: HeaderMap::new(),
        limits: Limits::PROBE,
        connect: Arc::new(Server(writes)),
        anchor: TimeAnchor::start(),
    })
    .expect("the host is a header value");
    let call = Call::new(
        view::record(recorded.api, recorded.streaming),
        Prompt {
            text: "say something".to_owned(),
            input_tokens: Some(2),
            output_tokens: Some(12),
            ..Prompt::default()
        },
    );
    *client.send(call, &Cancel::default()).await
}

/// What the record says, without what was asked for, which the files do not know.
fn seen(record: &RequestRecord) -> View {
    let mut view = View::of(record);
    view.tokens.requested_input = None;
    view.tokens.requested_output = None;
    view
}

#[tokio::test(start_paused = true)]
async fn every_response_becomes_the_record_a_reader_writes() {
    for recorded in RECORDED {
        let response = Response::of(recorded);
        let writes = writes(&response, vec![(5, &response.body[..])]);
        let record = exchange(recorded, writes).await;
        check(&seen(&record), recorded);
        assert_eq!(
            record.http_status,
            Some(recorded.status),
            "{}",
            recorded.file
        );
        assert_eq!(
            record.bytes,
            response.body.len() as u64,
            "{}",
            recorded.file
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_cut_between_two_reads_changes_the_record() {
    for recorded in RECORDED {
        let response = Response::of(recorded);
        for size in [1, 7, 100] {
            let pieces = response.body.chunks(size).zip(1..);
            let pieces = pieces.map(|(piece, ms)| (ms, piece)).collect();
            let record = exchange(recorded, writes(&response, pieces)).await;
            check(&seen(&record), recorded);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn times_run_from_the_start_to_the_reads_of_the_tokens() {
    let streams = RECORDED.iter().filter(|recorded| {
        recorded.streaming && recorded.status == 200 && recorded.token_events.is_some()
    });
    for recorded in streams {
        let response = Response::of(recorded);
        let pieces = INSTANTS.into_iter().zip(response.events()).collect();
        let record = exchange(recorded, writes(&response, pieces)).await;
        check(&seen(&record), recorded);
        let times = &record.timeline;
        let start = times.start.expect("it went out");
        let after = |mark: Option<tokencanary::clock::MonoTime>| {
            u64::try_from(mark.expect("reached").since(start).as_millis()).expect("short")
        };
        let (first, last) = recorded.token_events.expect("chosen so");
        assert_eq!(after(times.headers), 0, "{}", recorded.file);
        assert_eq!(after(times.first_byte), INSTANTS[0], "{}", recorded.file);
        assert_eq!(
            after(times.first_token),
            INSTANTS[first - 1],
            "{}",
            recorded.file
        );
        assert_eq!(
            after(times.last_token),
            INSTANTS[last - 1],
            "{}",
            recorded.file
        );
        assert_eq!(after(times.end), 200, "{}", recorded.file);
    }
}
