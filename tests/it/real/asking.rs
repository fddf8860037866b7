//! One request by the canary's own client, and the answer as the server sent it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::HeaderValue;
use tokencanary::client::{Call, Cancel, Client, ClientSetup, Protocol};
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
use tokencanary::load::workload::Prompt;
use tokencanary::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Outcome, RequestRecord, Stream, StreamId,
    TraceIds,
};
use tokencanary::transport::{Endpoint, TcpConnect};

use super::tee::{Answer, Tee};
use crate::program::tell;

/// For one answer, on a busy machine.
const LONG: Duration = Duration::from_mins(1);
/// Output tokens asked for.
pub(super) const OUTPUT: u32 = 12;

/// What is asked.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) api: Api,
    pub(super) streaming: bool,
    pub(super) model: &'static str,
    /// Words of the prompt.
    pub(super) words: usize,
    /// Whether a stream is asked for usage.
    pub(super) usage: bool,
    /// Whether the answer is made to have the length asked for.
    pub(super) exact_length: bool,
    /// Sent as a bearer token, if not empty.
    pub(super) key: &'static str,
    pub(super) network: NetworkConfig,
}

impl Question {
    /// A short prompt to `model`.
    pub(super) fn new(api: Api, streaming: bool, model: &'static str) -> Self {
        Self {
            api,
            streaming,
            model,
            words: 6,
            usage: true,
            exact_length: true,
            key: "",
            network: NetworkConfig::default(),
        }
    }

    fn request_config(&self) -> RequestConfig {
        RequestConfig {
            usage: self.usage,
            exact_length: self.exact_length,
            ..RequestConfig::default()
        }
    }

    fn stream(&self, url: &BaseUrl) -> Stream {
        let model = OnceLock::new();
        model.set(self.model.into()).expect("it is new");
        Stream {
            id: StreamId(0),
            target_index: 0,
            target: "real".into(),
            endpoint: url.to_string().into(),
            probe: "real".into(),
            api: self.api,
            cache: CacheMode::Cold,
            connection: ConnectionPolicy::New,
            length: LengthMode::Exact,
            streaming: self.streaming,
            closed_loop: false,
            model,
        }
    }

    fn prompt(&self) -> Prompt {
        Prompt {
            text: ["cat"].repeat(self.words).join(" "),
            input_tokens: Some(u32::try_from(self.words).expect("some thousands")),
            output_tokens: Some(OUTPUT),
            ..Prompt::default()
        }
    }
}

/// Asks `question` of the server at `url`, straight.
pub(super) async fn ask(url: &str, question: &Question) -> RequestRecord {
    ask_prompt(url, question, question.prompt()).await
}

/// The same with `prompt` instead of its words.
pub(super) async fn ask_prompt(url: &str, question: &Question, prompt: Prompt) -> RequestRecord {
    let anchor = TimeAnchor::start();
    let url = BaseUrl::parse(url).expect("an address");
    let stream = Arc::new(question.stream(&url));
    let mut headers = HeaderMap::new();
    if !question.key.is_empty() {
        let value = HeaderValue::from_str(&format!("Bearer {}", question.key));
        headers.insert("authorization", value.expect("plain letters"));
    }
    let setup = ClientSetup {
        endpoint: Endpoint::new(url, question.network.clone()).expect("its files are there"),
        protocol: Protocol::new(question.api, question.request_config()).expect("no body"),
        headers,
        limits: Limits {
            connect: LONG,
            first_token: Some(LONG),
            gap: Some(LONG),
            total: LONG,
        },
        connect: Arc::new(TcpConnect),
        anchor,
    };
    let client = Client::new(setup).expect("an address is a header value");
    let now = anchor.now();
    let ids = TraceIds { trace: 7, span: 7 };
    let mut record = RequestRecord::due(0, stream, ids, now);
    record.timeline.slot_free = Some(now);
    let call = Call::new(record, prompt);
    *client.send(call, &Cancel::default()).await
}

/// Asks `question` of the server at `url`, and keeps its answer on the way.
pub(super) async fn ask_and_keep(url: &str, question: &Question) -> (RequestRecord, Answer) {
    let tee = Tee::start(url).await;
    let record = ask(&tee.url(), question).await;
    (record, tee.answer().await)
}

/// Where a protocol's answer says how many tokens it was, and how it ended.
pub(super) struct Places {
    pub(super) input: &'static str,
    pub(super) output: &'static str,
    pub(super) finish: &'static str,
    /// The text of one event.
    pub(super) text: &'static str,
}

/// Chat completions; the text is that of a stream.
pub(super) const CHAT: Places = Places {
    input: "/usage/prompt_tokens",
    output: "/usage/completion_tokens",
    finish: "/choices/0/finish_reason",
    text: "/choices/0/delta/content",
};
/// Completions.
pub(super) const COMPLETIONS: Places = Places {
    text: "/choices/0/text",
    ..CHAT
};

/// The record says what the answer does: all well, the same finish reason and counts, and as many
/// chunks as events with text.
pub(super) fn assert_same(question: &Question, asked: &(RequestRecord, Answer), places: &Places) {
    let (record, answer) = asked;
    let what = format!(
        "{}, streaming {}: {record:?}",
        question.api.name(),
        question.streaming
    );
    assert_eq!(record.outcome, Outcome::Ok, "{what}");
    assert_eq!(record.http_status, Some(200), "{what}");
    assert_eq!(
        record.finish_reason.as_deref(),
        answer.text(places.finish),
        "{what}"
    );
    assert!(record.finish_reason.is_some(), "{what}");
    assert_eq!(record.tokens.input, answer.count(places.input), "{what}");
    assert!(record.tokens.input.is_some(), "{what}");
    assert_eq!(record.tokens.output, answer.count(places.output), "{what}");
    assert!(record.tokens.output > Some(0), "{what}");
    if question.streaming {
        assert_eq!(record.chunks.len(), answer.texts(places.text), "{what}");
        assert!(record.timeline.first_token.is_some(), "{what}");
    } else {
        assert_eq!(record.chunks.len(), 0, "{what}");
        assert_eq!(record.timeline.first_token, None, "{what}");
    }
    assert!(record.timeline.last_token.is_some(), "{what}");
    tell(&format!(
        "{}, streaming {}: tokens in {:?}, out {:?}, as the server says; {} chunks, finish {:?}",
        question.api.name(),
        question.streaming,
        record.tokens.input,
        record.tokens.output,
        record.chunks.len(),
        record.finish_reason
    ));
}

/// The record says which error the answer holds: `status`, and its message at `message`.
pub(super) fn assert_error(asked: &(RequestRecord, Answer), status: u16, message: &str) {
    let (record, answer) = asked;
    let wanted = if status == 200 {
        Outcome::StreamError
    } else {
        Outcome::HttpStatus
    };
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(record.outcome, wanted, "{record:?}");
    assert_eq!(record.http_status, Some(status), "{record:?}");
    let error = record.error.as_ref().expect("it is told");
    let said = answer.text(message).expect("the server says why");
    // A long message is cut, and line ends are no part of it.
    let beginning = said.chars().take(100);
    let beginning: String = beginning
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    assert!(error.message.starts_with(&*beginning), "{error:?}: {said}");
    assert_eq!(record.timeline.first_token, None, "{record:?}");
    tell(&format!(
        "{}, HTTP {status}: {}",
        record.outcome.name(),
        error.message
    ));
}
