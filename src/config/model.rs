//! The configuration as the program uses it: checked, typed, complete.
//!
//! Values of these types are made by the reader (from files, environment, flags) or built in
//! code by `demo` and `bench`. Nothing here can be half set: what the operator left out holds
//! its default.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{BaseUrl, GpuConfig, OtlpConfig, PhaseConfig, PodInfoConfig, WorkloadConfig};
use crate::measurement::{Api, ConnectionPolicy, Slo, StallRule};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Seed of arrivals and prompts; drawn, printed and recorded if absent.
    pub seed: Option<u64>,
    /// How long in-flight requests may go on at a stop.
    pub drain: Duration,
    /// The services under test, at least one.
    pub targets: Vec<TargetConfig>,
    /// The probes, at least one.
    pub probes: Vec<ProbeConfig>,
    /// What keeps the canary harmless.
    pub governor: GovernorConfig,
    /// Where results go.
    pub export: ExportConfig,
}

/// One service under test.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetConfig {
    /// Unique name; a label value.
    pub name: String,
    /// Where it listens: at least one address, each an endpoint.
    pub urls: Vec<BaseUrl>,
    /// Which of several addresses an arrival goes to.
    pub balance: Balance,
    /// How the addresses are reached.
    pub network: NetworkConfig,
    /// Protocol.
    pub api: Api,
    /// What requests of that protocol look like.
    pub request: RequestConfig,
    /// Counts tokens where the server does not.
    pub tokenizer: Option<TokenizerConfig>,
    /// Model to ask for; absent: the only one in `/v1/models`.
    pub model: Option<String>,
    /// Bearer token.
    pub api_key: Option<Secret>,
    /// Further request headers.
    pub headers: Vec<(String, Secret)>,
    /// Where its metrics page is.
    pub server_metrics: ServerMetrics,
    /// Interval of reading that page.
    pub server_metrics_every: Duration,
    /// Its GPUs, if they are read.
    pub gpu: Option<GpuConfig>,
    /// Where its host is read, if it is.
    pub node: Option<NodeSource>,
    /// Interval of reading that.
    pub node_every: Duration,
    /// Where its pod is described, if it is in one that is.
    pub pod_info: Option<PodInfoConfig>,
    /// What a start of the server may take.
    pub start: StartConfig,
}

/// What a start of a server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartConfig {
    /// What fails as the requests of a start do counts for nobody for this long.
    pub grace: Duration,
    /// So many requests after a start count for nobody.
    pub warm_up: u32,
}

impl StartConfig {
    /// All requests count, from the first on: what a benchmark wants.
    pub const NONE: Self = Self {
        grace: Duration::ZERO,
        warm_up: 0,
    };
}

impl Default for StartConfig {
    /// Loading a large model takes minutes.
    fn default() -> Self {
        Self {
            grace: Duration::from_mins(10),
            warm_up: 5,
        }
    }
}

/// Which of several addresses an arrival goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any, each with the same chance.
    Random,
    /// The one with the fewest of our requests in flight; the first of several.
    LeastInFlight,
}

/// How an address is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkConfig {
    /// Version of HTTP.
    pub http: HttpVersion,
    /// What is trusted, and who we are (`https` only).
    pub tls: TlsConfig,
    /// A proxy that is asked to `CONNECT`.
    pub proxy: Option<ProxyConfig>,
    /// Which addresses of a host name are tried.
    pub family: AddressFamily,
    /// A pooled connection older than this is not used again, so that names are resolved anew.
    pub reuse_for: Option<Duration>,
}

/// Version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, without asking (prior knowledge).
    Http2,
    /// What the server picks in the TLS handshake (ALPN); HTTP/1.1 without TLS.
    Auto,
}

/// TLS of one target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsConfig {
    /// File of PEM certificates that are trusted instead of the system's.
    pub ca: Option<PathBuf>,
    /// File of our own PEM certificate chain.
    pub cert: Option<PathBuf>,
    /// File of its PEM private key.
    pub key: Option<PathBuf>,
    /// Name the server must prove, and that it is asked for, instead of the URL's host.
    pub server_name: Option<String>,
}

/// A forward proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Where it listens; `http` only.
    pub url: BaseUrl,
    /// Value of `proxy-authorization`.
    pub authorization: Option<Secret>,
}

/// Which addresses of a host name are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressFamily {
    /// All, in the resolver's order, one after the other.
    #[default]
    Any,
    /// Version 4 only.
    Ipv4,
    /// Version 6 only.
    Ipv6,
}

impl AddressFamily {
    /// Its name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
        }
    }
}

/// What requests of a target's protocol look like.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestConfig {
    /// Path below the address, instead of the protocol's own.
    pub path: Option<String>,
    /// Whether a stream is asked for usage (`stream_options`).
    pub usage: bool,
    /// How the protocol of `OpenAI` chat names the length.
    pub length: LengthField,
    /// Whether `min_tokens` and `ignore_eos` are sent, so that the answer has the length asked
    /// for.
    pub exact_length: bool,
    /// Further fields of the body, laid over it.
    pub extra: serde_json::Map<String, serde_json::Value>,
    /// The body (`raw`), or the template that makes it (`template`).
    pub body: Option<String>,
    /// JSON path to the text of the answer (`raw` and `template`).
    pub text: Option<String>,
}

/// How the length of an answer is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LengthField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

impl Default for RequestConfig {
    fn default() -> Self {
        Self {
            path: None,
            usage: true,
            length: LengthField::MaxTokens,
            exact_length: true,
            extra: serde_json::Map::new(),
            body: None,
            text: None,
        }
    }
}

/// A local tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenizerConfig {
    /// A `tokenizer.json`.
    Json(PathBuf),
    /// A file of tiktoken ranks, as in `o200k_base.tiktoken`.
    Tiktoken(PathBuf),
    /// No file: words and punctuation are counted.
    Words,
}

/// Where a target's metrics page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerMetrics {
    /// `/metrics` below the target's URL.
    Auto,
    /// Not read.
    Off,
    /// At this URL.
    Url(String),
}

/// Where the state of a target's host comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSource {
    /// The page of a node exporter, at this URL.
    Page(String),
    /// It is the machine that we run on, as in one pod with the server.
    This,
}

/// A workload on a schedule against one or more targets.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeConfig {
    /// Unique name; a label value.
    pub name: String,
    /// Names of its targets, at least one.
    pub targets: Vec<String>,
    /// Whether an event stream is asked for.
    pub streaming: bool,
    /// What an arrival does that finds the in-flight cap full.
    pub when_full: WhenFull,
    /// Which connection a request may use.
    pub connection: ConnectionPolicy,
    /// When requests are due: one phase after the other, at least one.
    pub phases: Vec<PhaseConfig>,
    /// What is sent.
    pub workload: WorkloadConfig,
    /// When a request is given up.
    pub limits: Limits,
    /// When a chunk gap is a stall.
    pub stall: StallRule,
    /// What is wanted of its requests.
    pub slo: Slo,
}

impl ProbeConfig {
    /// Whether what is measured is due only when a slot is free.
    #[must_use]
    pub fn is_closed_loop(&self) -> bool {
        let mut measured = self.phases.iter().filter(|phase| phase.kind.is_measured());
        measured.any(|phase| phase.arrivals.is_closed_loop())
    }

    /// Mean arrivals per second at one target over the first day; `None` where the server
    /// decides.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        const DAY: Duration = Duration::from_hours(24);
        let (mut left, mut sum) = (DAY, 0.0);
        for phase in &self.phases {
            sum += phase.expected(left)?;
            left = left.saturating_sub(phase.bounds.duration.unwrap_or_default());
        }
        Some(sum / DAY.as_secs_f64())
    }
}

/// What an arrival does that finds the in-flight cap full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is recorded as refused, reason `in_flight`.
    Refuse,
    /// It waits, in order.
    Wait,
}

/// When a request is given up. All run from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// DNS, TCP and TLS together.
    pub connect: Duration,
    /// Until the first token.
    pub first_token: Option<Duration>,
    /// Between one token-bearing chunk and the next.
    pub gap: Option<Duration>,
    /// Until the end.
    pub total: Duration,
}

/// What keeps the canary harmless. `None` is no limit (`bench` only).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GovernorConfig {
    /// Requests per UTC day, over all targets.
    pub requests_per_day: Option<u64>,
    /// Input and output tokens per UTC day, over all targets.
    pub tokens_per_day: Option<u64>,
    /// Requests in flight per target, over all its probes.
    pub in_flight: u32,
}

/// Where results go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportConfig {
    /// Page, API and `/metrics`.
    pub http: Option<HttpConfig>,
    /// Spans, metrics and logs over OTLP.
    pub otlp: Option<OtlpConfig>,
    /// Records as JSON lines.
    pub files: Option<FilesConfig>,
}

/// Page, API and `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
}

/// Records as JSON lines, in files that are rotated by size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesConfig {
    /// Directory; made if absent.
    pub dir: PathBuf,
    /// A file is closed at this many bytes.
    pub max_size: u64,
    /// Closed files kept.
    pub keep: u32,
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Limits {
    /// The limits of a probe that sets none.
    pub const PROBE: Self = Self {
        connect: Duration::from_secs(5),
        first_token: Some(Duration::from_secs(10)),
        gap: Some(Duration::from_secs(15)),
        total: Duration::from_mins(1),
    };
}

/// The stall rule of a probe that sets none.
pub const DEFAULT_STALL: StallRule = StallRule {
    factor: 10.0,
    floor: Duration::from_millis(250),
};
