//! The API's handlers: take a lock, build rows, let go, answer.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::answer::problem;
use super::findings::Findings;
use super::rows::{OwnState, Requests, Status, Streams};
use super::surface::SurfaceState;
use crate::aggregate::LAST_REQUESTS;

/// Requests in an answer that names no limit.
const DEFAULT_LIMIT: usize = 50;

pub(super) async fn status(State(state): State<SurfaceState>) -> Json<Status> {
    let now = state.anchor.now();
    let gauges = (state.gauges)();
    let own = OwnState {
        info: &state.info,
        ready: state.is_ready(),
        gauges: &gauges,
    };
    let status = Status::of(&state.live(), &own, now);
    Json(status)
}

pub(super) async fn streams(State(state): State<SurfaceState>) -> Json<Streams> {
    let now = state.anchor.now();
    let streams = Streams::of(&state.live(), now);
    Json(streams)
}

pub(super) async fn findings(State(state): State<SurfaceState>) -> Json<Findings> {
    let now = state.anchor.now();
    let watch = state.watch();
    let findings = Findings::of(&state.live(), &watch, now);
    Json(findings)
}

/// Unknown parameters are refused: a misspelt one would else be ignored without a word.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestsQuery {
    limit: Option<String>,
}

pub(super) async fn requests(
    State(state): State<SurfaceState>,
    query: Result<Query<RequestsQuery>, QueryRejection>,
) -> Response {
    let limit = match query {
        Ok(Query(query)) => limit(query.limit.as_deref()),
        Err(rejection) => Err(rejection.body_text()),
    };
    let limit = match limit {
        Ok(limit) => limit,
        Err(message) => {
            let wanted = format!("`limit` as a whole number from 1 to {LAST_REQUESTS}, or nothing");
            return problem(StatusCode::BAD_REQUEST, message, wanted);
        }
    };
    // Only handles are taken under the lock: many rows are turned into text without it.
    let last = Requests::last(&state.live(), limit);
    Json(Requests::of(&last, &state.anchor.wall())).into_response()
}

fn limit(given: Option<&str>) -> Result<usize, String> {
    let Some(text) = given else {
        return Ok(DEFAULT_LIMIT);
    };
    match text.parse() {
        Ok(limit) if (1..=LAST_REQUESTS).contains(&limit) => Ok(limit),
        _ => Err(format!("`limit={text}` is not such a number")),
    }
}
