//! Why a try failed: the closed set of reasons that is a label.

use crate::transport::fetch::FetchError;

/// Why a receiver did not take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The message or the URL cannot be sent.
    Unsendable,
    /// No connection.
    Connect,
    /// No trust, on either side.
    Tls,
    /// No whole answer in time.
    Timeout,
    /// The connection broke, or half an answer came.
    Broken,
    /// It asks for less: 429, or `RESOURCE_EXHAUSTED`.
    Throttled,
    /// It cannot just now: 502 to 504, `UNAVAILABLE` and the like.
    Unavailable,
    /// The message is too large for it: 413.
    TooLarge,
    /// It does not know us: 401 or 403, and their like in gRPC.
    Unauthorized,
    /// It refuses the message: any other 4xx, `INVALID_ARGUMENT` and the like.
    Refused,
    /// It failed: 500 and the like.
    ServerError,
    /// What answers is not an OTLP receiver.
    NotOtlp,
}

impl Reason {
    /// The label.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unsendable => "unsendable",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::TooLarge => "too_large",
            Self::Unauthorized => "unauthorized",
            Self::Refused => "refused",
            Self::ServerError => "server_error",
            Self::NotOtlp => "not_otlp",
        }
    }

    /// The reason why there was no whole answer.
    pub(super) const fn of_error(error: &FetchError) -> Self {
        match error {
            FetchError::Client(_) | FetchError::Request(_) => Self::Unsendable,
            FetchError::Connect(_) => Self::Connect,
            FetchError::Tls(_) => Self::Tls,
            FetchError::Timeout => Self::Timeout,
            FetchError::Broken(_) => Self::Broken,
            FetchError::TooLarge { .. } => Self::NotOtlp,
        }
    }

    /// The reason behind a status of HTTP that is no success.
    pub(super) const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Unauthorized,
            413 => Self::TooLarge,
            429 => Self::Throttled,
            502..=504 => Self::Unavailable,
            404 | 405 | 200..=399 => Self::NotOtlp,
            400..=499 => Self::Refused,
            _ => Self::ServerError,
        }
    }

    /// The reason behind a status of gRPC that is no success.
    pub(super) const fn of_code(code: u32) -> Self {
        match code {
            // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
            1 | 4 | 10 | 11 | 14 | 15 => Self::Unavailable,
            // RESOURCE_EXHAUSTED
            8 => Self::Throttled,
            // PERMISSION_DENIED, UNAUTHENTICATED
            7 | 16 => Self::Unauthorized,
            // INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION
            3 | 5 | 6 | 9 => Self::Refused,
            // UNIMPLEMENTED: a server of gRPC that has no such service.
            12 => Self::NotOtlp,
            _ => Self::ServerError,
        }
    }
}
