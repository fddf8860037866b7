//! Which engine a target is, and what it does not say of itself: what `check` shows.

use super::aside::{Asking, page_at};
use super::streams::headers;
use crate::config::TargetConfig;
use crate::measurement::server::{Engine, Scrape, ScrapeResult, missing};
use crate::scrape::{Detected, Said, detect, publishes, version_path};

/// Longest answer that is read.
const MAX_ANSWER: usize = 1 << 20;

/// What a server says of itself, and what not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// What became of reading its metrics page.
    pub result: ScrapeResult,
    /// The URL of that page, or of the first that was asked for.
    pub page: String,
    /// Which engine it is.
    pub engine: Option<Engine>,
    /// Its version.
    pub version: Option<String>,
    /// What explanations need, the engine publishes and this page lacks.
    pub lacks: Vec<&'static str>,
    /// What explanations need and the engine never publishes.
    pub never: Vec<&'static str>,
}

/// Asks `target` for its version and its models, beside the page of `scrape`, which was read at
/// `url`. What does not answer says nothing.
pub(super) async fn recognise(
    target: &TargetConfig,
    asking: Asking,
    (scrape, url): (&Scrape, &str),
) -> Recognised {
    let sample = scrape.sample.as_ref();
    let of_page = sample.and_then(|sample| sample.page.engine);
    let path = version_path(of_page);
    let (version, models) = tokio::join!(
        body(target, path, asking),
        body(target, "/v1/models", asking)
    );
    let told = |version: Option<&[u8]>| {
        detect(Said {
            page: of_page,
            version,
            models: models.as_deref(),
        })
    };
    let mut found = told(version.as_deref());
    let own_path = version_path(found.engine);
    if found.version.is_none() && own_path != path {
        // Its models said which engine it is.
        found = told(body(target, own_path, asking).await.as_deref());
    }
    let Detected { engine, version } = found;
    let missing = sample.map(|sample| missing(&sample.state, &sample.page.totals));
    let (lacks, never) = missing
        .unwrap_or_default()
        .into_iter()
        .partition(|role| of_page.is_some_and(|engine| publishes(engine, role)));
    Recognised {
        result: scrape.result,
        page: url.to_owned(),
        engine,
        version,
        lacks,
        never,
    }
}

/// The body of the page at `path`, if there is one.
pub(super) async fn body(target: &TargetConfig, path: &str, asking: Asking) -> Option<Vec<u8>> {
    let page = page_at(target, (&target.urls[0], path), asking).ok()?;
    let headers = headers(target).ok()?;
    let answer = page.fetch.get(&page.url, &headers, MAX_ANSWER).await.ok()?;
    answer.status.is_success().then(|| answer.body.to_vec())
}
