//! `/api/v1/marks`: what changed on targets, and how a pipeline says what it did.

use std::error::Error;
use std::io;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::answer::problem;
use super::surface::SurfaceState;
use crate::aggregate::Live;
use crate::measurement::{LONGEST_MARK, Mark, MarkKind, plain};

/// Longest body.
pub(super) const MOST_BYTES: usize = 8 * 1024;
/// A mark may lie so far ahead: clocks differ.
const AHEAD_MS: u64 = 5 * 60 * 1_000;
const NANOS: u64 = 1_000_000;

const WANTED: &str = "a JSON object with `text`, and if you like `target` and `at_unix_ms`, as in `{\"text\": \"qwen 2.1\", \"target\": \"qwen\"}`";

/// What is posted. Unknown keys are refused: a misspelt one would else be ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    text: String,
    /// All of them, if none is named.
    target: Option<String>,
    /// Now, if nothing is said.
    at_unix_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Marks {
    /// The one that was told last first.
    marks: Vec<MarkRow>,
}

#[derive(Debug, Serialize)]
struct MarkRow {
    at_unix_ms: u64,
    kind: MarkKind,
    target: Option<Box<str>>,
    text: Box<str>,
}

impl From<&Mark> for MarkRow {
    fn from(mark: &Mark) -> Self {
        Self {
            at_unix_ms: mark.unix_ns / NANOS,
            kind: mark.kind,
            target: mark.target.clone(),
            text: mark.text.clone(),
        }
    }
}

pub(super) async fn list(State(state): State<SurfaceState>) -> Json<Marks> {
    let marks = state.live().marks().iter().map(MarkRow::from).collect();
    Json(Marks { marks })
}

pub(super) async fn post(
    State(state): State<SurfaceState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return unread(&rejection),
    };
    // A page from elsewhere can post without asking, but not with this type.
    if !is_json(&headers) {
        let message = "the body is not said to be JSON".to_owned();
        let wanted = "`content-type: application/json`".to_owned();
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, message, wanted);
    }
    let now_ms = state.anchor.wall().unix_ns(state.anchor.now()) / NANOS;
    let read = read(&body, &state.live(), now_ms);
    match read {
        Ok(mark) => {
            let row = MarkRow::from(&mark);
            (state.marked)(mark);
            (StatusCode::CREATED, Json(row)).into_response()
        }
        Err((message, wanted)) => problem(StatusCode::BAD_REQUEST, message, wanted),
    }
}

/// Why the body is not there.
fn unread(rejection: &BytesRejection) -> Response {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the body is longer than {MOST_BYTES} bytes");
        return problem(status, message, WANTED.to_owned());
    }
    let mut causes = std::iter::successors(rejection.source(), |&cause| cause.source());
    let is_late = causes.any(|cause| {
        let failed = cause.downcast_ref::<io::Error>();
        failed.is_some_and(|failed| failed.kind() == io::ErrorKind::TimedOut)
    });
    if is_late {
        let message = "the body did not come within ten seconds".to_owned();
        return problem(StatusCode::REQUEST_TIMEOUT, message, WANTED.to_owned());
    }
    let message = "the body did not come as a whole".to_owned();
    problem(status, message, WANTED.to_owned())
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|value: &HeaderValue| value.to_str().ok());
    let kind = given.and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// The mark in `body`, or what was wrong and what was wanted.
fn read(body: &[u8], live: &Live, now_ms: u64) -> Result<Mark, (String, String)> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(("the body is no JSON object".to_owned(), WANTED.to_owned()));
    }
    let posted: Posted =
        serde_json::from_slice(body).map_err(|error| (error.to_string(), WANTED.to_owned()))?;
    let length = posted.text.chars().count();
    if plain(&posted.text).trim().is_empty() || length > LONGEST_MARK {
        let message = format!("`text` has {length} characters");
        return Err((message, format!("from 1 to {LONGEST_MARK}, not all spaces")));
    }
    let mut names: Vec<&str> = live.addresses().iter().map(|one| &*one.target).collect();
    names.dedup();
    if let Some(target) = &posted.target
        && !names.contains(&&**target)
    {
        let message = format!("there is no target `{target}`");
        return Err((
            message,
            format!("`{}`, or none for all", names.join("`, `")),
        ));
    }
    let at_ms = posted.at_unix_ms.unwrap_or(now_ms);
    if at_ms > now_ms.saturating_add(AHEAD_MS) {
        let message = format!("`at_unix_ms` is {at_ms}, and now is {now_ms}");
        return Err((
            message,
            "milliseconds since 1970, at most five minutes ahead".to_owned(),
        ));
    }
    let kind = (MarkKind::Posted, &*posted.text);
    let unix_ns = at_ms.saturating_mul(NANOS);
    Ok(Mark::new(unix_ns, posted.target.as_deref(), kind))
}
