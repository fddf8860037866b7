//! Reads one target's metrics page again and again.
//!
//! A page counts from the instant its last byte was read. A page that fails, or holds no
//! family we know, gives no sample: the record then shows an older state with its age, and
//! after three intervals none.
//!
//! A page may be at one of several paths. Where the one in use has none, the others are tried at
//! once, and then every now and then; the first that is understood is kept.

use std::sync::Arc;
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::engine::ollama;
use super::read::{PageRead, read_page};
use crate::clock::TimeAnchor;
use crate::measurement::server::{Scrape, ScrapeResult, ServerPage};
use crate::measurement::{Sample, ServerState};
use crate::telemetry::SelfMetrics;
use crate::transport::fetch::{Fetch, FetchError, Fetched};

/// Longest page that is read.
const MAX_PAGE: usize = 16 * 1024 * 1024;
/// Readings without a page after which all paths are tried again: a server's log is not ours to
/// fill.
const PATIENCE: u32 = 12;

/// Paths below a server's URL where engines keep their pages, the usual one first. TensorRT-LLM
/// has JSON at the first, and reading it takes it from whoever else reads it.
pub const PATHS: [&str; 5] = [
    "/metrics",
    "/v1/metrics",
    "/prometheus/metrics",
    "/metrics/",
    OLLAMA,
];
const OLLAMA: &str = "/api/ps";

/// The reading of one target's page.
#[derive(Debug)]
pub struct Poll {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters and logs.
    pub target: String,
    /// Where the page may be; the first first.
    pub urls: Vec<String>,
    /// The model whose state is wanted, of several on a page.
    pub model: Option<String>,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Interval.
    pub every: Duration,
    /// The clock.
    pub anchor: TimeAnchor,
    /// Carries it.
    pub fetch: Fetch,
    /// Counts results.
    pub own: SelfMetrics,
}

/// Where the page is, as far as it is known.
#[derive(Debug, Default)]
struct Place {
    /// Position among the URLs.
    at: usize,
    /// Readings without a page since all were tried.
    misses: u32,
}

impl Poll {
    /// Reads until `scrapes` is closed, the first page at once.
    pub async fn run(self, scrapes: mpsc::Sender<Scrape>) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut last = None;
        let mut place = Place::default();
        loop {
            ticks.tick().await;
            let scrape = self.look(&mut place).await;
            self.own.scrapes(&self.target, scrape.result.name()).inc();
            let engine = scrape.sample.as_ref().and_then(|one| one.page.engine);
            let told = (scrape.result, engine, place.at);
            if last != Some(told) {
                let (target, url) = (&self.target, &self.urls[place.at]);
                let result = scrape.result.name();
                let engine = engine.map(crate::measurement::server::Engine::name);
                tracing::info!(%target, %url, result, engine, "reading the server's metrics page");
                last = Some(told);
            }
            if scrapes.send(scrape).await.is_err() {
                return;
            }
        }
    }

    /// Reads the page once, without counting it, wherever it is; and says where that was.
    pub async fn once(&self) -> (Scrape, &str) {
        let mut place = Place::default();
        let scrape = self.look(&mut place).await;
        (scrape, &self.urls[place.at])
    }

    async fn look(&self, place: &mut Place) -> Scrape {
        let scrape = self.read(&self.urls[place.at]).await;
        if !scrape.result.is_elsewhere() {
            place.misses = 0;
            return scrape;
        }
        let is_due = place.misses.is_multiple_of(PATIENCE);
        place.misses += 1;
        if is_due {
            for (at, url) in self.urls.iter().enumerate() {
                if at == place.at {
                    continue;
                }
                let other = self.read(url).await;
                if other.result == ScrapeResult::Ok {
                    *place = Place { at, misses: 0 };
                    return other;
                }
            }
        }
        scrape
    }

    async fn read(&self, url: &str) -> Scrape {
        let asked = self.anchor.now();
        let fetched = self.fetch.get(url, &self.headers, MAX_PAGE).await;
        let (result, read) = match &fetched {
            Ok(page) => understand(page, (url, self.model.as_deref())),
            Err(error) => (failure(error), None),
        };
        let at = fetched.map_or_else(|_| self.anchor.now(), |page| page.finished_at);
        let target_index = self.target_index;
        Scrape {
            target_index,
            at,
            result,
            sample: read.map(|(state, page)| Sample {
                target_index,
                asked,
                at,
                state,
                page: Arc::new(page),
            }),
        }
    }
}

const fn failure(error: &FetchError) -> ScrapeResult {
    match error {
        FetchError::Timeout => ScrapeResult::Timeout,
        FetchError::TooLarge { .. } => ScrapeResult::TooLarge,
        _ => ScrapeResult::Unreachable,
    }
}

/// What the answer `page` to a request of `url` says of the server, or why it says nothing.
fn understand(
    page: &Fetched,
    (url, model): (&str, Option<&str>),
) -> (ScrapeResult, Option<(ServerState, ServerPage)>) {
    let refused = match page.status.as_u16() {
        200..=299 => None,
        300..=399 => Some(ScrapeResult::Redirect),
        401 | 403 => Some(ScrapeResult::Unauthorized),
        404 => Some(ScrapeResult::NotFound),
        _ => Some(ScrapeResult::Status),
    };
    if let Some(result) = refused {
        return (result, None);
    }
    let kind = page.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match page.body.trim_ascii_start().first() {
        None => return (ScrapeResult::Empty, None),
        Some(b'<') => return (ScrapeResult::Html, None),
        Some(b'{') if url.ends_with(OLLAMA) => {
            let loaded = ollama::loaded(&page.body).map(|page| (ServerState::default(), page));
            let result = loaded
                .as_ref()
                .map_or(ScrapeResult::Json, |_| ScrapeResult::Ok);
            return (result, loaded);
        }
        // A quoted name of a metric begins so too.
        Some(b'[' | b'{') if kind.contains("json") => return (ScrapeResult::Json, None),
        Some(_) => {}
    }
    let read = read_page(&String::from_utf8_lossy(&page.body), model);
    let is_whole = read.ended || !kind.starts_with("application/openmetrics-text");
    match read {
        PageRead { samples: 0, .. } if page.body.trim_ascii_start().starts_with(b"[") => {
            (ScrapeResult::Json, None)
        }
        PageRead {
            samples: 0, page, ..
        } if page.bad_lines == 0 => (ScrapeResult::Empty, None),
        PageRead { cut: true, .. } => (ScrapeResult::Cut, None),
        _ if !is_whole => (ScrapeResult::Cut, None),
        PageRead { state, page, .. } if page.engine.is_some() => {
            (ScrapeResult::Ok, Some((state, page)))
        }
        _ => (ScrapeResult::Unrecognised, None),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::StatusCode;
    use hyper::header::HeaderValue;

    use super::*;
    use crate::clock::MonoTime;

    fn check((status, kind): (u16, &'static str), body: &str, expected: ScrapeResult) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let page = Fetched {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            trailers: HeaderMap::new(),
            finished_at: MonoTime::ZERO,
        };
        let (result, read) = understand(&page, ("http://a/metrics", None));
        assert_eq!(result, expected, "{status} {kind} {body:.60}");
        assert_eq!(read.is_some(), expected == ScrapeResult::Ok);
    }

    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const GOOD: &str = "vllm:num_requests_running 3\n";

    #[test]
    fn each_answer_that_is_no_page_has_a_name() {
        check((200, TEXT), GOOD, ScrapeResult::Ok);
        check((307, TEXT), "", ScrapeResult::Redirect);
        check((401, "application/json"), "{}", ScrapeResult::Unauthorized);
        check((403, TEXT), "", ScrapeResult::Unauthorized);
        check((404, "application/json"), "{}", ScrapeResult::NotFound);
        check((501, TEXT), GOOD, ScrapeResult::Status);
        check((200, "text/html"), "<!DOCTYPE html>", ScrapeResult::Html);
        check((200, "application/json"), "[]", ScrapeResult::Json);
        check((200, "text/plain"), "[{\"iter\": 1}]", ScrapeResult::Json);
        check((200, "application/json"), "{\"a\": 1}", ScrapeResult::Json);
        check((200, TEXT), "", ScrapeResult::Empty);
        check((200, TEXT), "\n# nothing\n", ScrapeResult::Empty);
        check((200, TEXT), "up 1\n", ScrapeResult::Unrecognised);
        check((200, TEXT), "no such page\n", ScrapeResult::Unrecognised);
    }

    #[test]
    fn a_page_of_open_metrics_without_its_end_is_cut() {
        check((200, OPEN), GOOD, ScrapeResult::Cut);
        check((200, OPEN), &format!("{GOOD}# EOF\n"), ScrapeResult::Ok);
        check((200, OPEN), &format!("{GOOD}# EOF"), ScrapeResult::Ok);
        let many: Vec<String> = (0..300)
            .map(|n| format!("vllm:num_requests_running{{engine=\"{n}\"}} 3\n"))
            .collect();
        check((200, TEXT), &many.concat(), ScrapeResult::Cut);
    }

    #[test]
    fn a_quoted_name_is_no_json() {
        let page = "{\"vllm:num_requests_running\", engine=\"0\"} 3\n";
        check((200, TEXT), page, ScrapeResult::Ok);
    }
}
