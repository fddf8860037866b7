//! Configurations and rules for the tests of this room.

use std::time::Duration;

use super::retry::Backoff;
use super::span::SpanRules;
use crate::config::{
    Compression, Conventions, HistogramForm, OtlpConfig, OtlpProtocol, OtlpReceiver, Secret,
    Temporality, TlsConfig, TraceSampling,
};
use crate::export::StallRules;
use crate::export::fixture::STALL;

/// Quick enough for a test, slow enough for a busy machine.
pub(super) const QUICK: Backoff = Backoff {
    first: Duration::from_millis(5),
    longest: Duration::from_millis(20),
    tries: 4,
};

/// Protobuf over HTTP to `url`, 2 s a try.
pub(super) fn receiver(url: &str) -> OtlpReceiver {
    OtlpReceiver {
        url: url.to_owned(),
        protocol: OtlpProtocol::HttpProtobuf,
        headers: vec![("x-tenant".to_owned(), Secret::new("s3cret"))],
        compression: Compression::None,
        timeout: Duration::from_secs(2),
        tls: TlsConfig::default(),
    }
}

/// The defaults, with a resource of two attributes and no receivers.
pub(super) fn config() -> OtlpConfig {
    OtlpConfig {
        traces: None,
        metrics: None,
        logs: None,
        queue: 64,
        every: Duration::from_secs(10),
        temporality: Temporality::Cumulative,
        histograms: HistogramForm::Exponential,
        conventions: Conventions::Current,
        sampling: TraceSampling::default(),
        resource: vec![
            ("service.name".to_owned(), "tokencanary".to_owned()),
            ("host.name".to_owned(), "gpu-3".to_owned()),
        ],
    }
}

/// Everything traced, current names.
pub(super) fn rules() -> SpanRules {
    SpanRules {
        stalls: StallRules::new(vec![STALL]),
        conventions: Conventions::Current,
        sampling: TraceSampling::default(),
    }
}
