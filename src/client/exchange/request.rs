//! Writes one request: path, headers, body.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};

use super::super::protocol::{Protocol, ProtocolError};
use super::Client;
use crate::load::workload::{Prompt, WrittenBody};
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

/// Writes the bodies of requests before they are due, so that it delays nothing.
#[derive(Debug, Clone)]
pub struct BodyWriter {
    protocol: Arc<Protocol>,
    stream: Arc<Stream>,
}

impl BodyWriter {
    /// Writes the body that asks for `prompt`. Where the operator's template makes none, it is
    /// left to the request, whose record says why.
    pub fn write(&self, prompt: &mut Prompt) {
        let (model, streaming) = (self.stream.model(), self.stream.streaming);
        let body = self
            .protocol
            .body(&self.protocol.ask(model, prompt, streaming));
        prompt.written = body.ok().map(|body| WrittenBody {
            model: model.into(),
            bytes: Bytes::from(body),
        });
    }
}

impl Client {
    /// What writes the bodies of requests of `stream`, which is this client's or another one of
    /// its target and probe.
    #[must_use]
    pub fn body_writer(&self, stream: &Arc<Stream>) -> BodyWriter {
        BodyWriter {
            protocol: Arc::clone(&self.setup.protocol),
            stream: Arc::clone(stream),
        }
    }

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
        let body = match &prompt.written {
            Some(written) if *written.model == *record.stream.model() => written.bytes.clone(),
            _ => Bytes::from(protocol.body(&ask)?),
        };
        let mut request = Request::new(Full::new(body));
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::{ClientSetup, TimeAnchor};
    use super::*;
    use crate::client::quirks::case::stream;
    use crate::config::{BaseUrl, Limits, NetworkConfig, RequestConfig};
    use crate::measurement::{Api, TraceIds};
    use crate::transport::TcpConnect;

    async fn body(client: &Client, prompt: &Prompt, stream: &Arc<Stream>) -> Bytes {
        let (ids, now) = (TraceIds { trace: 1, span: 2 }, client.setup.anchor.now());
        let record = RequestRecord::due(0, Arc::clone(stream), ids, now);
        let request = client.request(&record, prompt).expect("no template");
        request
            .into_body()
            .collect()
            .await
            .expect("it is there")
            .to_bytes()
    }

    #[tokio::test]
    async fn what_was_written_ahead_is_sent_to_the_model_it_was_written_for() {
        let url = BaseUrl::parse("http://sim:1").expect("a good address");
        let client = Client::new(ClientSetup {
            endpoint: Endpoint::new(url, NetworkConfig::default()).expect("no files"),
            protocol: Protocol::new(Api::Chat, RequestConfig::default()).expect("no body of ours"),
            headers: HeaderMap::new(),
            limits: Limits::PROBE,
            connect: Arc::new(TcpConnect),
            anchor: TimeAnchor::start(),
        })
        .expect("a good path");
        let stream = stream(Api::Chat, true);
        let mut prompt = Prompt {
            text: "how many".to_owned(),
            output_tokens: Some(7),
            ..Prompt::default()
        };
        let plain = body(&client, &prompt, &stream).await;
        client.body_writer(&stream).write(&mut prompt);
        let written = prompt.written.clone().expect("it was written");
        assert_eq!((&*written.model, &written.bytes), ("m", &plain));
        let sent = body(&client, &prompt, &stream).await;
        assert_eq!(sent.as_ptr(), written.bytes.as_ptr(), "the same memory");
        prompt.written = Some(WrittenBody {
            model: "another".into(),
            ..written
        });
        assert_eq!(body(&client, &prompt, &stream).await, plain);
    }
}
