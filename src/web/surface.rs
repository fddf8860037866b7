//! What the surface reads from, and its routes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{answer, api, marks, page};
use crate::aggregate::Live;
use crate::analysis::Watch;
use crate::clock::TimeAnchor;
use crate::export::prometheus::{self, Encoding, Gauge, View};
use crate::measurement::Mark;
use crate::telemetry::SelfMetrics;

/// Who can reach the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Only this machine: everything answers, to requests that name it.
    Loopback,
    /// Others too: only `/metrics`, `/healthz` and `/readyz` answer.
    Beyond,
}

/// What a run says of itself.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// Version of the program.
    pub version: &'static str,
    /// The command that runs: `demo`, `run`, `bench`.
    pub command: &'static str,
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// When it was started, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
}

/// Everything the surface reads. Cheap to clone; clones share it all.
#[derive(Clone)]
pub struct SurfaceState {
    /// Streams, windows, last requests, newest server states.
    pub live: Arc<Mutex<Live>>,
    /// What is wrong with each stream.
    pub watch: Arc<Mutex<Watch>>,
    /// The run's clock; its origin is the start of the run.
    pub anchor: TimeAnchor,
    /// Counters about ourselves.
    pub own: SelfMetrics,
    /// Gauges that are read at the moment of a scrape.
    pub gauges: Arc<dyn Fn() -> Vec<Gauge> + Send + Sync>,
    /// Keeps a mark that was posted, and tells of it.
    pub marked: Arc<dyn Fn(Mark) + Send + Sync>,
    /// Whether load is running: set once by whoever starts it, unset at the stop.
    pub ready: Arc<AtomicBool>,
    /// What the run says of itself.
    pub info: RunInfo,
}

impl fmt::Debug for SurfaceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurfaceState")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl SurfaceState {
    /// The live state, for as long as an answer is built. Never held over an await.
    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        // A writer that panicked left whole records behind; showing them beats showing none.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last look at each stream. Taken before the live state where both are needed.
    pub(super) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

/// The routes over `state`, as far as `exposure` lets them answer.
pub fn router(state: SurfaceState, exposure: Exposure) -> Router {
    let open = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready));
    let all = match exposure {
        Exposure::Loopback => {
            let own = Router::new()
                .route("/", get(page::index))
                .route("/assets/{name}", get(page::asset))
                .route("/api/v1/status", get(api::status))
                .route("/api/v1/streams", get(api::streams))
                .route("/api/v1/findings", get(api::findings))
                .route("/api/v1/requests", get(api::requests))
                .route(
                    "/api/v1/marks",
                    get(marks::list)
                        .post(marks::post)
                        .layer(DefaultBodyLimit::max(marks::MOST_BYTES)),
                )
                .fallback(answer::not_found);
            open.merge(own.layer(axum::middleware::from_fn(answer::own_host)))
        }
        Exposure::Beyond => open.fallback(answer::not_exposed),
    };
    all.method_not_allowed_fallback(answer::wrong_method)
        .layer(axum::middleware::from_fn(answer::one_host))
        .layer(axum::middleware::map_response(answer::harden))
        .with_state(state)
}

async fn ready(State(state): State<SurfaceState>) -> (StatusCode, &'static str) {
    if state.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

async fn metrics(State(state): State<SurfaceState>, headers: HeaderMap) -> Response {
    let format = prometheus::negotiate(joined(&headers, &header::ACCEPT).as_deref());
    let encoding = joined(&headers, &header::ACCEPT_ENCODING);
    let encoding = prometheus::negotiate_encoding(encoding.as_deref());
    let gauges = (state.gauges)();
    let own = state.own.gather();
    let body = {
        let live = state.live();
        prometheus::render(
            format,
            &View {
                live: &live,
                own: &own,
                gauges: &gauges,
                started_unix_ns: state.info.started_unix_ns,
            },
        )
    };
    let mut response = prometheus::pack(encoding, body).into_response();
    let head = response.headers_mut();
    let content_type = HeaderValue::from_static(prometheus::content_type(format));
    head.insert(header::CONTENT_TYPE, content_type);
    head.insert(header::VARY, VARY);
    if encoding == Encoding::Gzip {
        head.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// What the page depends on.
const VARY: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// All headers of that name as one list; `None` without any.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<&str> = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    (!lines.is_empty()).then(|| lines.join(","))
}
