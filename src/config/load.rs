//! Loads a configuration: file, environment on top, flags on top of that.
//!
//! [`environment`] is the one place that reads the program's environment.

use std::collections::BTreeMap;
use std::path::Path;

use super::Config;
use super::check;
use super::diagnostic::{Diagnostic, Diagnostics, Origin, Problem};
use super::layers::{Layers, Sources};
use super::reader::{Node, Reader};
use super::secret::read_text;

/// Largest configuration file, bytes.
const LARGEST: u64 = 1024 * 1024;

/// The language of a configuration text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
}

/// One value set by a command line flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagOverride {
    /// Key, as in `governor.in_flight`; outside lists.
    pub path: String,
    /// Value, as it was typed.
    pub value: String,
    /// Name of the flag, for messages, as in `--in-flight`.
    pub flag: String,
}

/// The program's environment. Names and values that are not Unicode are taken with
/// replacement characters, so that a check refuses them.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| {
        let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
        (text(name), text(value))
    })
}

/// Reads the file at `path` (`.yaml`, `.yml` or `.toml`), with `env` and `flags` on top.
///
/// # Errors
///
/// Everything that is wrong, at once. A file that cannot be read or parsed ends the list.
pub fn load(
    path: &Path,
    env: impl Iterator<Item = (String, String)>,
    flags: &[FlagOverride],
) -> Result<Config, Diagnostics> {
    let file = path.display().to_string();
    let unreadable = |why: String| {
        Diagnostics::new(vec![Diagnostic {
            path: String::new(),
            origin: Origin::File {
                name: file.clone(),
                line: None,
            },
            problem: Problem::Unreadable,
            given: None,
            wanted: Some("a configuration file, `.yaml`, `.yml` or `.toml`".to_owned()),
            hint: Some(why),
        }])
    };
    let text = read_text(path, LARGEST).map_err(unreadable)?;
    let format =
        format_of(path).ok_or_else(|| unreadable("the extension tells the format".to_owned()))?;
    read(&text, (format, &file), (env.collect(), flags))
}

/// Where `key`, as `targets[0].tls.ca`, or the nearest section around it, was written in the file
/// at `path`; without a line if the file cannot be read any more.
#[must_use]
pub fn place(path: &Path, key: &str) -> Origin {
    let file = path.display().to_string();
    let place = || {
        let text = read_text(path, LARGEST).ok()?;
        let sources = Sources {
            text: text.strip_prefix('\u{feff}').unwrap_or(&text),
            format: format_of(path)?,
            file: &file,
            environment: &BTreeMap::new(),
            flags: &[],
        };
        Some(Layers::merge(&sources).ok()?.nearest(key))
    };
    place().unwrap_or_else(|| Origin::File {
        name: file.clone(),
        line: None,
    })
}

/// The language that the extension tells.
fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "yaml" | "yml" => Some(Format::Yaml),
        "toml" => Some(Format::Toml),
        _ => None,
    }
}

/// Reads `text` alone; `name` stands for the file in messages.
///
/// # Errors
///
/// Everything that is wrong, at once. A syntax error ends the list.
pub fn from_text(text: &str, format: Format, name: &str) -> Result<Config, Diagnostics> {
    read(text, (format, name), (BTreeMap::new(), &[]))
}

/// As [`from_text`], with `env` on top, and for what the text takes from there.
///
/// # Errors
///
/// As [`from_text`].
pub fn from_text_in(
    text: &str,
    (format, name): (Format, &str),
    env: impl Iterator<Item = (String, String)>,
) -> Result<Config, Diagnostics> {
    read(text, (format, name), (env.collect(), &[]))
}

/// Reads a text with an environment and flags on top.
pub(super) fn read(
    text: &str,
    (format, file): (Format, &str),
    (environment, flags): (BTreeMap<String, String>, &[FlagOverride]),
) -> Result<Config, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let sources = Sources {
        text,
        format,
        file,
        environment: &environment,
        flags,
    };
    let layers = Layers::merge(&sources).map_err(|one| Diagnostics::new(vec![*one]))?;
    let mut reader = Reader::new(&layers, &environment);
    let root = Node {
        path: String::new(),
        value: &layers.root,
    };
    let config = check::config(&mut reader, root);
    match (config, reader.into_found()) {
        (Some(config), found) if found.is_empty() => Ok(config),
        (_, found) => Err(Diagnostics::new(found)),
    }
}
