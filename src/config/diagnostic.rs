//! What is wrong with a configuration: where it stands, what was given, what was wanted.
//!
//! A reader collects all of them and reports them at once. Messages are lower case, without a
//! full stop, literals in backticks. A secret never gets into one: whoever makes a diagnostic
//! about a secret leaves `given` empty.

use std::fmt;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A file, as the caller named it.
    File {
        /// Its name.
        name: String,
        /// Line, from 1, where it is known.
        line: Option<u64>,
    },
    /// This environment variable.
    Environment(String),
    /// This command line flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                name,
                line: Some(line),
            } => write!(f, "{name}:{line}"),
            Self::File { name, line: None } => f.write_str(name),
            Self::Environment(name) => write!(f, "environment variable `{name}`"),
            Self::Flag(name) => write!(f, "flag `{name}`"),
        }
    }
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The text is no YAML or TOML.
    Syntax,
    /// No such key.
    UnknownKey,
    /// Planned, but not built.
    NotAvailable,
    /// A key that must be there is not.
    Missing,
    /// A number for a text, a text for a list, …
    WrongType,
    /// A number without a unit, or with one that does not fit.
    WrongUnit,
    /// Too small or too large.
    OutOfRange,
    /// Not one of the words, or not of the form, that is wanted.
    NotUnderstood,
    /// Names something that is not there.
    UnknownName,
    /// Given before.
    Duplicate,
    /// Excludes another key.
    Conflict,
    /// A secret in clear.
    LiteralSecret,
    /// A file or variable that is not there, or cannot be read.
    Unreadable,
}

impl Problem {
    /// The words for it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Syntax => "syntax error",
            Self::UnknownKey => "unknown key",
            Self::NotAvailable => "not available in this version",
            Self::Missing => "missing",
            Self::WrongType => "wrong type",
            Self::WrongUnit => "wrong unit",
            Self::OutOfRange => "out of range",
            Self::NotUnderstood => "not understood",
            Self::UnknownName => "unknown name",
            Self::Duplicate => "given twice",
            Self::Conflict => "does not go together",
            Self::LiteralSecret => "a secret in clear",
            Self::Unreadable => "cannot be read",
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where in the tree, as in `probes[0].arrivals.rate`; empty for the whole file.
    pub path: String,
    /// Where it was written.
    pub origin: Origin,
    /// The kind of problem.
    pub problem: Problem,
    /// What was given, cut and made printable; `None` where nothing was, or where it is secret.
    pub given: Option<String>,
    /// What was wanted.
    pub wanted: Option<String>,
    /// What to try.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(self.problem.text())?;
        for (label, text) in [
            ("given", &self.given),
            ("wanted", &self.wanted),
            ("hint", &self.hint),
        ] {
            if let Some(text) = text {
                write!(f, "\n  {label}: {text}")?;
            }
        }
        Ok(())
    }
}

/// Everything that is wrong with a configuration, in the order of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Sorts by place: the file by line, then the environment, then flags.
    pub(super) fn new(mut found: Vec<Diagnostic>) -> Self {
        found.sort_by(|a, b| a.origin.cmp(&b.origin));
        Self(found)
    }

    /// The problems.
    #[must_use]
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Longest piece of a given value that is shown, characters.
const SHOWN: usize = 60;

/// `text` in backticks, cut to a length that fits a line, control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{}`", shown.replace("\\\"", "\"").replace("\\'", "'"))
}
