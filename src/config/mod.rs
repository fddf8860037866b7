//! What the operator wrote: read from files and environment, checked, explained.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `config` | `Config` | read files and environment, check, explain | bind, connect, open data sets |

mod model;
mod url;

pub use model::{
    Arrivals, Config, DEFAULT_STALL, ExportConfig, FilesConfig, GovernorConfig, HttpConfig, Limits,
    OtlpConfig, ProbeConfig, Secret, ServerMetrics, TargetConfig, WhenFull, WorkloadConfig,
};
pub use url::{BaseUrl, UrlError};
