//! The span exporter: batches from the queue, tries, waits, and the account of each span.
//!
//! One batch is under way at a time. While it is tried again the queue fills, and what it
//! cannot take is dropped and counted by whoever offers. At the end of the input a batch that
//! waits for its next try gets it at once, and the rest is sent, until the deadline; what is
//! left then counts as failed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::header::{HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    Protocol, RetryPolicy, SpanExporter as Client, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::hook::Hook;
use super::retry::Backoff;
use super::to_span;
use crate::clock::TimeAnchor;
use crate::config::OtlpConfig;
use crate::export::feed::{Batching, Fate, Feed, Paused};
use crate::export::{Exporter, StallRules};
use crate::measurement::Observed;
use crate::telemetry::ExportCounters;
use crate::transport::fetch::{Fetch, FetchError, FetchTimeouts, USER_AGENT};

const BATCHING: Batching = Batching {
    // The usual size of an OTLP batch; about 1 MB at most.
    size: 512,
    linger: Duration::from_secs(1),
};

/// One try, from connecting to the end of the answer: the default of OTLP exporters.
const TRY: FetchTimeouts = FetchTimeouts {
    connect: Duration::from_secs(5),
    total: Duration::from_secs(10),
};

/// What the exporter is made of.
#[derive(Debug, Clone)]
pub struct OtlpSetup<'a> {
    /// Where spans go; the URL is used as it stands.
    pub config: &'a OtlpConfig,
    /// Turns instants into wall time.
    pub anchor: TimeAnchor,
    /// When a chunk gap is a stall, per stream.
    pub stalls: StallRules,
    /// What became of the spans.
    pub counters: ExportCounters,
    /// `service.instance.id`, unique to this run.
    pub instance: String,
}

/// Why the exporter cannot be made from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The HTTP client cannot be built.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A header that HTTP cannot carry; its value is not shown, it may be a secret.
    #[error("header `{0}` cannot be sent; wanted a name and a value of visible ASCII characters")]
    Header(String),
    /// The OTLP client refuses the configuration.
    #[error(transparent)]
    Client(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends each record as a span.
#[derive(Debug)]
pub struct OtlpSpans {
    client: Client,
    hook: Arc<Hook>,
    anchor: TimeAnchor,
    stalls: StallRules,
    counters: ExportCounters,
    pace: Pace,
    /// Whether the last batch was given up or is being tried again.
    failing: bool,
}

/// The times of the exporter, which tests shorten.
#[derive(Debug, Clone, Copy)]
struct Pace {
    batching: Batching,
    timeouts: FetchTimeouts,
    backoff: Backoff,
}

impl Pace {
    const SPANS: Self = Self {
        batching: BATCHING,
        timeouts: TRY,
        backoff: Backoff::SPANS,
    };
}

impl OtlpSpans {
    /// An exporter to the receiver in `setup`. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// If the URL or a header cannot be used.
    pub fn new(setup: OtlpSetup<'_>) -> Result<Self, OtlpError> {
        Self::paced(setup, Pace::SPANS)
    }

    fn paced(setup: OtlpSetup<'_>, pace: Pace) -> Result<Self, OtlpError> {
        let fetch = Fetch::new(setup.anchor, pace.timeouts)?;
        let hook = Arc::new(Hook::new(fetch, pace.timeouts.total));
        let mut client = Client::builder()
            .with_http()
            .with_endpoint(&setup.config.traces_url)
            .with_protocol(Protocol::HttpBinary)
            .with_headers(headers(setup.config)?)
            .with_shared_http_client(hook.clone())
            // Its own retries know neither our deadline nor our account.
            .with_retry_policy(RetryPolicy::disabled())
            .with_timeout(pace.timeouts.total)
            .build()?;
        client.set_resource(&resource(setup.instance));
        Ok(Self {
            client,
            hook,
            anchor: setup.anchor,
            stalls: setup.stalls,
            counters: setup.counters,
            pace,
            failing: false,
        })
    }

    async fn send_all(mut self, mut feed: Feed) {
        let deadline = feed.deadline();
        while let Some(batch) = feed.batch(self.pace.batching).await {
            let fate = deadline
                .run_until_cancelled(self.send_batch(&batch, &feed))
                .await;
            match fate {
                Some(fate) => feed.settle(fate),
                None => break,
            }
        }
        feed.close().await;
        tracing::debug!(requests = self.hook.requests(), "span export ended");
    }

    /// Tries a batch until it is taken, hopeless, or tried often enough.
    async fn send_batch(&mut self, batch: &[Arc<Observed>], feed: &Feed) -> Fate {
        let count = batch.len() as u64;
        let spans = self.spans(batch);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.send_once(spans.clone()).await {
                Answer::Taken { rejected, message } => {
                    return self.taken(count, rejected, &message);
                }
                Answer::TryAgain { after, reason } => match self.pace.backoff.wait(tries, after) {
                    Some(wait) => {
                        self.trouble(&reason);
                        if feed.pause(wait).await == Paused::InputEnded {
                            // Long waits would outlast what time is left.
                            tries = 0;
                        }
                    }
                    None => return self.given_up(count, &reason),
                },
                Answer::Hopeless { reason } => return self.given_up(count, &reason),
            }
        }
    }

    fn spans(&self, batch: &[Arc<Observed>]) -> Vec<SpanData> {
        let wall = self.anchor.wall();
        batch
            .iter()
            .map(|observed| {
                let stall = self.stalls.of(&observed.record.stream);
                to_span(observed, &wall, stall)
            })
            .collect()
    }

    async fn send_once(&self, spans: Vec<SpanData>) -> Answer {
        let result = self.client.export(spans).await;
        match (self.hook.take_answer(), result) {
            (Some(answer), _) => answer,
            // The crate refused before it sent anything (a batch over its size limit).
            (None, Err(error)) => Answer::Hopeless {
                reason: error.to_string(),
            },
            (None, Ok(())) => Answer::Hopeless {
                reason: "the OTLP client sent nothing".to_owned(),
            },
        }
    }

    fn taken(&mut self, count: u64, rejected: u64, message: &str) -> Fate {
        if self.failing {
            tracing::info!("the OTLP receiver takes spans again");
            self.failing = false;
        }
        let rejected = rejected.min(count);
        if rejected > 0 {
            tracing::debug!(rejected, message, "the OTLP receiver rejected spans");
        }
        Fate {
            sent: count - rejected,
            rejected,
            failed: 0,
        }
    }

    fn given_up(&mut self, count: u64, reason: &str) -> Fate {
        self.trouble(reason);
        tracing::debug!(spans = count, reason, "spans were given up");
        Fate {
            failed: count,
            ..Fate::default()
        }
    }

    /// Logs the first of a row of troubles.
    fn trouble(&mut self, reason: &str) {
        if !self.failing {
            tracing::warn!(reason, "the OTLP receiver does not take spans");
            self.failing = true;
        }
    }
}

impl Exporter for OtlpSpans {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn run(
        self: Box<Self>,
        input: mpsc::Receiver<Arc<Observed>>,
        deadline: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let feed = Feed::new(input, self.counters.clone(), deadline);
        Box::pin(self.send_all(feed))
    }
}

fn resource(instance: String) -> Resource {
    Resource::builder_empty()
        .with_service_name("tokencanary")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", instance))
        .build()
}

/// The name under which the OTLP crate keeps its own user agent, which ours replaces.
const AGENT_HEADER: &str = "User-Agent";

/// The headers of the configuration. The OTLP crate would leave out a bad one without a word.
fn headers(config: &OtlpConfig) -> Result<HashMap<String, String>, OtlpError> {
    let mut headers = HashMap::from([(AGENT_HEADER.to_owned(), USER_AGENT.to_owned())]);
    for (name, value) in &config.headers {
        let sendable = HeaderName::try_from(name.as_str()).is_ok()
            && HeaderValue::try_from(value.reveal()).is_ok();
        if !sendable {
            return Err(OtlpError::Header(name.clone()));
        }
        let name = if name.eq_ignore_ascii_case(AGENT_HEADER) {
            AGENT_HEADER
        } else {
            name
        };
        headers.insert(name.to_owned(), value.reveal().to_owned());
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
