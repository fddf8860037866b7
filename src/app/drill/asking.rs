//! Asks Prometheus, Alertmanager and the simulated server over HTTP.

use std::time::Duration;

use anyhow::{Context, bail};
use hyper::HeaderMap;
use hyper::body::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::clock::TimeAnchor;
use crate::transport::fetch::{Fetch, FetchTimeouts, Post};

const TIMEOUTS: FetchTimeouts = FetchTimeouts {
    connect: Duration::from_secs(2),
    total: Duration::from_secs(5),
};
/// Longest answer.
const MOST_BYTES: usize = 4 << 20;

/// What asks.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    fetch: Fetch,
}

/// What each answer of Prometheus is wrapped in.
#[derive(Debug, Deserialize)]
struct Answer<T> {
    data: T,
}

#[derive(Debug, Deserialize)]
struct Alertmanagers {
    #[serde(rename = "activeAlertmanagers")]
    active: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    result: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Sample {
    /// Seconds since the Unix epoch, and the value as text.
    value: (f64, String),
}

impl Asking {
    pub(super) fn new(anchor: TimeAnchor) -> anyhow::Result<Self> {
        Ok(Self {
            fetch: Fetch::new(anchor, TIMEOUTS)?,
        })
    }

    /// Whether the program at `url` says that it is ready.
    pub(super) async fn is_ready(&self, url: &str) -> bool {
        let answer = self.get(&format!("{url}/-/ready")).await;
        answer.is_ok()
    }

    /// Alertmanagers that the Prometheus at `url` sends to.
    pub(super) async fn alertmanagers(&self, url: &str) -> anyhow::Result<usize> {
        let path = "/api/v1/alertmanagers";
        let answer: Answer<Alertmanagers> = self.json(&format!("{url}{path}")).await?;
        Ok(answer.data.active.len())
    }

    /// The values of all series that `query` gives now.
    pub(super) async fn values(&self, url: &str, query: &str) -> anyhow::Result<Vec<f64>> {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer: Answer<Vector> = self
            .json(&format!("{url}/api/v1/query?query={query}"))
            .await?;
        let values = answer.data.result.iter().map(|sample| {
            let text = &sample.value.1;
            text.parse()
                .with_context(|| format!("`{text}` is no number"))
        });
        values.collect()
    }

    /// Begins a fault of the simulated server at `url`.
    pub(super) async fn fault(&self, url: &str, fault: &serde_json::Value) -> anyhow::Result<()> {
        let post = Post {
            url: &format!("{url}/sim/faults"),
            headers: HeaderMap::new(),
            body: Bytes::from(fault.to_string()),
            timeout: TIMEOUTS.total,
        };
        let fetched = self.fetch.post(post).await?;
        if !fetched.status.is_success() {
            bail!(
                "the simulated server refused a fault: {}",
                String::from_utf8_lossy(&fetched.body)
            );
        }
        Ok(())
    }

    async fn json<T: DeserializeOwned>(&self, url: &str) -> anyhow::Result<T> {
        let body = self.get(url).await?;
        serde_json::from_slice(&body).with_context(|| format!("`{url}` was not understood"))
    }

    async fn get(&self, url: &str) -> anyhow::Result<Bytes> {
        let fetched = self.fetch.get(url, &HeaderMap::new(), MOST_BYTES).await?;
        if !fetched.status.is_success() {
            bail!("`{url}` answered {}", fetched.status);
        }
        Ok(fetched.body)
    }
}
