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

    async fn body(&self, url: &str) -> Option<Vec<u8>> {
        let answer = self.fetch.get(url, &self.headers, MAX_ANSWER).await.ok()?;
        answer.status.is_success().then(|| answer.body.to_vec())
    }

    async fn version_at(&self, url: &str) -> Option<String> {
        let body = self.body(url).await?;
        let said = Said {
            version: Some(&body),
            ..Said::default()
        };
        detect(said).version
    }

    async fn version(&self) -> Option<String> {
        let found = self.place.found.load(Ordering::Relaxed);
        if let Some(at) = found.checked_sub(1) {
            return self.version_at(self.versions.get(at)?).await;
        }
        let asked = self.place.asked.fetch_add(1, Ordering::Relaxed);
        if !asked.is_multiple_of(PATIENCE) {
            return None;
        }
        for (url, found) in self.versions.iter().zip(1..) {
            if let Some(version) = self.version_at(url).await {
                self.place.found.store(found, Ordering::Relaxed);
                return Some(version);
            }
        }
        None
    }

    async fn models(&self) -> Option<Vec<Box<str>>> {
        let body = self.body(self.models.as_deref()?).await?;
        let names = (self.names)(&body)?;
        Some(names.into_iter().map(Into::into).collect())
    }
}

impl Beside for IdentityPoll {
    type Sample = IdentitySample;

    async fn read(&self) -> Reading<IdentitySample> {
        let (version, models) = tokio::join!(self.version(), self.models());
        let result = match (&version, &models) {
            (None, None) => return ("unknown", None),
            _ => "known",
        };
        let sample = IdentitySample {
            target_index: self.target_index,
            at: self.anchor.now(),
            version,
            models,
        };
        (result, Some(sample))
    }

    fn told(&self, (result, sample): &Reading<IdentitySample>, is_new: bool) {
        if is_new {
            let version = sample.as_ref().and_then(|sample| sample.version.as_deref());
            tracing::debug!(target = %self.target, result, version, "asked what the server is");
        }
    }
}
