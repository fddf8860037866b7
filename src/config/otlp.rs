//! Where OTLP goes, signal by signal, and what is sent.

use std::time::Duration;

use super::{Secret, TlsConfig};

/// Spans, metrics and logs over OTLP. A signal without a receiver is not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpConfig {
    /// Takes spans.
    pub traces: Option<OtlpReceiver>,
    /// Takes metrics.
    pub metrics: Option<OtlpReceiver>,
    /// Takes logs.
    pub logs: Option<OtlpReceiver>,
    /// Spans, and as many log records, held while their receiver does not take them.
    pub queue: usize,
    /// Time between two exports of metrics.
    pub every: Duration,
    /// Since when counters and histograms count.
    pub temporality: Temporality,
    /// The buckets of histograms.
    pub histograms: HistogramForm,
    /// The names of what the `GenAI` conventions define.
    pub conventions: Conventions,
    /// Which requests are traced.
    pub sampling: TraceSampling,
    /// What the resource says beside our version and instance; each name once.
    pub resource: Vec<(String, String)>,
}

/// The receiver of one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpReceiver {
    /// The whole URL; of gRPC scheme, host and port.
    pub url: String,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// Further request headers.
    pub headers: Vec<(String, Secret)>,
    /// Whether messages are compressed.
    pub compression: Compression,
    /// One try, from connecting to the end of the answer.
    pub timeout: Duration,
    /// Trust and identity.
    pub tls: TlsConfig,
}

/// How a receiver is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtlpProtocol {
    /// Protobuf posted over HTTP/1.1.
    #[default]
    HttpProtobuf,
    /// JSON posted over HTTP/1.1.
    HttpJson,
    /// gRPC over HTTP/2.
    Grpc,
}

/// Whether messages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// They are not.
    #[default]
    None,
    /// With gzip.
    Gzip,
}

/// Since when counters and histograms count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporality {
    /// Since the start.
    #[default]
    Cumulative,
    /// Since the last export that was taken.
    Delta,
    /// As [`Self::Delta`], but for what is only observed, as our own health.
    LowMemory,
}

/// The buckets of histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HistogramForm {
    /// Exponential ones of scale 5.
    #[default]
    Exponential,
    /// The bounds that Prometheus gets as classic ones.
    Explicit,
}

/// The names of what the `GenAI` conventions define.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conventions {
    /// Those of the conventions' own repository.
    #[default]
    Current,
    /// Those of the core repository, up to 1.41.
    Legacy,
}

/// Which requests are traced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSampling {
    /// The share of requests that are, as decided before they are sent.
    pub ratio: f64,
    /// Which others have a span of ours all the same.
    pub tail: TailRules,
}

/// Which requests outside the ratio have a span of ours all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailRules {
    /// Those that count as failures.
    pub failures: bool,
    /// Those with a longer TTFT.
    pub ttft: Option<Duration>,
    /// Those with a longer mean time between tokens.
    pub itl: Option<Duration>,
    /// Those with a longer response time.
    pub response_time: Option<Duration>,
}

impl Default for TraceSampling {
    fn default() -> Self {
        Self {
            ratio: 1.0,
            tail: TailRules {
                failures: true,
                ttft: None,
                itl: None,
                response_time: None,
            },
        }
    }
}

impl TraceSampling {
    /// Whether the request with this trace id is traced, by the ratio alone. Whoever knows the id
    /// comes to the same decision.
    #[must_use]
    pub fn samples(&self, trace: u128) -> bool {
        /// 2^53: as many values as a double tells apart.
        const STEPS: f64 = 9_007_199_254_740_992.0;
        if self.ratio >= 1.0 {
            return true;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "the low half is meant, and 53 bits of it are exact"
        )]
        let value = (trace as u64 >> 11) as f64;
        value < self.ratio * STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ratio: f64) -> TraceSampling {
        TraceSampling {
            ratio,
            ..TraceSampling::default()
        }
    }

    #[test]
    fn the_share_is_that_of_the_ids() {
        // Ids that are spread evenly: every 2^52-th of 2^64.
        let ids = (0..4096_u128).map(|step| (7 << 64) | (step << 52));
        for (ratio, traced) in [
            (0.0, 0),
            (0.25, 1024),
            (0.5, 2048),
            (0.999_9, 4096),
            (1.0, 4096),
        ] {
            let sampling = at(ratio);
            let count = ids.clone().filter(|id| sampling.samples(*id)).count();
            assert_eq!(count, traced, "{ratio}");
        }
    }

    #[test]
    fn a_larger_ratio_traces_what_a_smaller_one_did() {
        let ids = [
            3,
            u128::MAX,
            1 << 63,
            0x9e37_79b9_7f4a_7c15,
            0x1234_5678_9abc_def0,
        ];
        for id in ids {
            let mut before = false;
            for percent in 0..=100 {
                let now = at(f64::from(percent) / 100.0).samples(id);
                assert!(now || !before, "{id:x} at {percent} %");
                before = now;
            }
            assert!(before, "all at 100 %");
        }
    }
}
