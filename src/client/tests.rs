//! The client against hand-written bytes over an in-memory pipe, in virtual time.

mod ends;
mod kept;
mod mistaken;
mod peer;
mod reached;
mod secure;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Mutex;

use super::*;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
use crate::load::workload::Prompt;
use crate::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Note, Outcome, RequestRecord, Stream, StreamId,
    TokenSource, TraceIds,
};
use crate::transport::{Connect, ConnectError, Endpoint, Opened, Opening, Progress, Wire};

/// One step of the peer: wait, then write these bytes.
type Step = (u64, &'static str);

/// What the peer does on one connection: for each request some steps, then it closes.
type Script = Vec<Vec<Step>>;

/// A network whose connections follow the scripts, one after another.
struct Scripted {
    scripts: Mutex<std::vec::IntoIter<Script>>,
}

impl Connect for Scripted {
    fn open<'a>(&'a self, endpoint: &'a Endpoint, progress: &'a Progress) -> Opening<'a> {
        Box::pin(async move {
            let Some(script) = self.scripts.lock().await.next() else {
                return Err(ConnectError::Refused {
                    authority: endpoint.url().authority(),
                    resolved: None,
                    source: std::io::ErrorKind::ConnectionRefused.into(),
                });
            };
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(play(theirs, script));
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

fn endpoint() -> Endpoint {
    let url = BaseUrl::parse("http://sim:1").expect("good");
    Endpoint::new(url, NetworkConfig::default()).expect("no files")
}

async fn play(mut peer: DuplexStream, script: Script) {
    for steps in script {
        let mut buf = [0; 4096];
        if peer.read(&mut buf).await.unwrap_or(0) == 0 {
            return;
        }
        for (wait, bytes) in steps {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if peer.write_all(bytes.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const ROLE: &str =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const THOUGHT: &str = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

struct Setup {
    limits: Limits,
    streaming: bool,
    requests: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: Limits::PROBE,
            streaming: true,
            requests: 1,
        }
    }
}

async fn exchange(scripts: Vec<Script>, setup: Setup) -> Vec<RequestRecord> {
    let anchor = TimeAnchor::start();
    let client = Client::new(ClientSetup {
        endpoint: endpoint(),
        protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body"),
        headers: HeaderMap::new(),
        limits: setup.limits,
        connect: Arc::new(Scripted {
            scripts: Mutex::new(scripts.into_iter()),
        }),
        anchor,
    })
    .expect("a good path");
    let stream = Arc::new(Stream {
        id: StreamId(0),
        target_index: 0,
        target: "t".into(),
        endpoint: "http://sim:1".into(),
        probe: "p".into(),
        api: Api::Chat,
        cache: CacheMode::Cold,
        connection: ConnectionPolicy::Pooled,
        length: LengthMode::Exact,
        streaming: setup.streaming,
        closed_loop: false,
        model: OnceLock::new(),
    });
    let mut records = Vec::new();
    for sequence in 0..setup.requests as u64 {
        let now = anchor.now();
        let ids = TraceIds { trace: 1, span: 2 };
        let mut record = RequestRecord::due(sequence, Arc::clone(&stream), ids, now);
        record.timeline.slot_free = Some(now);
        let prompt = Prompt {
            text: "hi".into(),
            input_tokens: Some(1),
            output_tokens: Some(3),
            ..Prompt::default()
        };
        let call = Call::new(record, prompt);
        records.push(*client.send(call, &Cancel::default()).await);
    }
    records
}

async fn one(steps: Vec<Step>) -> RequestRecord {
    exchange(vec![vec![steps]], Setup::default())
        .await
        .remove(0)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "compared with durations that may be absent"
)]
fn ms(value: u64) -> Option<Duration> {
    Some(Duration::from_millis(value))
}

fn since_start(record: &RequestRecord, mark: Option<MonoTime>) -> Option<Duration> {
    Some(mark?.since(record.timeline.start?))
}

#[tokio::test(start_paused = true)]
async fn a_whole_stream_has_every_mark_at_its_read() {
    let record = one(vec![
        (7, HEAD),
        (3, ROLE),
        (20, TOKEN),
        (10, TOKEN),
        (15, TOKEN),
        (1, FINISH),
        (1, USAGE),
        (1, DONE),
    ])
    .await;
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let timeline = record.timeline;
    for (mark, expected) in [
        (timeline.connected, 0),
        (timeline.sent, 0),
        (timeline.headers, 7),
        (timeline.first_byte, 10),
        (timeline.first_event, 10),
        (timeline.first_token, 30),
        (timeline.first_output, 30),
        (timeline.last_token, 55),
        (timeline.end, 58),
    ] {
        assert_eq!(since_start(&record, mark), ms(expected));
    }
    assert_eq!(
        record.chunks.gaps().collect::<Vec<_>>(),
        [ms(10).unwrap_or_default(), ms(15).unwrap_or_default()]
    );
    assert_eq!(record.itl(), Some(Duration::from_micros(12_500)));
    assert_eq!(
        (record.tokens.input, record.tokens.output),
        (Some(5), Some(3))
    );
    assert_eq!(record.tokens.source, Some(TokenSource::Usage));
    assert_eq!(record.finish_reason.as_deref(), Some("length"));
    assert_eq!(
        (record.reused, record.http_status),
        (Some(false), Some(200))
    );
}

#[tokio::test(start_paused = true)]
async fn reasoning_ends_ttft_but_not_ttfo() {
    let record = one(vec![
        (5, HEAD),
        (5, THOUGHT),
        (30, TOKEN),
        (0, FINISH),
        (0, DONE),
    ])
    .await;
    assert_eq!((record.ttft(), record.ttfo()), (ms(10), ms(40)));
}

#[tokio::test(start_paused = true)]
async fn what_the_stream_lacks_decides_the_outcome() {
    let error = "data: {\"error\":{\"message\":\"late\",\"type\":\"TimeoutError\"}}\n\n";
    for (steps, outcome) in [
        (vec![(1, HEAD), (1, TOKEN), (1, TOKEN)], Outcome::StreamCut),
        (vec![(1, HEAD)], Outcome::StreamCut),
        (vec![], Outcome::StreamCut),
        (
            vec![(1, HEAD), (1, ROLE), (1, FINISH), (1, DONE)],
            Outcome::Empty,
        ),
        (vec![(1, HEAD), (1, error), (1, DONE)], Outcome::StreamError),
        (
            vec![(1, HEAD), (1, TOKEN), (1, error)],
            Outcome::StreamError,
        ),
        (
            vec![(1, HEAD), (1, "<html>busy</html>")],
            Outcome::Malformed,
        ),
        (
            vec![(1, HEAD), (1, TOKEN), (1, "data: {\"cho\n\n"), (1, FINISH)],
            Outcome::Ok,
        ),
        (
            vec![
                (1, HEAD),
                (1, "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}"),
            ],
            Outcome::NotAStream,
        ),
        (vec![(1, HEAD), (1, TOKEN), (1, FINISH)], Outcome::Ok),
        (
            vec![(1, HEAD), (1, TOKEN), (1, "data: [DONE]")],
            Outcome::Ok,
        ),
        (
            vec![(
                1,
                "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            )],
            Outcome::HttpStatus,
        ),
        (vec![(1, "SSH-2.0-OpenSSH\r\n\r\n")], Outcome::Malformed),
    ] {
        let record = one(steps.clone()).await;
        assert_eq!(record.outcome, outcome, "{steps:?}: {:?}", record.error);
        assert!(record.timeline.end.is_some());
        assert!(
            outcome == Outcome::Ok
                || outcome == Outcome::Empty
                || outcome == Outcome::NotAStream
                || record.error.is_some()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_limit_gives_its_own_outcome_at_its_own_time() {
    let limits = Limits {
        connect: Duration::from_millis(5),
        first_token: Some(Duration::from_millis(50)),
        gap: Some(Duration::from_millis(30)),
        total: Duration::from_millis(120),
    };
    let tokens = |count: usize| {
        let mut steps = vec![(10, HEAD)];
        steps.extend(std::iter::repeat_n((25, TOKEN), count));
        steps.push((500, DONE));
        steps
    };
    for (steps, outcome, at) in [
        (vec![(500, HEAD)], Outcome::TimeoutFirstToken, 50),
        (
            vec![(10, HEAD), (10, ROLE), (500, TOKEN)],
            Outcome::TimeoutFirstToken,
            50,
        ),
        (tokens(2), Outcome::TimeoutGap, 90),
        (tokens(9), Outcome::TimeoutTotal, 120),
    ] {
        let setup = Setup {
            limits,
            ..Setup::default()
        };
        let record = exchange(vec![vec![steps.clone()]], setup).await.remove(0);
        assert_eq!(record.outcome, outcome, "{steps:?}");
        assert_eq!(
            since_start(&record, record.timeline.end),
            ms(at),
            "{outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_connection_is_a_record_too() {
    let record = exchange(vec![], Setup::default()).await.remove(0);
    assert_eq!(record.outcome, Outcome::Connect);
    assert_eq!(record.timeline.connected, None);
    assert_eq!(record.reused, None);
}

const KEPT: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const BODY: &str =
    "3d\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n\r\n0\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_connection_is_reused_and_a_closed_one_replaced() {
    let answered = || vec![(1, KEPT), (1, BODY)];
    let scripts = vec![vec![answered(), answered()], vec![answered()]];
    let records = exchange(
        scripts,
        Setup {
            requests: 3,
            ..Setup::default()
        },
    )
    .await;
    let reused: Vec<_> = records.iter().map(|record| record.reused).collect();
    let outcomes: Vec<_> = records
        .iter()
        .map(|record| (record.outcome, record.error.clone()))
        .collect();
    assert_eq!(
        reused,
        [Some(false), Some(true), Some(false)],
        "{outcomes:?}"
    );
    assert!(
        outcomes.iter().all(|(outcome, _)| *outcome == Outcome::Ok),
        "{outcomes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_crosses_the_close_of_an_idle_connection_goes_on_a_new_one() {
    let answered = || vec![(1, KEPT), (1, BODY)];
    // The first connection takes the second request and closes without a word.
    let scripts = vec![vec![answered(), vec![(3, "")]], vec![answered()]];
    let setup = Setup {
        requests: 2,
        ..Setup::default()
    };
    let records = exchange(scripts, setup).await;
    let second = &records[1];
    assert_eq!(second.outcome, Outcome::Ok, "{:?}", second.error);
    assert!(second.replaced_connection && !records[0].replaced_connection);
    assert_eq!(second.reused, Some(false));
    assert_eq!(second.ttft(), ms(5), "the lost 3 ms are part of the time");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_server_held_and_dropped_is_cut() {
    let answered = || vec![(1, KEPT), (1, BODY)];
    let scripts = vec![vec![answered(), vec![(1_500, "")]], vec![answered()]];
    let setup = Setup {
        requests: 2,
        ..Setup::default()
    };
    let records = exchange(scripts, setup).await;
    assert_eq!(records[1].outcome, Outcome::StreamCut);
    assert_eq!(records[1].reused, Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_unary_answer_has_a_service_time_and_no_first_token() {
    let steps = vec![
        (4, HEAD),
        (
            6,
            "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}",
        ),
    ];
    let setup = Setup {
        streaming: false,
        ..Setup::default()
    };
    let record = exchange(vec![vec![steps]], setup).await.remove(0);
    assert_eq!(
        (record.outcome, record.ttft(), record.service_time()),
        (Outcome::Ok, None, ms(10))
    );
    assert_eq!(record.tokens.output, Some(3));
    assert_eq!(record.itl(), None);
}

#[tokio::test(start_paused = true)]
async fn a_rehearsal_touches_no_network_and_can_be_repeated() {
    let anchor = TimeAnchor::start();
    let client = Client::new(ClientSetup {
        endpoint: endpoint(),
        protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body"),
        headers: HeaderMap::new(),
        limits: Limits::PROBE,
        connect: Arc::new(Scripted {
            scripts: Mutex::new(Vec::new().into_iter()),
        }),
        anchor,
    })
    .expect("a good path");
    let record = exchange(Vec::new(), Setup::default()).await.remove(0);
    for words in [1, 20_000] {
        let prompt = Prompt {
            text: "hi ".repeat(words),
            input_tokens: Some(1),
            output_tokens: Some(2),
            ..Prompt::default()
        };
        assert!(client.rehearse(record.clone(), &prompt).await);
    }
    assert_eq!(anchor.now(), MonoTime::ZERO, "it takes no time of its own");
}
