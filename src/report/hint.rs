//! What to look at first when a request did not end well.
//!
//! One sentence per outcome, addressed to whoever wrote the configuration. Knows nothing of the
//! configuration itself, so it names keys but quotes no values.

use crate::measurement::{Outcome, RefusedReason, RequestRecord};

/// Where to look first; `None` for a request that ended well.
#[must_use]
pub fn hint(record: &RequestRecord) -> Option<&'static str> {
    let kind = record.error.as_ref().map_or("", |error| &*error.kind);
    Some(match record.outcome {
        Outcome::Ok => return None,
        _ if kind.starts_with("speaks ") => spoken_hint(kind),
        Outcome::StreamCut | Outcome::Connect if kind == "closed without an answer" => {
            "not a byte came back: a crash, a port of TLS (then `https://` in `url`), or another version of HTTP (see `http`)"
        }
        Outcome::HttpStatus => status_hint(record.http_status),
        Outcome::Dns => "the host name did not resolve: check the host in `url`",
        Outcome::Connect if kind == "proxy" => {
            "the proxy gave no way to the server: see `proxy`, its `authorization`, and what it lets through"
        }
        Outcome::Connect => {
            "no connection: is the server running, and are host and port in `url` right?"
        }
        Outcome::Tls => tls_hint(kind),
        Outcome::TimeoutConnect => connect_hint(kind),
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

/// No TLS, by the kind of failure.
fn tls_hint(kind: &str) -> &'static str {
    match kind {
        "not TLS" => "this is no port of TLS: `http://` in `url`, or another port",
        "HTTP version" => {
            "leave `http` out, or set it to what the server speaks: `1.1`, `2` or `auto`"
        }
        "untrusted certificate" => {
            "name the file of the CA that signed it under `tls.ca`; a certificate that signed itself can be named there if it is no CA"
        }
        "certificate of a CA" => {
            "make the server a certificate of its own, signed by that CA and with `CA:FALSE` (`openssl req -x509` alone makes a CA), and name the CA under `tls.ca`"
        }
        "expired certificate" => "the server needs a new certificate",
        "other name" => {
            "its certificate is for another name: put that name into `url`, or under `tls.server_name`"
        }
        _ => {
            "the TLS handshake failed: is this port a TLS port, and its certificate trusted? see `tls.ca` and `tls.server_name`"
        }
    }
}

/// `limits.connect` passed, by what was waited for.
fn connect_hint(kind: &str) -> &'static str {
    match kind {
        "silent TLS" => {
            "TCP works, TLS does not: is this a port of TLS, and does its process hang? else raise `limits.connect`"
        }
        "silent proxy" => {
            "the proxy is there and says nothing: is `proxy` an HTTP proxy, and can it reach the server?"
        }
        "no name" => "the name server does not answer: check the resolver of this machine",
        _ => {
            "nothing answered the connection: a firewall, a wrong address, or raise `limits.connect`"
        }
    }
}

/// The server speaks something else than it was spoken to in.
fn spoken_hint(kind: &str) -> &'static str {
    match kind {
        "speaks TLS" => "this is a port of TLS: `https://` in `url`",
        "speaks HTTP/2" => "the server takes HTTP/2 only: set `http: 2`",
        _ => "the server does not know HTTP/2: leave `http` out, or set it to `1.1`",
    }
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
        Some(RefusedReason::OwnLag) => {
            "not sent: the canary itself was late, and its requests came all at once; give it more of the machine"
        }
        Some(RefusedReason::OwnLimit) => {
            "not sent: this machine has no more file descriptors, ports or memory for connections; raise `ulimit -n`, or send less at a time"
        }
        None => "not sent: the governor held it back",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, stream};
    use crate::measurement::RequestError;

    #[test]
    fn a_failure_of_the_way_names_the_key_that_mends_it() {
        for (outcome, kind, part) in [
            (Outcome::Malformed, "speaks TLS", "`https://`"),
            (Outcome::HttpStatus, "speaks TLS", "`https://`"),
            (Outcome::Malformed, "speaks HTTP/2", "`http: 2`"),
            (Outcome::Malformed, "speaks HTTP/1.1", "`1.1`"),
            (Outcome::StreamCut, "closed without an answer", "`https://`"),
            (Outcome::Connect, "closed without an answer", "`http`"),
            (Outcome::StreamCut, "connection broken", "in the middle"),
            (Outcome::Tls, "not TLS", "`http://`"),
            (Outcome::Tls, "HTTP version", "`auto`"),
            (Outcome::Tls, "certificate of a CA", "`CA:FALSE`"),
            (Outcome::Tls, "untrusted certificate", "`tls.ca`"),
            (Outcome::Tls, "other name", "`tls.server_name`"),
            (Outcome::Tls, "handshake", "`tls.ca`"),
            (Outcome::TimeoutConnect, "silent TLS", "TCP works"),
            (Outcome::TimeoutConnect, "silent proxy", "`proxy`"),
            (Outcome::TimeoutConnect, "no answer", "firewall"),
            (Outcome::Connect, "proxy", "`authorization`"),
            (Outcome::Connect, "connection refused", "host and port"),
        ] {
            let mut record = failed(&stream(0), 0, outcome, None).record;
            record.error = Some(RequestError {
                kind: kind.into(),
                message: "".into(),
            });
            let given = hint(&record).expect("it failed");
            assert!(given.contains(part), "{outcome:?} {kind}: {given}");
        }
    }
}
