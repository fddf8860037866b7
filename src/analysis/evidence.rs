//! What one span of time says of one stream, its server, the GPUs and the hosts.
//!
//! Numbers only, each in its base unit. What is not known is absent, never zero: a rule that
//! needs it then says nothing.

use crate::measurement::SloMetric;

/// A distribution of times, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Its mean.
    pub mean: f64,
    /// Its median.
    pub p50: f64,
    /// What 95 % are at or below.
    pub p95: f64,
}

/// A level over a span of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// Weighted by time.
    pub mean: f64,
    /// The highest that was seen.
    pub max: f64,
}

/// A number that is known up to an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The likeliest value.
    pub value: f64,
    /// How far off it may be, on either side.
    pub error: f64,
}

/// Everything that is known of one span of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// What our requests met.
    pub client: ClientSide,
    /// What the server says of itself.
    pub server: ServerSide,
    /// The GPUs that serve the target, all together.
    pub gpu: GpuSide,
    /// The machine that the server runs on.
    pub host: HostSide,
    /// Ourselves.
    pub own: OwnSide,
    /// Which program and model answered.
    pub build: Build,
}

/// What the requests of one stream met. Shares are of `requests`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientSide {
    /// Requests that count for or against the server.
    pub requests: u64,
    /// Of these, how many failed.
    pub failed: u64,
    /// Of the failed ones, how many ran into a time limit before the first token.
    pub silent: u64,
    /// Answers that came in one burst at their end.
    pub buffered: u64,
    /// Time to first token of good requests.
    pub ttft: Option<Spread>,
    /// Mean time between tokens of good requests.
    pub itl: Option<Spread>,
    /// Arrivals per second.
    pub arrivals: Option<f64>,
    /// Ends per second.
    pub ends: Option<f64>,
    /// Requests of ours in flight to the target, of all streams; absent where it has several
    /// addresses, since the server is one of them.
    pub in_flight: Option<f64>,
    /// Tokens of a request, input and output, on average.
    pub tokens: Option<f64>,
    /// Share of the input that the server took from its cache, by its own usage.
    pub cached: Option<f64>,
    /// Round trip time of the connections, seconds, by the kernel.
    pub rtt: Option<f64>,
    /// Segments sent again per request.
    pub retransmits: Option<f64>,
    /// Limits that the operator set, seconds.
    pub limits: Vec<(SloMetric, f64)>,
}

/// What the server says of itself, all its users together. In its times the mean stands in place
/// of the median: it is exact, while quantiles are as coarse as buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerSide {
    /// Requests it works on.
    pub running: Option<Gauge>,
    /// Requests that wait for a place.
    pub waiting: Option<Gauge>,
    /// Share of the KV cache in use, 0 to 1.
    pub kv_usage: Option<Gauge>,
    /// Tokens that fit in the KV cache.
    pub kv_tokens: Option<f64>,
    /// Sequences that lost their place, per second.
    pub preemptions: Option<f64>,
    /// Requests that ended, per second.
    pub finished: Option<f64>,
    /// Prompt tokens per second.
    pub prompt_tokens: Option<f64>,
    /// Produced tokens per second.
    pub output_tokens: Option<f64>,
    /// Share of the prompt tokens that came from the prefix cache.
    pub prefix_hits: Option<f64>,
    /// Time to first token, from its own arrival on.
    pub ttft: Option<Spread>,
    /// Time in the queue.
    pub queue: Option<Spread>,
    /// Time from the queue to the first token.
    pub prefill: Option<Spread>,
    /// Time between tokens.
    pub itl: Option<Spread>,
    /// Mean time to first token of ours less its own: network, gateway and proxy, seconds.
    pub outside: Option<Estimate>,
}

/// The GPUs of one target.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GpuSide {
    /// Share of time in which any kernel ran, on average, 0 to 1.
    pub busy: Option<f64>,
    /// How much busier the busiest is than the least busy: a share of time.
    pub busy_apart: Option<f64>,
    /// Share of memory in use of the fullest, 0 to 1.
    pub memory: Option<f64>,
    /// How much fuller the fullest is than the emptiest: a share of memory.
    pub memory_apart: Option<f64>,
    /// Clock of the slowest, hertz.
    pub clock: Option<f64>,
    /// Share of time in which the clocks of any were held down for heat, power brake or hardware.
    pub throttled: Option<f64>,
    /// An error that was not there before.
    pub xid: Option<u32>,
    /// Share of cycles in which memory moved data.
    pub memory_active: Option<f64>,
}

/// The machine of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostSide {
    /// Share of its processors in use, 0 to 1.
    pub cpu: Option<f64>,
    /// Share of time in which something waited for a processor, 0 to 1.
    pub pressure: Option<f64>,
    /// Share of the periods of the limit on its processors in which the server was held back.
    pub throttled: Option<f64>,
    /// Share of time in which something of the server waited for a processor.
    pub server_pressure: Option<f64>,
    /// Share of the memory given out that came from another memory node than the task ran on.
    pub off_node: Option<f64>,
}

/// Ourselves. Shares are of the stream's requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnSide {
    /// Requests whose own lag was too large for a verdict.
    pub lagged: Option<f64>,
    /// Own lag, seconds.
    pub lag: Option<Spread>,
    /// Share of time in which something of ours waited for a processor, 0 to 1.
    pub pressure: Option<f64>,
}

/// Which program and model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// Its version.
    pub version: Option<String>,
    /// The model, as the server calls it.
    pub model: Option<String>,
    /// What it says of its options: quantisation, data type, sizes.
    pub options: Option<String>,
}

impl Build {
    /// What is known of both and differs: what it is, before, now.
    #[must_use]
    pub fn changes<'b>(&'b self, before: &'b Self) -> Vec<(&'static str, &'b str, &'b str)> {
        [
            ("version", &before.version, &self.version),
            ("model", &before.model, &self.model),
            ("options", &before.options, &self.options),
        ]
        .into_iter()
        .filter_map(|(what, before, now)| Some((what, before.as_deref()?, now.as_deref()?)))
        .filter(|(_, before, now)| before != now)
        .collect()
    }
}

impl ClientSide {
    /// `part` as a share of the requests; `None` if there were none.
    #[must_use]
    pub fn share(&self, part: u64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts of one window")]
        (self.requests > 0).then(|| part as f64 / self.requests as f64)
    }
}
