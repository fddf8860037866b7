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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use axum::Router;
    use axum::http::{StatusCode, Uri};
    use tokio::net::TcpListener;

    use super::*;
    use crate::transport::fetch::FetchTimeouts;

    /// What a server answers: to its version, and to all else.
    type Answers = Arc<Mutex<[(u16, &'static str); 2]>>;

    async fn server(answers: Answers) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let router = Router::new().fallback(move |uri: Uri| async move {
            let answers = *answers.lock().unwrap_or_else(PoisonError::into_inner);
            let (status, body) = answers[usize::from(uri.path() != "/info")];
            (StatusCode::from_u16(status).expect("a status"), body)
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    fn poll(url: &str) -> IdentityPoll {
        let second = Duration::from_secs(5);
        let timeouts = FetchTimeouts {
            connect: second,
            total: second,
        };
        let anchor = TimeAnchor::start();
        IdentityPoll {
            target_index: 0,
            target: "a".to_owned(),
            versions: VERSION_PATHS.map(|path| format!("{url}{path}")).into(),
            models: Some(format!("{url}/v1/models")),
            names: |_| None,
            headers: HeaderMap::new(),
            every: second,
            anchor,
            fetch: Fetch::new(anchor, timeouts).expect("a client needs nothing special"),
            place: VersionPlace::default(),
        }
    }

    #[tokio::test]
    async fn a_server_that_is_loading_is_asked_again_and_one_that_tells_nothing_is_not() {
        let loading = [(503, ""), (503, "")];
        let answers: Answers = Arc::new(Mutex::new(loading));
        let poll_of = poll(&server(Arc::clone(&answers)).await);
        let set = |new| *answers.lock().unwrap_or_else(PoisonError::into_inner) = new;
        assert_eq!(poll_of.read().await, ("unavailable", None));
        set([(200, r#"{"version": "3.2.1"}"#), (404, "")]);
        let (result, sample) = poll_of.read().await;
        let version = sample.and_then(|sample| sample.version);
        assert_eq!((result, version.as_deref()), ("ok", Some("3.2.1")));
        set(loading);
        assert_eq!(poll_of.read().await, ("unavailable", None));

        set([(404, ""), (404, "")]);
        let mute = poll(&server(Arc::clone(&answers)).await);
        assert_eq!(mute.read().await, ("untold", None));
        set([(200, r#"{"version": "3.2.1"}"#), (404, "")]);
        assert_eq!(mute.read().await, ("untold", None), "not for an hour");

        let nobody = TcpListener::bind("127.0.0.1:0").await;
        let nobody = nobody.expect("loopback has a free port").local_addr();
        let gone = poll(&format!("http://{}", nobody.expect("it is bound")));
        assert_eq!(gone.read().await, ("unreachable", None));
    }
}
