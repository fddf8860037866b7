//! The state of a target, and what changed on it at one moment.

use serde::Serialize;

use super::plain;
use crate::clock::MonoTime;

/// How a target stands, as our requests and its page show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// It never answered yet, or says that it is loading.
    Starting,
    /// It has just begun: the first requests are slower than later ones, and feed nothing.
    Warming,
    /// It answers.
    Serving,
    /// The last requests failed, all of them.
    Down,
    /// The same, and its name has no address any more.
    Gone,
}

impl TargetState {
    /// All states, in the order of a life.
    pub const ALL: [Self; 5] = [
        Self::Starting,
        Self::Warming,
        Self::Serving,
        Self::Down,
        Self::Gone,
    ];

    /// The name in metrics, records and the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Warming => "warming",
            Self::Serving => "serving",
            Self::Down => "down",
            Self::Gone => "gone",
        }
    }
}

/// Whether a request counts for or against the server, as far as starts of it go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// It does, as all do.
    #[default]
    Now,
    /// It failed as the requests of a start do: once it is known what it was, it does or not.
    Later,
    /// It belongs to a start: it is told of, and feeds nothing.
    Never,
}

impl Counts {
    /// The name in records and span attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Later => "later",
            Self::Never => "never",
        }
    }
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// The server's process began anew.
    Restart,
    /// The server is of another version.
    Version,
    /// It serves other models.
    Models,
    /// It runs with other settings, as its page says.
    Flags,
    /// It runs in other pods.
    Pod,
    /// Its pod names another image.
    Image,
    /// What somebody told us, as a pipeline that deploys.
    Posted,
}

impl MarkKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Restart,
        Self::Version,
        Self::Models,
        Self::Flags,
        Self::Pod,
        Self::Image,
        Self::Posted,
    ];

    /// The name in metrics and the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Version => "version",
            Self::Models => "models",
            Self::Flags => "flags",
            Self::Pod => "pod",
            Self::Image => "image",
            Self::Posted => "posted",
        }
    }
}

/// What names an image, and which.
pub type NamedImages = Vec<(Box<str>, Box<str>)>;

/// How a pod is described. What was not there is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodInfo {
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its identifier, which no other pod of that name has.
    pub uid: Option<Box<str>>,
    /// Its labels that name an image.
    pub labels: Option<NamedImages>,
    /// Its annotations that do.
    pub annotations: Option<NamedImages>,
}

/// What a server, or what it runs in, says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentitySample {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When that was asked.
    pub at: MonoTime,
    /// Its version; `None` if it did not say.
    pub version: Option<String>,
    /// The models that it lists; `None` if it listed none of ours to read.
    pub models: Option<Vec<Box<str>>>,
    /// Its pod; `None` if it was not that which was asked.
    pub pod: Option<PodInfo>,
}

/// Longest text of a mark, in characters.
pub const LONGEST_MARK: usize = 256;

/// A change at one moment: what a later change of latencies is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When, in nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// Name of the target; `None`: it concerns all.
    pub target: Option<Box<str>>,
    /// What changed.
    pub kind: MarkKind,
    /// From what to what, in one line.
    pub text: Box<str>,
}

impl Mark {
    /// A mark whose text may come from anyone: it is made one line that a terminal can show.
    #[must_use]
    pub fn new(unix_ns: u64, target: Option<&str>, (kind, text): (MarkKind, &str)) -> Self {
        let text: String = plain(text).chars().take(LONGEST_MARK).collect();
        Self {
            unix_ns,
            target: target.map(Into::into),
            kind,
            text: text.into(),
        }
    }
}
