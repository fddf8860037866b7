//! The canary's client, as the daemon uses it: on one thread, with pooled connections.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokencanary::client::{Call, Cancel, Client, ClientSetup, Protocol};
use tokencanary::clock::TimeAnchor;
use tokencanary::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
use tokencanary::load::workload::Prompt;
use tokencanary::measurement::{
    Api, CacheMode, ConnectionPolicy, LengthMode, Outcome, RequestRecord, Stream, StreamId,
    TraceIds,
};
use tokencanary::transport::{Endpoint, TcpConnect};
use tokio::time::sleep;

use super::{One, TOKENS, micros, stagger};

pub(crate) struct Canary {
    client: Client,
    anchor: TimeAnchor,
    stream: Arc<Stream>,
}

impl Canary {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let anchor = TimeAnchor::start();
        let url = BaseUrl::parse(&format!("http://{address}")).expect("an address");
        let limits = Limits {
            connect: Duration::from_secs(5),
            first_token: Some(Duration::from_secs(10)),
            gap: Some(Duration::from_secs(10)),
            total: Duration::from_mins(1),
        };
        let stream = Stream {
            id: StreamId(0),
            target_index: 0,
            target: "bench".into(),
            endpoint: url.to_string().into(),
            probe: "bench".into(),
            api: Api::Chat,
            cache: CacheMode::Cold,
            connection: ConnectionPolicy::Pooled,
            length: LengthMode::Exact,
            streaming: true,
            closed_loop: true,
            model: OnceLock::new(),
        };
        let setup = ClientSetup {
            endpoint: Endpoint::new(url, NetworkConfig::default()).expect("no files"),
            protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body"),
            headers: hyper::HeaderMap::new(),
            limits,
            connect: Arc::new(TcpConnect),
            anchor,
        };
        let client = Client::new(setup).expect("a good path");
        Self {
            client,
            anchor,
            stream: Arc::new(stream),
        }
    }

    /// So many requests under way, one beginning after the other.
    pub(crate) async fn round(&self, streams: usize) -> Vec<One> {
        join_all((0..streams).map(|place| async move {
            sleep(stagger(place, streams)).await;
            self.request().await
        }))
        .await
    }

    async fn request(&self) -> One {
        let (record, prompt) = self.due();
        self.client.rehearse(record.clone(), &prompt).await;
        let record = self.send(Call::new(record, prompt)).await;
        One {
            request: record.ids.request_id(),
            ttft: micros(record.ttft().expect("a token came")),
            itl: record.itl().map(micros),
        }
    }

    /// One request as it is sent where one follows the other: without a rehearsal.
    #[allow(dead_code, reason = "not every benchmark asks so")]
    pub(crate) async fn record(&self) -> RequestRecord {
        let (record, prompt) = self.due();
        self.send(Call::new(record, prompt)).await
    }

    /// The clock of its records.
    #[allow(dead_code, reason = "not every benchmark asks for it")]
    pub(crate) const fn anchor(&self) -> TimeAnchor {
        self.anchor
    }

    fn due(&self) -> (RequestRecord, Prompt) {
        let now = self.anchor.now();
        let ids = TraceIds {
            trace: rand::random(),
            span: rand::random(),
        };
        let mut record = RequestRecord::due(0, Arc::clone(&self.stream), ids, now);
        record.timeline.slot_free = Some(now);
        let prompt = Prompt {
            text: "one two three four".to_owned(),
            input_tokens: Some(5),
            output_tokens: Some(TOKENS),
            ..Prompt::default()
        };
        (record, prompt)
    }

    async fn send(&self, call: Call) -> RequestRecord {
        let record = self.client.send(call, &Cancel::default()).await;
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        *record
    }
}
