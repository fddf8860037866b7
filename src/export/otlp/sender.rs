//! One receiver and the way to it: a whole message goes out, an [`Answer`] comes back.
//!
//! The message is bytes, already in the encoding of the protocol, so that it is encoded once
//! however often it is tried. Here it is compressed, framed and posted.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::write::GzEncoder;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};

use super::OtlpError;
use super::answer::{Answer, Trouble};
use super::grpc;
use super::reason::Reason;
use super::signal::Signal;
use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Compression, HttpVersion, NetworkConfig, OtlpProtocol, OtlpReceiver};
use crate::transport::Endpoint;
use crate::transport::fetch::{self, Fetch, FetchTimeouts, Post, Version};

/// The longest message; receivers have limits of their own, mostly smaller ones.
const LARGEST: usize = 64 * 1024 * 1024;

/// Carries messages of one signal to one receiver.
#[derive(Debug)]
pub(super) struct Sender {
    fetch: Fetch,
    url: String,
    headers: HeaderMap,
    protocol: OtlpProtocol,
    compression: Compression,
    timeout: Duration,
}

impl Sender {
    /// The way to `receiver`. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// If the URL, a header or a certificate cannot be used.
    pub(super) fn new(
        signal: Signal,
        receiver: &OtlpReceiver,
        anchor: TimeAnchor,
    ) -> Result<Self, OtlpError> {
        let timeouts = FetchTimeouts {
            connect: receiver.timeout,
            total: receiver.timeout,
        };
        let (version, url) = match receiver.protocol {
            OtlpProtocol::HttpProtobuf | OtlpProtocol::HttpJson => {
                (Version::Http1, receiver.url.clone())
            }
            OtlpProtocol::Grpc => {
                let base = receiver.url.trim_end_matches('/');
                (Version::Http2, format!("{base}{}", signal.method()))
            }
        };
        let address = BaseUrl::parse(origin(&receiver.url))
            .map_err(|error| OtlpError::Url(error.to_string()))?;
        let network = NetworkConfig {
            http: match version {
                Version::Http1 => HttpVersion::Http1,
                Version::Http2 => HttpVersion::Http2,
            },
            tls: receiver.tls.clone(),
            ..NetworkConfig::default()
        };
        let endpoint = Endpoint::new(address, network)?;
        Ok(Self {
            fetch: Fetch::speaking(version, &endpoint, anchor, timeouts)?,
            url,
            headers: headers(receiver)?,
            protocol: receiver.protocol,
            compression: receiver.compression,
            timeout: receiver.timeout,
        })
    }

    /// What messages must be encoded for.
    pub(super) const fn protocol(&self) -> OtlpProtocol {
        self.protocol
    }

    /// The message as it goes over the wire; made once, however often it is sent. An error says
    /// that it cannot be sent.
    pub(super) fn pack(&self, message: Vec<u8>) -> Result<Bytes, Trouble> {
        let too_large = || {
            let text = format!("a message of more than {LARGEST} bytes");
            Trouble::new(Reason::Unsendable, text)
        };
        if message.len() > LARGEST {
            return Err(too_large());
        }
        let (message, is_compressed) = match self.compression {
            Compression::None => (message, false),
            Compression::Gzip => (gzip(&message), true),
        };
        match self.protocol {
            OtlpProtocol::HttpProtobuf | OtlpProtocol::HttpJson => Ok(message.into()),
            OtlpProtocol::Grpc => grpc::framed(&message, is_compressed).ok_or_else(too_large),
        }
    }

    /// Sends what was packed, once.
    pub(super) async fn send(&self, packed: Bytes) -> Answer {
        let post = Post {
            url: &self.url,
            headers: self.headers.clone(),
            body: packed,
            timeout: self.timeout,
        };
        let result = self.fetch.post(post).await;
        Answer::new(self.protocol, &result)
    }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url[after..].find(['/', '?', '#']);
    end.map_or(url, |end| &url[..after + end])
}

fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let written = encoder.write_all(message);
    written
        .and_then(|()| encoder.finish())
        .expect("a vector takes everything")
}

/// The headers of every request: those of the protocol, and the receiver's.
fn headers(receiver: &OtlpReceiver) -> Result<HeaderMap, OtlpError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(fetch::USER_AGENT));
    for (name, value) in &receiver.headers {
        let (Ok(name), Ok(mut value)) = (
            HeaderName::try_from(name.as_str()),
            HeaderValue::try_from(value.reveal()),
        ) else {
            return Err(OtlpError::Header(name.clone()));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let is_compressed = receiver.compression == Compression::Gzip;
    let gzip = HeaderValue::from_static("gzip");
    let kind = match receiver.protocol {
        OtlpProtocol::HttpProtobuf => "application/x-protobuf",
        OtlpProtocol::HttpJson => "application/json",
        OtlpProtocol::Grpc => "application/grpc",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if receiver.protocol == OtlpProtocol::Grpc {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let timeout = format!("{}m", receiver.timeout.as_millis());
        if let Ok(timeout) = HeaderValue::try_from(timeout) {
            headers.insert("grpc-timeout", timeout);
        }
        if is_compressed {
            headers.insert("grpc-encoding", gzip);
        }
    } else if is_compressed {
        headers.insert(CONTENT_ENCODING, gzip);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_url_is_what_it_is_connected_to_by() {
        for (url, wanted) in [
            ("http://h:4318/v1/traces", "http://h:4318"),
            ("https://h/", "https://h"),
            ("http://[::1]:9?x=1", "http://[::1]:9"),
            ("http://h:1", "http://h:1"),
        ] {
            assert_eq!(origin(url), wanted);
        }
    }
}
