//! What a receiver's answer to one batch means.
//!
//! Only a decodable success says that spans were taken. A web page with status 200 is some
//! other server, so its batch counts as failed and not as sent. Pure.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use crate::transport::fetch::{FetchError, Fetched};

/// How one try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The batch was taken, but for `rejected` of its spans.
    Taken {
        /// Spans refused, as the receiver counts them.
        rejected: u64,
        /// What the receiver says about it.
        message: String,
    },
    /// It may work later; at the earliest after `after`, if the receiver said so.
    TryAgain {
        /// From `Retry-After`.
        after: Option<Duration>,
        /// What happened.
        reason: String,
    },
    /// It will not work.
    Hopeless {
        /// What happened.
        reason: String,
    },
}

impl Answer {
    /// Reads the result of one request.
    pub(super) fn new(result: &Result<Fetched, FetchError>) -> Self {
        match result {
            Ok(fetched) if fetched.status.is_success() => Self::of_success(&fetched.body),
            Ok(fetched) => Self::of_status(fetched.status.as_u16(), &fetched.headers),
            Err(error @ (FetchError::Connect(_) | FetchError::Timeout | FetchError::Broken(_))) => {
                Self::TryAgain {
                    after: None,
                    reason: error.to_string(),
                }
            }
            Err(error) => Self::Hopeless {
                reason: error.to_string(),
            },
        }
    }

    fn of_success(body: &[u8]) -> Self {
        match ExportTraceServiceResponse::decode(body) {
            Ok(response) => {
                let partial = response.partial_success.unwrap_or_default();
                Self::Taken {
                    rejected: u64::try_from(partial.rejected_spans).unwrap_or(0),
                    message: partial.error_message,
                }
            }
            Err(_) => Self::Hopeless {
                reason:
                    "the answer is not OTLP; wanted the URL of an OTLP/HTTP receiver for traces"
                        .to_owned(),
            },
        }
    }

    /// The statuses that OTLP/HTTP declares retryable; all others are final.
    fn of_status(status: u16, headers: &HeaderMap) -> Self {
        let reason = format!("status {status}");
        match status {
            429 | 502..=504 => Self::TryAgain {
                after: retry_after(headers),
                reason,
            },
            _ => Self::Hopeless { reason },
        }
    }
}

/// `Retry-After` in seconds. Its other form, a date, needs a clock that agrees with ours; it
/// is left to the backoff.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::StatusCode;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;
    use crate::clock::MonoTime;

    fn answer(status: u16, header: Option<&'static str>, body: impl Into<Bytes>) -> Answer {
        let mut headers = HeaderMap::new();
        if let Some(text) = header {
            headers.insert(RETRY_AFTER, text.parse().expect("a header value"));
        }
        Answer::new(&Ok(Fetched {
            status: StatusCode::from_u16(status).expect("a status"),
            headers,
            body: body.into(),
            finished_at: MonoTime::ZERO,
        }))
    }

    fn partial(rejected_spans: i64) -> Vec<u8> {
        ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: "too old".to_owned(),
            }),
        }
        .encode_to_vec()
    }

    #[test]
    fn a_success_tells_how_many_were_rejected() {
        for (body, rejected, message) in [
            (Vec::new(), 0, ""),
            (partial(0), 0, "too old"),
            (partial(3), 3, "too old"),
            (partial(-1), 0, "too old"),
        ] {
            let message = message.to_owned();
            assert_eq!(answer(200, None, body), Answer::Taken { rejected, message });
        }
    }

    #[test]
    fn a_web_page_is_not_a_receiver() {
        for body in ["<!DOCTYPE html><html></html>", "<html>", "ok", "{}"] {
            let answer = answer(200, None, body);
            assert!(matches!(answer, Answer::Hopeless { .. }), "{body}");
        }
    }

    #[test]
    fn only_passing_troubles_are_tried_again() {
        for (status, header, seconds) in [
            (429, Some("7"), Some(7)),
            (502, None, None),
            (503, Some(" 1 "), Some(1)),
            (503, Some("Sun, 29 Nov 2026 12:00:00 GMT"), None),
            (504, Some("-3"), None),
        ] {
            let wanted = Answer::TryAgain {
                after: seconds.map(Duration::from_secs),
                reason: format!("status {status}"),
            };
            assert_eq!(answer(status, header, ""), wanted);
        }
        for status in [302, 400, 401, 404, 413, 500, 501] {
            let answer = answer(status, Some("1"), "");
            assert!(matches!(answer, Answer::Hopeless { .. }), "{status}");
        }
    }

    #[test]
    fn a_lost_connection_is_tried_again_and_a_bad_request_is_not() {
        for error in [
            FetchError::Connect("refused".to_owned()),
            FetchError::Timeout,
            FetchError::Broken("reset".to_owned()),
        ] {
            assert!(matches!(
                Answer::new(&Err(error)),
                Answer::TryAgain { after: None, .. }
            ));
        }
        let error = FetchError::Request("no host".to_owned());
        assert!(matches!(Answer::new(&Err(error)), Answer::Hopeless { .. }));
    }
}
