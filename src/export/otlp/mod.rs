//! OTLP: spans, metrics and logs, over HTTP with protobuf or JSON, or over gRPC.
//!
//! Each signal makes its messages; a `courier` brings them to the receiver and keeps the
//! account, the same for all three. Queues, batches, tries and losses are ours, since those of
//! the OTLP crate would lose things without telling; it encodes spans.

mod answer;
mod attributes;
mod collect;
#[cfg(test)]
mod collect_tests;
mod courier;
mod encode;
mod event;
#[cfg(test)]
mod fixture;
mod grpc;
mod logs;
mod metrics;
mod points;
mod reason;
mod retry;
mod sender;
mod signal;
mod span;
mod traces;
#[cfg(test)]
mod wire_tests;

pub use event::{Event, Events};
pub use logs::OtlpLogs;
pub use metrics::{MetricSource, OtlpMetrics};
pub use span::{SpanRules, to_span};
pub use traces::OtlpTraces;

use crate::clock::TimeAnchor;
use crate::config::OtlpConfig;
use crate::telemetry::SelfMetrics;
use crate::transport::EndpointError;
use crate::transport::fetch::FetchError;

/// What the exporters are made of.
#[derive(Debug, Clone, Copy)]
pub struct OtlpSetup<'a> {
    /// Where signals go.
    pub config: &'a OtlpConfig,
    /// Turns instants into wall time.
    pub anchor: TimeAnchor,
    /// Counts what becomes of everything.
    pub own: &'a SelfMetrics,
    /// `service.instance.id`, unique to this run.
    pub instance: &'a str,
    /// Who is told when a receiver does not take things any more.
    pub events: Option<&'a Events>,
}

impl OtlpSetup<'_> {
    /// Who is told of changes of state; that must not keep the exporter of logs going.
    fn told(&self) -> Option<(Events, TimeAnchor)> {
        self.events.map(|events| (events.weak(), self.anchor))
    }

    /// What all messages say of where they come from.
    fn resource(&self) -> Vec<(String, String)> {
        let ours = [
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", self.instance),
        ];
        let given = &self.config.resource;
        let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
        let ours = ours.into_iter().filter(|(name, _)| !is_given(name));
        given
            .iter()
            .cloned()
            .chain(ours.map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect()
    }
}

/// Why an exporter cannot be made from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The HTTP client cannot be built.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file of certificates or keys is not usable, or nobody is trusted.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The URL is none.
    #[error("the URL of the OTLP receiver cannot be used: {0}")]
    Url(String),
    /// A header that HTTP cannot carry; its value is not shown, it may be a secret.
    #[error("header `{0}` cannot be sent; wanted a name and a value of visible ASCII characters")]
    Header(String),
    /// The OTLP crate refuses the configuration.
    #[error(transparent)]
    Client(#[from] opentelemetry_otlp::ExporterBuildError),
}
