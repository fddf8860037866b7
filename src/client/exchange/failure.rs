//! What ended an exchange before its response was read, in the words of the record.

use hyper::header::{HeaderValue, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};

use super::super::protocol::{error_in_body, request_error};
use super::super::watch::Gone;
use super::Exchange;
use crate::measurement::{Note, Outcome, RefusedReason, RequestError, Timeline, is_own_lag};
use crate::transport::{
    ConnectError, Endpoint, Marks, Reached, SendFailure, Spoken, Step, with_source,
};

/// The kind of error of a server that closes and says nothing.
const CLOSED: &str = "closed without an answer";

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
        if error.is_own_limit() {
            return Self(
                Outcome::Refused,
                Some(request_error("own limit", &error.to_string())),
            );
        }
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
                kind,
                ..
            } => {
                timeline.resolved = *resolved;
                timeline.connected = Some(*connected);
                (Outcome::Tls, (*kind).to_owned())
            }
        };
        Self(outcome, Some(request_error(&kind, &error.to_string())))
    }

    /// The opening of a connection was given up; notes in `timeline` how far it came.
    pub(super) fn given_up(
        gone: Gone,
        (endpoint, reached): (&Endpoint, Reached),
        timeline: &mut Timeline,
    ) -> Self {
        timeline.resolved = reached.resolved;
        timeline.connected = reached.connected;
        if gone == Gone::Cancelled {
            return Self(Outcome::Cancelled, None);
        }
        let (url, proxy) = (endpoint.url(), &endpoint.network().proxy);
        let (kind, message) = match (reached.step, proxy) {
            (Step::Name, _) => ("no name", "the name was not resolved in time".to_owned()),
            (Step::Address, None) => (
                "no answer",
                format!("`{}` did not take the connection in time", url.authority()),
            ),
            (Step::Address, Some(proxy)) => (
                "no answer",
                format!(
                    "the proxy `{}` did not take the connection in time",
                    proxy.url.authority()
                ),
            ),
            (Step::Tunnel, _) => (
                "silent proxy",
                "the proxy took the connection and did not answer `CONNECT` in time".to_owned(),
            ),
            (Step::Tls, _) => (
                "silent TLS",
                "connected; the TLS handshake was not answered in time".to_owned(),
            ),
        };
        Self(Outcome::TimeoutConnect, Some(request_error(kind, &message)))
    }

    /// A request that got no response head.
    pub(super) fn not_answered(failure: &SendFailure, marks: &Marks) -> Self {
        let (outcome, message) = match failure {
            SendFailure::Unsent => {
                let message = "closed before the request was written";
                let error = request_error(CLOSED, message);
                return Self(Outcome::Connect, Some(error));
            }
            SendFailure::Tls(alert) => {
                return Self(Outcome::Tls, Some(request_error("alert", alert)));
            }
            SendFailure::Other { theirs, ours } => {
                return Self(Outcome::Malformed, Some(other_protocol(*theirs, *ours)));
            }
            SendFailure::Broken(error) if error.is_parse() => {
                (Outcome::Malformed, with_source(error))
            }
            SendFailure::Broken(error) if marks.first_read().is_none() => {
                let message = with_source(error);
                let error = request_error(CLOSED, &message);
                return Self(Outcome::StreamCut, Some(error));
            }
            SendFailure::Broken(error) => (Outcome::StreamCut, with_source(error)),
        };
        Self(outcome, Some(broken(&message)))
    }
}

impl Exchange<'_> {
    /// Notes how the exchange failed.
    pub(super) fn fail(&mut self, Failed(outcome, error): Failed) {
        let now = self.client.setup.anchor.now();
        let record = &mut self.record;
        record.outcome = outcome;
        record.error = record.error.take().or(error);
        record.timeline.end = Some(now);
        if is_own_lag(self.watch.overslept(), now.since(self.start)) {
            record.notes.add(Note::LateTimer);
        }
        if outcome == Outcome::Refused {
            // Nothing left this machine: there is nothing to tell of a server.
            record.refused = Some(RefusedReason::OwnLimit);
            record.timeline = Timeline::due(record.timeline.intended);
        }
    }
}

/// The server was spoken to in `ours`.
fn other_protocol(theirs: Spoken, ours: Spoken) -> RequestError {
    let (theirs, ours) = (theirs.name(), ours.name());
    let message = format!("the server speaks {theirs}, and was spoken to in {ours}");
    request_error(&format!("speaks {theirs}"), &message)
}

pub(super) fn broken(message: &str) -> RequestError {
    request_error("connection broken", message)
}

/// Why a response is not a success: what its body says, or else its head.
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> RequestError {
    if status.is_redirection() {
        return redirect(status, headers.get(LOCATION));
    }
    if status == StatusCode::BAD_REQUEST && is_of_tls_port(body) {
        return other_protocol(Spoken::Tls, Spoken::Http1);
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

/// Whether a body is what ports of TLS answer to plain HTTP: nginx, Apache, Go.
fn is_of_tls_port(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    [
        "The plain HTTP request was sent to HTTPS port",
        "speaking plain HTTP to an SSL-enabled server port",
        "Client sent an HTTP request to an HTTPS server",
    ]
    .iter()
    .any(|said| text.contains(said))
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
