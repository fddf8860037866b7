//! Writes one request: path, headers, body.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};

use super::super::protocol::{Protocol, ProtocolError};
use super::Client;
use crate::load::workload::Prompt;
use crate::measurement::{RequestRecord, Stream};
use crate::transport::Endpoint;

/// `headers` and those that every request has, where they do not stand there already.
///
/// # Errors
///
/// If the URL's host is no header value.
pub(super) fn fixed_headers(
    mut headers: HeaderMap,
    endpoint: &Endpoint,
    protocol: &Protocol,
) -> Result<HeaderMap, hyper::http::Error> {
    let host = HeaderValue::from_str(&endpoint.url().authority())?;
    let agent = concat!(
        "tokencanary/",
        env!("CARGO_PKG_VERSION"),
        " (synthetic canary)"
    );
    for (name, value) in [
        (header::HOST, host),
        (header::USER_AGENT, HeaderValue::from_static(agent)),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        ),
    ] {
        headers.entry(name).or_insert(value);
    }
    for (name, value) in protocol.headers() {
        let name = HeaderName::from_static(name);
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    Ok(headers)
}

impl Client {
    /// The request of `record` that asks for `prompt`.
    ///
    /// # Errors
    ///
    /// If the operator's template makes no body for it.
    pub(super) fn request(
        &self,
        record: &RequestRecord,
        prompt: &Prompt,
    ) -> Result<Request<Full<Bytes>>, ProtocolError> {
        let Stream { streaming, .. } = *record.stream;
        let protocol = &self.setup.protocol;
        let ask = protocol.ask(record.stream.model(), prompt, streaming);
        let path = format!(
            "{}{}",
            self.setup.endpoint.url().prefix(),
            protocol.path(&ask)
        );
        let body = protocol.body(&ask)?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        // A path that is no URI is refused by the server, visibly.
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        *headers = self.setup.headers.clone();
        let accept = if streaming {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let ids = &record.ids;
        for (name, value) in [
            (
                "traceparent",
                format!(
                    "00-{}-{}-0{}",
                    ids.trace_hex(),
                    ids.span_hex(),
                    u8::from(record.traced)
                ),
            ),
            ("x-request-id", ids.request_id()),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        Ok(request)
    }
}
