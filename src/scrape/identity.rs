//! What a server says it is, asked again and again: its version and its models.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::mpsc;

use super::beside::{Beside, Reading, again};
use super::detect::{Said, detect};
use crate::clock::TimeAnchor;
use crate::measurement::IdentitySample;
use crate::transport::fetch::Fetch;

/// Longest answer that is read.
const MAX_ANSWER: usize = 1 << 20;

/// Paths below a server's URL where engines tell their version, the usual one first.
pub const VERSION_PATHS: [&str; 5] = [
    "/version",
    "/api/version",
    "/info",
    "/get_server_info",
    "/props",
];
/// Askings after which all paths are tried again, where none told a version.
const PATIENCE: usize = 60;

/// Why a server did not say something, from what passes to what may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Silent {
    /// There was no answer.
    Unreachable,
    /// It says that it cannot, now.
    Unavailable,
    /// It answers, and does not say it.
    Untold,
}

impl Silent {
    const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Unavailable => "unavailable",
            Self::Untold => "untold",
        }
    }
}

/// The asking of one target.
#[derive(Debug)]
pub struct IdentityPoll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for logs.
    pub target: String,
    /// Where its version may be, in the order of [`VERSION_PATHS`].
    pub versions: Vec<String>,
    /// Where its list of models is, if its protocol has one.
    pub models: Option<String>,
    /// Reads the names out of such a list; `None` if it is none.
    pub names: fn(&[u8]) -> Option<Vec<String>>,
    /// Headers of the requests.
    pub headers: HeaderMap,
    /// Interval.
    pub every: Duration,
    /// The clock.
    pub anchor: TimeAnchor,
    /// Carries them.
    pub fetch: Fetch,
    /// Where the version is, as far as that is known.
    pub place: VersionPlace,
}

/// Which of the paths told a version last.
#[derive(Debug, Default)]
pub struct VersionPlace {
    /// Its position and 1; 0 if none did.
    found: AtomicUsize,
    /// Askings since all were tried.
    asked: AtomicUsize,
}

impl IdentityPoll {
    /// Asks until `samples` is closed, the first time at once.
    pub async fn run(self, samples: mpsc::Sender<IdentitySample>) {
        again(&self, (self.every, samples)).await;
    }

    async fn body(&self, url: &str) -> Result<Vec<u8>, Silent> {
        let answer = self.fetch.get(url, &self.headers, MAX_ANSWER).await;
        let answer = answer.map_err(|_| Silent::Unreachable)?;
        if answer.status.is_success() {
            Ok(answer.body.to_vec())
        } else if answer.status.is_server_error() {
            Err(Silent::Unavailable)
        } else {
            Err(Silent::Untold)
        }
    }

    async fn version_at(&self, url: &str) -> Result<String, Silent> {
        let body = self.body(url).await?;
        let said = Said {
            version: Some(&body),
            ..Said::default()
        };
        detect(said).version.ok_or(Silent::Untold)
    }

    async fn version(&self) -> Result<String, Silent> {
        let found = self.place.found.load(Ordering::Relaxed);
        if let Some(url) = found.checked_sub(1).and_then(|at| self.versions.get(at)) {
            return self.version_at(url).await;
        }
        let asked = self.place.asked.fetch_add(1, Ordering::Relaxed);
        if !asked.is_multiple_of(PATIENCE) {
            return Err(Silent::Untold);
        }
        let mut silent = Silent::Untold;
        for (url, found) in self.versions.iter().zip(1..) {
            match self.version_at(url).await {
                Ok(version) => {
                    self.place.found.store(found, Ordering::Relaxed);
                    return Ok(version);
                }
                Err(why) => silent = silent.min(why),
            }
        }
        if silent != Silent::Untold {
            // It may be loading: that says nothing of what it will tell.
            self.place.asked.store(0, Ordering::Relaxed);
        }
        Err(silent)
    }

    async fn models(&self) -> Result<Vec<Box<str>>, Silent> {
        let url = self.models.as_deref().ok_or(Silent::Untold)?;
        let body = self.body(url).await?;
        let names = (self.names)(&body).ok_or(Silent::Untold)?;
        Ok(names.into_iter().map(Into::into).collect())
    }
}

impl Beside for IdentityPoll {
    type Sample = IdentitySample;

    async fn read(&self) -> Reading<IdentitySample> {
        let (version, models) = tokio::join!(self.version(), self.models());
        if let (Err(one), Err(other)) = (&version, &models) {
            return ((*one).min(*other).name(), None);
        }
        let sample = IdentitySample {
            target_index: self.target_index,
            at: self.anchor.now(),
            version: version.ok(),
            models: models.ok(),
            pod: None,
        };
        ("ok", Some(sample))
    }

    fn told(&self, (result, sample): &Reading<IdentitySample>, is_new: bool) {
        if is_new {
            let version = sample.as_ref().and_then(|sample| sample.version.as_deref());
            tracing::info!(target = %self.target, result, version, "asking what the server is");
        }
    }
}
