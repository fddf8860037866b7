//! What the operator wrote: read from files and environment, checked, explained.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `config` | `Config` | read files and environment, check, explain | bind, connect, open data sets |

mod check;
mod diagnostic;
mod given;
mod keys;
mod layers;
mod load;
mod model;
mod reader;
mod secret;
mod url;
mod yaml;

pub use diagnostic::{Diagnostic, Diagnostics, Origin, Problem};
pub use load::{FlagOverride, Format, environment, from_text, load};
pub use model::{
    Arrivals, Config, DEFAULT_STALL, ExportConfig, FilesConfig, GovernorConfig, HttpConfig, Limits,
    OtlpConfig, ProbeConfig, Secret, ServerMetrics, TargetConfig, WhenFull, WorkloadConfig,
};
pub use url::{BaseUrl, UrlError};

#[cfg(test)]
mod tests;
