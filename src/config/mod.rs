//! What the operator wrote: read from files and environment, checked, explained.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `config` | `Config` | read files and environment, check, explain | bind, connect, open data sets |

mod arrivals;
mod check;
mod diagnostic;
mod given;
mod gpu;
mod host;
mod keys;
mod layers;
mod lengths;
mod load;
mod model;
mod otel;
mod otlp;
mod pod;
mod prompt_file;
mod reader;
mod schema;
mod secret;
mod url;
mod workload;
mod yaml;

pub use arrivals::{
    Arrivals, Bounds, Cancellation, Gaps, PhaseConfig, Ramp, RampShape, Ramps, RatePoint, Replay,
};
pub use check::wrong_path;
pub use diagnostic::{Diagnostic, Diagnostics, Origin, Problem};
pub use gpu::{GpuConfig, GpuSelect, GpuSource};
pub use lengths::{Lengths, MOST_LENGTH, SizePair, SizePairs};
pub use load::{FlagOverride, Format, environment, from_text, from_text_in, load, place};
pub use model::{
    AddressFamily, Balance, Config, DEFAULT_STALL, ExportConfig, FilesConfig, GovernorConfig,
    HttpConfig, HttpVersion, LengthField, Limits, NetworkConfig, NodeSource, ProbeConfig,
    ProxyConfig, RequestConfig, Secret, ServerMetrics, StartConfig, TargetConfig, TlsConfig,
    TokenizerConfig, WhenFull,
};
pub use otlp::{
    Compression, Conventions, HistogramForm, OtlpConfig, OtlpProtocol, OtlpReceiver, TailRules,
    Temporality, TraceSampling,
};
pub use pod::PodInfoConfig;
pub use prompt_file::{Pauses, PromptFile, Replies, Sampling};
pub use schema::schema;
pub use url::{BaseUrl, Scheme, UrlError};
pub use workload::{
    Audio, CacheModes, Counting, Images, KnownAnswers, PrefixPool, PromptSource, Sizes, Synthetic,
    SystemPrompt, TextStyle, WorkloadConfig,
};

#[cfg(test)]
mod tests;
