//! The span exporter: batches from the queue, and the account of each span.
//!
//! One batch is under way at a time. While it is tried again the queue fills, and what it
//! cannot take is dropped and counted by whoever offers. At the end of the input a batch that
//! waits for its next try gets it at once, and the rest is sent, until the deadline; what is
//! left then counts as failed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use opentelemetry_sdk::trace::SpanData;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::courier::{Courier, Parcel};
use super::encode::SpanEncoder;
use super::sender::Sender;
use super::signal::Signal;
use super::span::{SpanRules, to_span};
use super::{OtlpError, OtlpSetup};
use crate::clock::TimeAnchor;
use crate::config::OtlpReceiver;
use crate::export::Exporter;
use crate::export::feed::{Batching, Fate, Feed};
use crate::measurement::Observed;

/// The usual size of an OTLP batch; about 1 MB at most.
pub(super) const BATCHING: Batching = Batching {
    size: 512,
    linger: Duration::from_secs(1),
};

/// Sends each record as a span.
#[derive(Debug)]
pub struct OtlpTraces {
    pub(super) courier: Courier,
    encoder: SpanEncoder,
    anchor: TimeAnchor,
    rules: SpanRules,
    pub(super) batching: Batching,
}

impl OtlpTraces {
    /// An exporter to `receiver`. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// If the URL, a header or a certificate cannot be used.
    pub fn new(
        receiver: &OtlpReceiver,
        setup: &OtlpSetup<'_>,
        rules: SpanRules,
    ) -> Result<Self, OtlpError> {
        let sender = Sender::new(Signal::Traces, receiver, setup.anchor)?;
        let counters = setup.own.export(Signal::Traces.exporter());
        Ok(Self {
            encoder: SpanEncoder::new(sender.protocol(), &setup.resource())?,
            courier: Courier {
                told: setup.told(),
                ..Courier::new(Signal::Traces, sender, counters)
            },
            anchor: setup.anchor,
            rules,
            batching: BATCHING,
        })
    }

    async fn send_all(mut self, mut feed: Feed) {
        let deadline = feed.deadline();
        while let Some(batch) = feed.batch(self.batching).await {
            let fate = deadline
                .run_until_cancelled(self.send_batch(&batch, &feed))
                .await;
            match fate {
                Some(fate) => feed.settle(fate),
                None => break,
            }
        }
        feed.close().await;
    }

    async fn send_batch(&mut self, batch: &[Arc<Observed>], feed: &Feed) -> Fate {
        let items = batch.len() as u64;
        match self.encoder.encode(self.spans(batch)).await {
            Ok(message) => {
                let parcel = Parcel {
                    message,
                    items,
                    until: None,
                };
                self.courier.deliver(parcel, &|| feed.is_ended()).await
            }
            Err(trouble) => self.courier.given_up(items, &trouble),
        }
    }

    fn spans(&self, batch: &[Arc<Observed>]) -> Vec<SpanData> {
        let wall = self.anchor.wall();
        batch
            .iter()
            .map(|observed| to_span(observed, &wall, &self.rules))
            .collect()
    }
}

impl Exporter for OtlpTraces {
    fn name(&self) -> &'static str {
        Signal::Traces.exporter()
    }

    fn run(
        self: Box<Self>,
        input: mpsc::Receiver<Arc<Observed>>,
        deadline: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let feed = Feed::new(input, self.courier.counters.clone(), deadline);
        Box::pin(self.send_all(feed))
    }
}

#[cfg(test)]
mod tests;
