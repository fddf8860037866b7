//! Our own log: to stderr, without the chatter of the libraries that carry it.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Libraries whose own messages are kept at `warn`, unless the filter names them: a log of an
/// exporter must not feed itself.
const QUIET: [&str; 6] = [
    "hyper",
    "hyper_util",
    "reqwest",
    "h2",
    "opentelemetry",
    "opentelemetry_sdk",
];

/// Starts logging with `filter`, as `info` or `warn,tokencanary=debug`.
///
/// # Errors
///
/// A message for the operator if the filter cannot be read.
pub fn init_log(filter: &str) -> Result<(), String> {
    let mut env = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(filter)
        .map_err(|error| {
            format!("`--log {filter}` is no filter: {error}; wanted `warn` or `tokencanary=debug`")
        })?;
    for library in QUIET.iter().filter(|library| !filter.contains(*library)) {
        let directive = format!("{library}=warn").parse();
        env = env.add_directive(
            directive.map_err(|error| format!("bad filter for `{library}`: {error}"))?,
        );
    }
    tracing_subscriber::fmt()
        .with_env_filter(env)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init()
        .map_err(|error| format!("logging cannot be started: {error}"))
}
