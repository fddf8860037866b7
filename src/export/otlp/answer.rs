//! What a receiver's answer to one message means, in all three protocols.
//!
//! Only a decodable success says that something was taken. A web page with status 200 is some
//! other server, so its message counts as failed and not as sent. Pure.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use prost::Message;
use serde::Deserialize;

use super::grpc;
use super::reason::Reason;
use crate::config::OtlpProtocol;
use crate::transport::fetch::{FetchError, Fetched};

/// How one try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The message was taken, but for `rejected` of its items.
    Taken {
        /// Items refused, as the receiver counts them.
        rejected: u64,
        /// What the receiver says about it.
        message: String,
    },
    /// It may work later; at the earliest after `after`, if the receiver said so.
    TryAgain {
        /// The wait that the receiver asked for.
        after: Option<Duration>,
        trouble: Trouble,
    },
    /// It will not work.
    Hopeless { trouble: Trouble },
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) reason: Reason,
    /// In words, for the log.
    pub(super) text: String,
}

impl Trouble {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            reason,
            text: text.into(),
        }
    }

    fn not_otlp() -> Self {
        let text = "the answer is not OTLP; wanted the URL of an OTLP receiver";
        Self::new(Reason::NotOtlp, text)
    }
}

/// The answers of the three signals: each has one field, whose fields have the same numbers.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The same in JSON, where the count has the name of its items and may be a text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonResponse {
    partial_success: Option<JsonPartialSuccess>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonPartialSuccess {
    #[serde(
        default,
        alias = "rejectedSpans",
        alias = "rejectedDataPoints",
        alias = "rejectedLogRecords"
    )]
    rejected: JsonCount,
    #[serde(default)]
    error_message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonCount {
    Number(i64),
    Text(String),
}

impl Default for JsonCount {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<JsonResponse> for Response {
    fn from(json: JsonResponse) -> Self {
        let partial_success = json.partial_success.map(|partial| PartialSuccess {
            rejected: match partial.rejected {
                JsonCount::Number(count) => count,
                JsonCount::Text(text) => text.parse().unwrap_or(0),
            },
            error_message: partial.error_message,
        });
        Self { partial_success }
    }
}

impl Answer {
    /// Reads the result of one request.
    pub(super) fn new(protocol: OtlpProtocol, result: &Result<Fetched, FetchError>) -> Self {
        let fetched = match result {
            Ok(fetched) => fetched,
            Err(error) => return Self::of_error(error),
        };
        match protocol {
            _ if !fetched.status.is_success() => {
                Self::of_status(fetched.status.as_u16(), &fetched.headers)
            }
            OtlpProtocol::Grpc => Self::of_grpc(fetched),
            OtlpProtocol::HttpJson => Self::of_json(&fetched.body),
            // Some receivers answer in JSON whatever they were sent.
            OtlpProtocol::HttpProtobuf if is_json(&fetched.headers) => Self::of_json(&fetched.body),
            OtlpProtocol::HttpProtobuf => Self::of_protobuf(&fetched.body),
        }
    }

    fn of_error(error: &FetchError) -> Self {
        let reason = Reason::of_error(error);
        let trouble = Trouble::new(reason, error.to_string());
        match reason {
            Reason::Connect | Reason::Tls | Reason::Timeout | Reason::Broken => Self::TryAgain {
                after: None,
                trouble,
            },
            _ => Self::Hopeless { trouble },
        }
    }

    fn of_protobuf(body: &[u8]) -> Self {
        Response::decode(body).map_or_else(|_| Self::not_otlp(), Self::taken)
    }

    fn of_json(body: &[u8]) -> Self {
        if body.is_empty() {
            return Self::taken(Response::default());
        }
        serde_json::from_slice::<JsonResponse>(body)
            .map_or_else(|_| Self::not_otlp(), |json| Self::taken(json.into()))
    }

    fn of_grpc(fetched: &Fetched) -> Self {
        let Some(status) = grpc::status(&fetched.headers, &fetched.trailers) else {
            let trouble = if is_grpc(&fetched.headers) {
                Trouble::new(Reason::Broken, "the answer ended without a status")
            } else {
                Trouble::not_otlp()
            };
            return match trouble.reason {
                Reason::Broken => Self::TryAgain {
                    after: None,
                    trouble,
                },
                _ => Self::Hopeless { trouble },
            };
        };
        if status.code == 0 {
            return match grpc::unframed(&fetched.body) {
                Some(message) => Self::of_protobuf(message),
                None => Self::not_otlp(),
            };
        }
        let reason = Reason::of_code(status.code);
        let text = format!("gRPC status {}: {}", status.code, status.message);
        let trouble = Trouble::new(reason, text);
        // An exhausted resource is free again only where the receiver says when.
        let retryable = reason == Reason::Unavailable
            || reason == Reason::Throttled && status.retry_after.is_some();
        if retryable {
            Self::TryAgain {
                after: status.retry_after,
                trouble,
            }
        } else {
            Self::Hopeless { trouble }
        }
    }

    fn taken(response: Response) -> Self {
        let partial = response.partial_success.unwrap_or_default();
        Self::Taken {
            rejected: u64::try_from(partial.rejected).unwrap_or(0),
            message: partial.error_message,
        }
    }

    fn not_otlp() -> Self {
        Self::Hopeless {
            trouble: Trouble::not_otlp(),
        }
    }

    /// The statuses that OTLP declares retryable; all others are final.
    fn of_status(status: u16, headers: &HeaderMap) -> Self {
        let reason = Reason::of_status(status);
        let trouble = Trouble::new(reason, format!("status {status}"));
        match reason {
            Reason::Throttled | Reason::Unavailable => Self::TryAgain {
                after: retry_after(headers),
                trouble,
            },
            _ => Self::Hopeless { trouble },
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    has_type(headers, "application/json")
}

fn is_grpc(headers: &HeaderMap) -> bool {
    has_type(headers, "application/grpc")
}

fn has_type(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(wanted.as_bytes()))
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
    use hyper::header::{HeaderName, HeaderValue};
    use opentelemetry_proto::tonic::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse,
    };
    use opentelemetry_proto::tonic::collector::metrics::v1::{
        ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
    };
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceResponse,
    };

    use super::*;
    use crate::clock::MonoTime;

    type Headers = [(&'static str, &'static str)];

    fn map(pairs: &Headers) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    fn answer(
        protocol: OtlpProtocol,
        (status, headers): (u16, &Headers),
        body: impl Into<Bytes>,
        trailers: &Headers,
    ) -> Answer {
        let fetched = Fetched {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: map(headers),
            body: body.into(),
            trailers: map(trailers),
            finished_at: MonoTime::ZERO,
        };
        Answer::new(protocol, &Ok(fetched))
    }

    fn posted(status: u16, headers: &Headers, body: impl Into<Bytes>) -> Answer {
        answer(OtlpProtocol::HttpProtobuf, (status, headers), body, &[])
    }

    fn taken(rejected: u64, message: &str) -> Answer {
        let message = message.to_owned();
        Answer::Taken { rejected, message }
    }

    fn reason(answer: &Answer) -> Option<(&'static str, bool)> {
        match answer {
            Answer::Taken { .. } => None,
            Answer::TryAgain { trouble, .. } => Some((trouble.reason.name(), true)),
            Answer::Hopeless { trouble } => Some((trouble.reason.name(), false)),
        }
    }

    /// A partial success of traces, as another's code writes it.
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
            assert_eq!(posted(200, &[], body), taken(rejected, message));
        }
        let metrics = ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points: 7,
                error_message: "full".to_owned(),
            }),
        };
        assert_eq!(posted(200, &[], metrics.encode_to_vec()), taken(7, "full"));
        let logs = ExportLogsServiceResponse {
            partial_success: Some(ExportLogsPartialSuccess {
                rejected_log_records: 2,
                error_message: String::new(),
            }),
        };
        assert_eq!(posted(202, &[], logs.encode_to_vec()), taken(2, ""));
    }

    #[test]
    fn json_says_the_same_with_a_number_or_a_text() {
        for (body, rejected, message) in [
            ("", 0, ""),
            ("{}", 0, ""),
            (r#"{"partialSuccess":{}}"#, 0, ""),
            (
                r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#,
                3,
                "x",
            ),
            (r#"{"partialSuccess":{"rejectedDataPoints":4}}"#, 4, ""),
            (
                r#"{"partialSuccess":{"rejectedLogRecords":"5"},"more":1}"#,
                5,
                "",
            ),
        ] {
            let read = answer(OtlpProtocol::HttpJson, (200, &[]), body, &[]);
            assert_eq!(read, taken(rejected, message), "{body}");
            let kind = [("content-type", "application/json; charset=utf-8")];
            assert_eq!(posted(200, &kind, body), read, "{body}");
        }
    }

    #[test]
    fn a_web_page_is_not_a_receiver() {
        for body in ["<!DOCTYPE html><html></html>", "<html>", "ok", "{}"] {
            let answer = posted(200, &[("content-type", "text/html")], body);
            assert_eq!(reason(&answer), Some(("not_otlp", false)), "{body}");
        }
        for protocol in [OtlpProtocol::HttpJson, OtlpProtocol::Grpc] {
            let answer = answer(
                protocol,
                (200, &[("content-type", "text/html")]),
                "<html>",
                &[],
            );
            assert_eq!(reason(&answer), Some(("not_otlp", false)), "{protocol:?}");
        }
    }

    #[test]
    fn only_passing_troubles_are_tried_again() {
        for (status, header, seconds, name) in [
            (429, "7", Some(7), "throttled"),
            (502, "", None, "unavailable"),
            (503, " 1 ", Some(1), "unavailable"),
            (503, "Sun, 29 Nov 2026 12:00:00 GMT", None, "unavailable"),
            (504, "-3", None, "unavailable"),
        ] {
            let answer = posted(status, &[("retry-after", header)], "");
            assert_eq!(reason(&answer), Some((name, true)), "{status}");
            let Answer::TryAgain { after, .. } = answer else {
                panic!("{status}: {answer:?}");
            };
            assert_eq!(after, seconds.map(Duration::from_secs), "{status} {header}");
        }
        for (status, name) in [
            (302, "not_otlp"),
            (400, "refused"),
            (401, "unauthorized"),
            (403, "unauthorized"),
            (404, "not_otlp"),
            (413, "too_large"),
            (422, "refused"),
            (500, "server_error"),
            (501, "server_error"),
        ] {
            let answer = posted(status, &[("retry-after", "1")], "");
            assert_eq!(reason(&answer), Some((name, false)), "{status}");
        }
    }

    #[test]
    fn grpc_says_it_with_a_status_of_its_own() {
        const KIND: [(&str, &str); 1] = [("content-type", "application/grpc")];
        let read = |body: &'static [u8], trailers: &Headers| {
            answer(OtlpProtocol::Grpc, (200, &KIND), body, trailers)
        };
        let ok = [("grpc-status", "0")];
        assert_eq!(read(&[0, 0, 0, 0, 0], &ok), taken(0, ""));
        // Rejected: field 1, within it field 1 (5) and field 2 ("no").
        let partial = &[0, 0, 0, 0, 8, 0x0a, 6, 0x08, 5, 0x12, 2, b'n', b'o'];
        assert_eq!(read(partial, &ok), taken(5, "no"));
        assert_eq!(
            reason(&read(&[0, 0, 0, 0, 9, 1], &ok)),
            Some(("not_otlp", false))
        );
        assert_eq!(reason(&read(b"", &[])), Some(("broken", true)));
        for (code, wanted) in [
            ("1", ("unavailable", true)),
            ("3", ("refused", false)),
            ("4", ("unavailable", true)),
            ("7", ("unauthorized", false)),
            ("8", ("throttled", false)),
            ("12", ("not_otlp", false)),
            ("13", ("server_error", false)),
            ("14", ("unavailable", true)),
            ("16", ("unauthorized", false)),
        ] {
            let code: &'static str = code;
            assert_eq!(
                reason(&read(b"", &[("grpc-status", code)])),
                Some(wanted),
                "{code}"
            );
        }
    }

    #[test]
    fn an_exhausted_resource_is_asked_again_when_it_says_when() {
        let details = "CAgSCXNsb3cgZG93bho2Cih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5ycGMuUmV0cnlJbmZvEgoKCAgBEIDKte4B";
        let trailers = [("grpc-status", "8"), ("grpc-status-details-bin", details)];
        let answer = answer(OtlpProtocol::Grpc, (200, &[]), "", &trailers);
        let Answer::TryAgain { after, trouble } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(after, Some(Duration::from_millis(1500)));
        assert_eq!(trouble.reason, Reason::Throttled);
    }

    #[test]
    fn a_lost_connection_is_tried_again_and_a_bad_request_is_not() {
        for (error, wanted) in [
            (FetchError::Connect("refused".to_owned()), ("connect", true)),
            (FetchError::Tls("unknown".to_owned()), ("tls", true)),
            (FetchError::Timeout, ("timeout", true)),
            (FetchError::Broken("reset".to_owned()), ("broken", true)),
            (
                FetchError::Request("no host".to_owned()),
                ("unsendable", false),
            ),
            (FetchError::TooLarge { limit: 1 }, ("not_otlp", false)),
        ] {
            let answer = Answer::new(OtlpProtocol::HttpProtobuf, &Err(error));
            assert_eq!(reason(&answer), Some(wanted));
        }
    }
}
