//! A server that answers with bytes written down beforehand, over an in-memory pipe, in virtual
//! time: for what lies in heads, statuses and connections.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::case::stream;
use crate::client::{Call, Cancel, Client, ClientSetup, Protocol};
use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
use crate::load::workload::Prompt;
use crate::measurement::{Api, RequestRecord};
use crate::transport::{Connect, ConnectError, Endpoint, Opened, Opening, Progress, Wire};

/// What is said to one request: wait so many milliseconds, then write.
type Answer = Vec<(u64, Vec<u8>)>;

/// The head of a stream that ends with its connection.
pub(super) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Connections not opened yet, each with its answers, and all that was asked so far.
struct Peer {
    connections: Mutex<std::vec::IntoIter<Vec<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Connect for Peer {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        let next = self.connections.lock().expect("no panic before").next();
        Box::pin(async move {
            let Some(answers) = next else {
                return Err(ConnectError::Refused {
                    authority: endpoint.url().authority(),
                    resolved: None,
                    source: std::io::ErrorKind::ConnectionRefused.into(),
                });
            };
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(play(theirs, answers, Arc::clone(&self.asked)));
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

async fn play(mut pipe: DuplexStream, answers: Vec<Answer>, asked: Arc<Mutex<Vec<String>>>) {
    for answer in answers {
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            if pipe.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        asked.lock().expect("no panic before").push(text);
        for (wait, bytes) in answer {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if pipe.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

/// What became of some requests, and what the server was asked.
pub(super) struct Answered {
    pub(super) records: Vec<RequestRecord>,
    pub(super) asked: Vec<String>,
}

/// Sends a chat request for each answer, one after another, within `limits`.
pub(super) async fn ask(connections: Vec<Vec<Answer>>, limits: Limits) -> Answered {
    let requests = connections.iter().map(Vec::len).sum::<usize>();
    let (anchor, asked) = (TimeAnchor::start(), Arc::default());
    let url = BaseUrl::parse("http://sim:1").expect("a good address");
    let client = Client::new(ClientSetup {
        endpoint: Endpoint::new(url, NetworkConfig::default()).expect("no files"),
        protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body of ours"),
        headers: HeaderMap::new(),
        limits,
        connect: Arc::new(Peer {
            connections: Mutex::new(connections.into_iter()),
            asked: Arc::clone(&asked),
        }),
        anchor,
    })
    .expect("a good path");
    let stream = stream(Api::Chat, true);
    let mut records = Vec::new();
    for sequence in 0..requests as u64 {
        let (now, ids) = (
            anchor.now(),
            crate::measurement::TraceIds { trace: 1, span: 2 },
        );
        let mut record = RequestRecord::due(sequence, Arc::clone(&stream), ids, now);
        record.timeline.slot_free = Some(now);
        let prompt = Prompt {
            text: "hi".into(),
            input_tokens: Some(1),
            output_tokens: None,
            ..Prompt::default()
        };
        let call = Call::new(record, prompt);
        records.push(*client.send(call, &Cancel::default()).await);
    }
    let asked = asked.lock().expect("no panic before").clone();
    Answered { records, asked }
}

/// The record of one request that is answered in these steps: wait, then write.
pub(super) async fn answered(steps: &[(u64, &str)]) -> RequestRecord {
    let answer = steps
        .iter()
        .map(|(wait, text)| (*wait, text.as_bytes().to_vec()))
        .collect();
    only(ask(vec![vec![answer]], Limits::PROBE).await)
}

/// The only record.
pub(super) fn only(answered: Answered) -> RequestRecord {
    let [record] = <[RequestRecord; 1]>::try_from(answered.records).expect("one request");
    record
}
