//! What to look at first when a request did not end well.
//!
//! One sentence per outcome, addressed to whoever wrote the configuration. Knows nothing of the
//! configuration itself, so it names keys but quotes no values.

use crate::measurement::{Outcome, RefusedReason, RequestRecord};

/// Where to look first; `None` for a request that ended well.
#[must_use]
pub fn hint(record: &RequestRecord) -> Option<&'static str> {
    Some(match record.outcome {
        Outcome::Ok => return None,
        Outcome::HttpStatus => status_hint(record.http_status),
        Outcome::Dns => "the host name did not resolve: check the host in `url`",
        Outcome::Connect => {
            "no connection: is the server running, and are host and port in `url` right?"
        }
        Outcome::Tls => {
            "the TLS handshake failed: is this port a TLS port, and its certificate trusted? see `tls.ca` and `tls.server_name`"
        }
        Outcome::TimeoutConnect => {
            "nothing answered the connection: a firewall, a wrong address, or raise `limits.connect`"
        }
        Outcome::TimeoutFirstToken => {
            "no token in time: the server is overloaded or hung, or raise `limits.first_token`"
        }
        Outcome::TimeoutGap => {
            "the stream stopped between tokens: the server hung, or raise `limits.gap`"
        }
        Outcome::TimeoutTotal => {
            "the answer did not end in time: ask for fewer output tokens, or raise `limits.total`"
        }
        Outcome::StreamCut => {
            "the connection ended in the middle of the answer: look for a crash or a proxy timeout"
        }
        Outcome::StreamError => "the server gave an error inside the stream: see its log",
        Outcome::NotAStream => {
            "the answer came in one piece: does something on the way buffer it? or set `streaming: false`"
        }
        Outcome::Malformed => {
            "the answer is not of this protocol: does `url` point at the inference server itself?"
        }
        Outcome::Empty => "the answer ended without a token: check the model and its chat template",
        Outcome::Refused => refused_hint(record.refused),
        Outcome::Cancelled => "given up because the canary was stopping",
    })
}

const fn status_hint(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => "the server wants credentials: check `api_key`",
        Some(404) => "not found: check the path in `url` and the name in `model`",
        Some(400 | 422) => {
            "the server does not accept the request: check `model` and the token counts, or leave fields out with `request.exact_length` and `request.usage`"
        }
        Some(429) => "the server limits requests: lower the rate or raise its limit",
        Some(502..=504) => "the server is loading, overloaded, or gone behind its gateway",
        Some(300..=399) => "a redirect is not followed: put the final address in `url`",
        _ => "the server failed: see its log",
    }
}

const fn refused_hint(reason: Option<RefusedReason>) -> &'static str {
    match reason {
        Some(RefusedReason::InFlight) => {
            "not sent: `governor.in_flight` requests were under way already"
        }
        Some(RefusedReason::Budget) => {
            "not sent: a budget of the day is used up, see `governor.requests_per_day` and `governor.tokens_per_day`"
        }
        Some(RefusedReason::Shutdown) => "not sent: the canary was stopping",
        None => "not sent: the governor held it back",
    }
}
