//! Answers that are the same everywhere: errors as JSON, and the headers on every response.
//!
//! An error says what was given and what was wanted, as every message of ours does.

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

const WANTED_PATHS: &str = "`/`, `/metrics`, `/healthz`, `/readyz`, `/api/v1/status`, `/api/v1/streams` or `/api/v1/requests`";

/// Only what we serve ourselves: no script in markup, no frame around us, nothing from elsewhere.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Serialize)]
struct Problem {
    error: Message,
}

#[derive(Serialize)]
struct Message {
    message: String,
    wanted: String,
}

/// An error: what was given, and what was wanted instead.
pub(super) fn problem(status: StatusCode, message: String, wanted: String) -> Response {
    let error = Message { message, wanted };
    (status, Json(Problem { error })).into_response()
}

pub(super) async fn not_found(uri: Uri) -> Response {
    problem(
        StatusCode::NOT_FOUND,
        format!("nothing is at `{}`", uri.path()),
        WANTED_PATHS.to_owned(),
    )
}

pub(super) async fn not_exposed(uri: Uri) -> Response {
    problem(
        StatusCode::NOT_FOUND,
        format!(
            "`{}` does not answer beyond loopback, because there is no authentication",
            uri.path()
        ),
        "`/metrics`, `/healthz` or `/readyz`; for the page listen on a loopback address and forward the port".to_owned(),
    )
}

pub(super) async fn wrong_method(method: Method, uri: Uri) -> Response {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("`{}` does not take `{method}`", uri.path()),
        "`GET`".to_owned(),
    )
}

/// Adds the headers that every response has.
pub(super) async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
