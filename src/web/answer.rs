//! Answers that are the same everywhere: errors as JSON, and the headers on every response.
//!
//! An error says what was given and what was wanted, as every message of ours does.

use std::net::IpAddr;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

const WANTED_PATHS: &str = "`/`, `/metrics`, `/healthz`, `/readyz`, `/api/v1/status`, `/api/v1/streams`, `/api/v1/findings`, `/api/v1/marks` or `/api/v1/requests`";

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
        "`GET`, or `POST` at `/api/v1/marks`".to_owned(),
    )
}

/// Lets a request pass that names one host, as HTTP/1.1 demands it (RFC 9112, 3.2).
pub(super) async fn one_host(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match (request.version(), hosts) {
        (Version::HTTP_11, 0) => problem(
            StatusCode::BAD_REQUEST,
            "the request names no host".to_owned(),
            "a header `host`, as HTTP/1.1 demands it".to_owned(),
        ),
        (_, 0 | 1) => next.run(request).await,
        (_, hosts) => problem(
            StatusCode::BAD_REQUEST,
            format!("the request names a host {hosts} times"),
            "one header `host`".to_owned(),
        ),
    }
}

/// Lets a request pass that names this machine as its host. A page from elsewhere whose name was
/// made to lead here (DNS rebinding) names itself.
pub(super) async fn own_host(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    match host.map(HeaderValue::to_str) {
        None => next.run(request).await,
        Some(Ok(host)) if is_loopback(host) => next.run(request).await,
        Some(host) => problem(
            StatusCode::FORBIDDEN,
            format!("this page is not `{}`", host.unwrap_or("?")),
            "`localhost` or a loopback address as the host".to_owned(),
        ),
    }
}

/// Whether `host`, perhaps with a port, names this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for (host, own) in [
            ("localhost", true),
            ("LOCALHOST:9464", true),
            ("canary.localhost:9464", true),
            ("localhost.:1", true),
            ("127.0.0.1:9464", true),
            ("127.8.0.1", true),
            ("[::1]:9464", true),
            ("[::ffff:127.0.0.1]", true),
            ("evil.example:9464", false),
            ("localhost.evil.example", false),
            ("notlocalhost", false),
            ("127.0.0.1.evil.example", false),
            ("192.168.0.9", false),
            ("[2001:db8::1]", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host), own, "{host}");
        }
    }
}
