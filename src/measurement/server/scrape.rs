//! What became of reading a metrics page.

use crate::clock::MonoTime;
use crate::measurement::Sample;

/// One reading of a target's page.
#[derive(Debug, Clone)]
pub struct Scrape {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When it ended.
    pub at: MonoTime,
    /// What became of it.
    pub result: ScrapeResult,
    /// What the page said, if it could be used.
    pub sample: Option<Sample>,
}

/// What became of reading a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScrapeResult {
    /// A page that is understood.
    Ok,
    /// It is elsewhere (3xx).
    Redirect,
    /// It is not shown to us (401, 403).
    Unauthorized,
    /// There is none (404).
    NotFound,
    /// Another status than 2xx.
    Status,
    /// A page for people.
    Html,
    /// JSON, and none that is understood.
    Json,
    /// No sample at all.
    Empty,
    /// No metrics of an engine that is known.
    Unrecognised,
    /// Not whole, or of more lines or parts than are read.
    Cut,
    /// Longer than is read.
    TooLarge,
    /// Not finished in time.
    Timeout,
    /// No connection, or it broke.
    Unreachable,
}

impl ScrapeResult {
    /// Its name in metrics and the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Redirect => "redirect",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Status => "status",
            Self::Html => "html",
            Self::Json => "json",
            Self::Empty => "empty",
            Self::Unrecognised => "unrecognised",
            Self::Cut => "cut",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }

    /// Whether the page may be found under another path.
    #[must_use]
    pub const fn is_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Redirect
                | Self::NotFound
                | Self::Status
                | Self::Html
                | Self::Json
                | Self::Empty
                | Self::Unrecognised
        )
    }
}
