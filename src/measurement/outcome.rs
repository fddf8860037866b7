//! What can become of an arrival: a closed set, and what each outcome counts for.

use serde::{Deserialize, Serialize};

/// What became of one arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered, whole, with tokens.
    Ok,
    /// A status other than 2xx.
    HttpStatus,
    /// The host name did not resolve.
    Dns,
    /// No connection, or it broke before the request was written.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// No connection within `limits.connect`.
    TimeoutConnect,
    /// No token within `limits.first_token`.
    TimeoutFirstToken,
    /// No further token within `limits.gap`.
    TimeoutGap,
    /// Not finished within `limits.total`.
    TimeoutTotal,
    /// Ended without a terminal event.
    StreamCut,
    /// An error event inside a 200, or a finish reason that says so.
    StreamError,
    /// Complete JSON where a stream was asked.
    NotAStream,
    /// HTML, or something that cannot be decoded.
    Malformed,
    /// Ended well, without any token.
    Empty,
    /// Held back by our own governor.
    Refused,
    /// Given up by our own shutdown or a planned cancellation.
    Cancelled,
}

impl Outcome {
    /// Every outcome, in the order in which tables show them.
    pub const ALL: [Self; 16] = [
        Self::Ok,
        Self::HttpStatus,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::TimeoutConnect,
        Self::TimeoutFirstToken,
        Self::TimeoutGap,
        Self::TimeoutTotal,
        Self::StreamCut,
        Self::StreamError,
        Self::NotAStream,
        Self::Malformed,
        Self::Empty,
        Self::Refused,
        Self::Cancelled,
    ];

    /// The HTTP status that a record of this outcome usually has: 200 where a response had begun
    /// well, `None` where there was none yet. An outcome that is a status has no usual one.
    #[must_use]
    pub const fn usual_status(self) -> Option<u16> {
        match self {
            Self::Ok
            | Self::TimeoutGap
            | Self::StreamCut
            | Self::StreamError
            | Self::NotAStream
            | Self::Malformed
            | Self::Empty => Some(200),
            Self::HttpStatus
            | Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::TimeoutConnect
            | Self::TimeoutFirstToken
            | Self::TimeoutTotal
            | Self::Refused
            | Self::Cancelled => None,
        }
    }

    /// The name in records, labels and span attributes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::HttpStatus => "http_status",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::TimeoutConnect => "timeout_connect",
            Self::TimeoutFirstToken => "timeout_first_token",
            Self::TimeoutGap => "timeout_gap",
            Self::TimeoutTotal => "timeout_total",
            Self::StreamCut => "stream_cut",
            Self::StreamError => "stream_error",
            Self::NotAStream => "not_a_stream",
            Self::Malformed => "malformed",
            Self::Empty => "empty",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why we held an arrival back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// The target's in-flight cap was full: the server was slower than the load.
    InFlight,
    /// A budget of requests or tokens per day was used up.
    Budget,
    /// We were stopping.
    Shutdown,
    /// The cap was full because we came late: arrivals that were spread over a stall of ours came
    /// to it at once.
    OwnLag,
    /// This machine had no descriptor, port or memory for another connection.
    OwnLimit,
}

impl RefusedReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::InFlight,
        Self::Budget,
        Self::Shutdown,
        Self::OwnLag,
        Self::OwnLimit,
    ];

    /// The name in records and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Budget => "budget",
            Self::Shutdown => "shutdown",
            Self::OwnLag => "own_lag",
            Self::OwnLimit => "own_limit",
        }
    }

    /// Whether the server caused it, so that it counts as an exceedance.
    #[must_use]
    pub const fn is_censored_sample(self) -> bool {
        matches!(self, Self::InFlight)
    }
}
