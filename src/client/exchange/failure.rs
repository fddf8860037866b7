//! What ended an exchange before its response was read, in the words of the record.

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, Response, StatusCode, Version};

use super::super::protocol::{error_in_body, request_error};
use super::super::watch::Gone;
use crate::measurement::{Outcome, RequestError, Timeline};
use crate::transport::{ConnectError, SendFailure};

/// What ended an exchange.
pub(super) struct Failed(pub(super) Outcome, pub(super) Option<RequestError>);

impl From<(Gone, Outcome)> for Failed {
    fn from((gone, late): (Gone, Outcome)) -> Self {
        match gone {
            Gone::Late => Self(late, None),
            Gone::Cancelled => Self(Outcome::Cancelled, None),
        }
    }
}

impl Failed {
    /// No connection; notes in `timeline` how far it came.
    pub(super) fn not_opened(error: &ConnectError, timeline: &mut Timeline) -> Self {
        let (outcome, kind) = match error {
            ConnectError::Dns { .. } => (Outcome::Dns, "name resolution".to_owned()),
            ConnectError::Refused {
                source, resolved, ..
            } => {
                timeline.resolved = *resolved;
                (Outcome::Connect, source.kind().to_string())
            }
            ConnectError::Proxy { resolved, .. } => {
                timeline.resolved = *resolved;
                (Outcome::Connect, "proxy".to_owned())
            }
            ConnectError::Tls {
                resolved,
                connected,
                ..
            } => {
                timeline.resolved = *resolved;
                timeline.connected = Some(*connected);
                (Outcome::Tls, "handshake".to_owned())
            }
        };
        Self(outcome, Some(request_error(&kind, &error.to_string())))
    }

    /// A request that got no response head.
    pub(super) fn not_answered(failure: &SendFailure) -> Self {
        let (outcome, message) = match failure {
            SendFailure::Unsent => (
                Outcome::Connect,
                "closed before the request was written".to_owned(),
            ),
            SendFailure::Tls(alert) => {
                return Self(Outcome::Tls, Some(request_error("alert", alert)));
            }
            SendFailure::Broken(error) if error.is_parse() => {
                (Outcome::Malformed, with_source(error))
            }
            SendFailure::Broken(error) => (Outcome::StreamCut, with_source(error)),
        };
        Self(outcome, Some(broken(&message)))
    }
}

pub(super) fn broken(message: &str) -> RequestError {
    request_error("connection broken", message)
}

/// hyper's message and the errors below it.
pub(super) fn with_source(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Whether only the end of the connection ends the body.
pub(super) fn ends_with_connection(response: &Response<Incoming>) -> bool {
    response.version() < Version::HTTP_2
        && response.body().size_hint().exact().is_none()
        && !response.headers().contains_key(header::TRANSFER_ENCODING)
}

/// Why a response is not a success: what its body says, or else its head.
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> RequestError {
    if status.is_redirection() {
        return redirect(status, headers.get(LOCATION));
    }
    error_in_body(body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let wait = headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let message = match (text.trim(), wait) {
            ("", Some(wait)) => format!("{status}, retry after {wait}"),
            ("", None) => status.to_string(),
            (text, _) => text.to_owned(),
        };
        request_error("status", &message)
    })
}

/// A redirect is not followed: what would be measured is another server.
fn redirect(status: StatusCode, location: Option<&HeaderValue>) -> RequestError {
    let message = match location {
        Some(location) => {
            let location = String::from_utf8_lossy(location.as_bytes());
            format!("{status} to `{}`, not followed", without_secrets(&location))
        }
        None => format!("{status} without a location"),
    };
    request_error("redirect", &message)
}

/// `url` without user information and query: both may hold credentials.
fn without_secrets(url: &str) -> String {
    let (address, has_query) = match url.split_once(['?', '#']) {
        Some((address, _)) => (address, true),
        None => (url, false),
    };
    let start = address.find("//").map_or(0, |at| at + 2);
    let (scheme, rest) = address.split_at(start);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) if start > 0 => host,
        _ => authority,
    };
    let query = if has_query { "?…" } else { "" };
    format!("{scheme}{host}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_without_what_may_be_secret() {
        for (location, shown) in [
            ("https://gw.example/v1/chat", "https://gw.example/v1/chat"),
            (
                "https://u:p@gw.example/v1?sig=abc",
                "https://gw.example/v1?…",
            ),
            ("//u@gw/x", "//gw/x"),
            ("/login@home?next=1#x", "/login@home?…"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(location), shown);
        }
    }
}
