//! Plain HTTP requests beside the measured path: metrics pages, discovery, OTLP.
//!
//! The one place that names reqwest. The client follows no redirect, reads no proxy from the
//! environment, asks for no compression and retries nothing: what is fetched is what the other
//! side sent, once. Every body has a limit and every request a deadline.
//!
//! A client for the pages of a target ([`Fetch::beside`]) goes the way of its measured requests:
//! same trust, same proxy, same family of addresses, same Unix socket. It speaks HTTP/1.1, and
//! with [`Version::Http2`] nothing but HTTP/2.
//!
//! Not here: the measured requests (they need the phases that reqwest hides).

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Proxy, RequestBuilder, Url};
use rustls::AlertDescription;

use super::Endpoint;
use super::open::of_family;
use super::tls::client_config;
use crate::clock::{MonoTime, TimeAnchor};
use crate::config::{AddressFamily, Scheme, TlsConfig};

/// What we call ourselves, so that our requests are recognisable in a server's log.
pub const USER_AGENT: &str = concat!("tokencanary/", env!("CARGO_PKG_VERSION"));

/// A body that answers a post is at most this long: it is a short acknowledgement.
const ANSWER_LIMIT: usize = 1 << 20;

/// How long an unused connection is kept; above the usual scrape and export intervals.
const IDLE: Duration = Duration::from_secs(90);

/// When a request is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchTimeouts {
    /// DNS and TCP together.
    pub connect: Duration,
    /// From the call to the last byte of the body.
    pub total: Duration,
}

/// The version of HTTP that is spoken; nothing is negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, with TLS and without.
    Http2,
}

/// A pooled HTTP client. Cheap to clone; clones share the connections.
#[derive(Debug, Clone)]
pub struct Fetch {
    client: reqwest::Client,
    anchor: TimeAnchor,
    alias: Option<Arc<Alias>>,
}

/// A host that has to prove another name than its own.
#[derive(Debug, Clone)]
struct Alias {
    host: String,
    proven: String,
}

/// A request that carries a body.
#[derive(Debug, Clone)]
pub struct Post<'a> {
    /// The whole URL.
    pub url: &'a str,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: Bytes,
    /// From the call to the last byte of the answer; replaces [`FetchTimeouts::total`].
    pub timeout: Duration,
}

/// A whole response, whatever its status.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// What came after the body (HTTP/2).
    pub trailers: HeaderMap,
    /// When the last byte of the body had been read; without a body, when the head had.
    pub finished_at: MonoTime,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The client could not be built.
    #[error("no HTTP client: {0}")]
    Client(String),
    /// The URL or a header cannot be sent.
    #[error("bad request: {0}")]
    Request(String),
    /// No connection.
    #[error("no connection: {0}")]
    Connect(String),
    /// A connection without trust: a certificate that is not to be believed, on either side.
    #[error("no TLS: {0}")]
    Tls(String),
    /// Not finished in time.
    #[error("timed out")]
    Timeout,
    /// The body is longer than the caller allows.
    #[error("the body is over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("broken exchange: {0}")]
    Broken(String),
}

impl Fetch {
    /// A client whose instants are offsets of `anchor`. It trusts who the system trusts.
    ///
    /// # Errors
    ///
    /// If the system refuses what a client needs.
    pub fn new(anchor: TimeAnchor, timeouts: FetchTimeouts) -> Result<Self, FetchError> {
        let builder = plain(timeouts);
        let builder = trusting(builder, (&TlsConfig::default(), Version::Http1))?;
        Self::build(builder, anchor, None)
    }

    /// A client that goes the way of `endpoint`. Of a Unix socket every URL that it is given is
    /// asked for there, whatever its host.
    ///
    /// # Errors
    ///
    /// If the system refuses what a client needs, or a file of certificates is not usable.
    pub fn beside(
        endpoint: &Endpoint,
        anchor: TimeAnchor,
        timeouts: FetchTimeouts,
    ) -> Result<Self, FetchError> {
        Self::speaking(Version::Http1, endpoint, anchor, timeouts)
    }

    /// As [`Self::beside`], in the version of HTTP that is wanted.
    ///
    /// # Errors
    ///
    /// As [`Self::beside`].
    pub fn speaking(
        version: Version,
        endpoint: &Endpoint,
        anchor: TimeAnchor,
        timeouts: FetchTimeouts,
    ) -> Result<Self, FetchError> {
        let (url, network) = (endpoint.url(), endpoint.network());
        let alias = network.tls.server_name.as_ref().map(|proven| {
            Arc::new(Alias {
                host: url.host().to_owned(),
                proven: proven.clone(),
            })
        });
        let mut builder = trusting(plain(timeouts), (&network.tls, version))?;
        if url.scheme() == Scheme::Unix {
            builder = builder.unix_socket(url.host());
        } else if let Some(proxy) = &network.proxy {
            let mut way = Proxy::all(proxy.url.to_string()).map_err(unusable)?;
            if let Some(secret) = &proxy.authorization {
                let mut value = HeaderValue::from_str(secret.reveal()).map_err(unusable)?;
                value.set_sensitive(true);
                way = way.custom_http_auth(value);
            }
            builder = builder.proxy(way);
        }
        let resolver = Resolver {
            family: network.family,
            alias: alias.clone(),
        };
        Self::build(builder.dns_resolver(Arc::new(resolver)), anchor, alias)
    }

    fn build(
        builder: ClientBuilder,
        anchor: TimeAnchor,
        alias: Option<Arc<Alias>>,
    ) -> Result<Self, FetchError> {
        let client = builder
            .build()
            .map_err(|error| unusable(innermost(&error)))?;
        Ok(Self {
            client,
            anchor,
            alias,
        })
    }

    /// `url` as it is asked for, and what stands in `Host` if that differs.
    fn address(&self, url: &str) -> (String, Option<HeaderValue>) {
        let same = (url.to_owned(), None);
        let (Some(alias), Ok(mut parsed)) = (&self.alias, Url::parse(url)) else {
            return same;
        };
        let named = parsed.host_str().map(|host| host.trim_matches(['[', ']']));
        if parsed.scheme() != "https" || named != Some(alias.host.as_str()) {
            return same;
        }
        let host = match (parsed.host_str(), parsed.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or_default().to_owned(),
        };
        match (
            parsed.set_host(Some(&alias.proven)),
            HeaderValue::from_str(&host),
        ) {
            (Ok(()), Ok(host)) => (parsed.into(), Some(host)),
            _ => same,
        }
    }

    /// Gets `url`, whose body is at most `limit` bytes long.
    ///
    /// # Errors
    ///
    /// If no whole response came; a status other than 2xx is not an error.
    pub async fn get(
        &self,
        url: &str,
        headers: &HeaderMap,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        let (url, host) = self.address(url);
        let request = self.client.get(url).headers(headers.clone());
        self.finish(with_host(request, host), limit).await
    }

    /// Posts a body and reads the answer, at most 1 MiB of it.
    ///
    /// # Errors
    ///
    /// If no whole response came; a status other than 2xx is not an error.
    pub async fn post(&self, post: Post<'_>) -> Result<Fetched, FetchError> {
        let (url, host) = self.address(post.url);
        let request = self
            .client
            .post(url)
            .headers(post.headers)
            .body(post.body)
            .timeout(post.timeout);
        self.finish(with_host(request, host), ANSWER_LIMIT).await
    }

    async fn finish(&self, request: RequestBuilder, limit: usize) -> Result<Fetched, FetchError> {
        let response = request.send().await.map_err(FetchError::from)?;
        let mut finished_at = self.anchor.now();
        let (head, mut incoming) = hyper::Response::<reqwest::Body>::from(response).into_parts();
        let mut body = BytesMut::new();
        let mut trailers = HeaderMap::new();
        while let Some(frame) = incoming.frame().await {
            finished_at = self.anchor.now();
            let frame = match frame.map_err(FetchError::from)?.into_trailers() {
                Ok(last) => {
                    trailers = last;
                    continue;
                }
                Err(frame) => frame,
            };
            let Ok(chunk) = frame.into_data() else {
                continue;
            };
            if body.len() + chunk.len() > limit {
                return Err(FetchError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched {
            status: head.status,
            headers: head.headers,
            body: body.freeze(),
            trailers,
            finished_at,
        })
    }
}

/// A client without habits.
fn plain(timeouts: FetchTimeouts) -> ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(timeouts.connect)
        .timeout(timeouts.total)
        .pool_idle_timeout(IDLE)
}

fn trusting(
    builder: ClientBuilder,
    (tls, version): (&TlsConfig, Version),
) -> Result<ClientBuilder, FetchError> {
    let mut config = client_config(tls).map_err(unusable)?;
    let (builder, name) = match version {
        Version::Http1 => (builder.http1_only(), b"http/1.1".to_vec()),
        Version::Http2 => (builder.http2_prior_knowledge(), b"h2".to_vec()),
    };
    config.alpn_protocols = vec![name];
    Ok(builder.tls_backend_preconfigured(config))
}

fn with_host(request: RequestBuilder, host: Option<HeaderValue>) -> RequestBuilder {
    match host {
        Some(host) => request.header(HOST, host),
        None => request,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn unusable(error: impl ToString) -> FetchError {
    FetchError::Client(error.to_string())
}

/// Resolves the names of one target.
struct Resolver {
    family: AddressFamily,
    alias: Option<Arc<Alias>>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let alias = self.alias.as_ref();
        let host = match alias.filter(|alias| alias.proven == name.as_str()) {
            Some(alias) => alias.host.clone(),
            None => name.as_str().to_owned(),
        };
        let family = self.family;
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let chosen = of_family(&found, family);
            if chosen.is_empty() {
                return Err(format!(
                    "`{host}` has no address of the family wanted, `{}`",
                    family.name()
                )
                .into());
            }
            let chosen: Addrs = Box::new(chosen.into_iter());
            Ok(chosen)
        })
    }
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        // A URL may hold what is not for the log.
        let error = error.without_url();
        let message = innermost(&error);
        if error.is_timeout() {
            Self::Timeout
        } else if let Some(tls) = tls_cause(&error) {
            Self::Tls(tls)
        } else if error.is_builder() {
            Self::Request(message)
        } else if error.is_connect() {
            Self::Connect(message)
        } else {
            Self::Broken(message)
        }
    }
}

/// What TLS said, if it is the cause. Errors of I/O may hold others without naming them as their
/// source.
fn tls_cause(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found.to_string());
    }
    let held = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref);
    held.and_then(|held| tls_cause(held).or_else(|| refusal(&held.to_string())))
        .or_else(|| error.source().and_then(tls_cause))
}

/// `said` if it is how TLS says that the other side does not want us. HTTP/2 hands on of an error
/// of the connection below it only the words.
fn refusal(said: &str) -> Option<String> {
    [
        AlertDescription::AccessDenied,
        AlertDescription::BadCertificate,
        AlertDescription::CertificateExpired,
        AlertDescription::CertificateRequired,
        AlertDescription::CertificateRevoked,
        AlertDescription::CertificateUnknown,
        AlertDescription::DecryptError,
        AlertDescription::HandshakeFailure,
        AlertDescription::UnknownCA,
        AlertDescription::UnsupportedCertificate,
    ]
    .into_iter()
    .map(|alert| rustls::Error::AlertReceived(alert).to_string())
    .find(|words| words == said)
}

/// The message of the deepest cause: the outer ones only say that there is one.
fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::header;
    use axum::routing::{get, post};
    use tokio::net::TcpListener;

    use super::*;

    const SHORT: FetchTimeouts = FetchTimeouts {
        connect: Duration::from_secs(5),
        total: Duration::from_secs(5),
    };

    fn client(timeouts: FetchTimeouts) -> Fetch {
        Fetch::new(TimeAnchor::start(), timeouts).expect("a client needs nothing special")
    }

    async fn serve(router: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn a_page_comes_with_status_headers_and_the_instant_of_its_last_byte() {
        let url = serve(Router::new().route(
            "/page",
            get(|headers: HeaderMap| async move {
                let agent = headers[header::USER_AGENT].clone();
                let encoding = headers.contains_key(header::ACCEPT_ENCODING);
                (
                    StatusCode::IM_A_TEAPOT,
                    [("x-agent", agent)],
                    encoding.to_string(),
                )
            }),
        ))
        .await;
        let fetch = client(SHORT);
        let before = fetch.anchor.now();
        let page = fetch
            .get(&format!("{url}/page"), &HeaderMap::new(), 100)
            .await
            .expect("a response");
        assert_eq!(page.status.as_u16(), 418);
        assert_eq!(page.headers["x-agent"], USER_AGENT);
        assert_eq!(page.body, "false", "no compression is asked for");
        assert!(page.finished_at >= before && page.finished_at <= fetch.anchor.now());
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_not_read_to_its_end() {
        let url = serve(Router::new().route("/", get(|| async { "12345" }))).await;
        let fetch = client(SHORT);
        let headers = HeaderMap::new();
        assert_eq!(
            fetch.get(&url, &headers, 5).await.expect("it fits").body,
            "12345"
        );
        assert_eq!(
            fetch.get(&url, &headers, 4).await.expect_err("too long"),
            FetchError::TooLarge { limit: 4 }
        );
    }

    #[tokio::test]
    async fn redirects_are_answers_and_not_followed() {
        let url = serve(Router::new().route(
            "/",
            post(|| async { (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]) }),
        ))
        .await;
        let answer = client(SHORT)
            .post(Post {
                url: &url,
                headers: HeaderMap::new(),
                body: Bytes::from_static(b"x"),
                timeout: Duration::from_secs(5),
            })
            .await
            .expect("an answer");
        assert_eq!(answer.status, StatusCode::FOUND);
    }

    #[tokio::test]
    async fn each_way_to_fail_has_its_own_error() {
        let fetch = client(SHORT);
        let headers = HeaderMap::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let silent = format!("http://{address}/");
        let hasty = client(FetchTimeouts {
            total: Duration::from_millis(50),
            ..SHORT
        });
        assert_eq!(
            hasty.get(&silent, &headers, 1).await.expect_err("silence"),
            FetchError::Timeout
        );
        drop(listener);
        for (url, wanted) in [
            (silent.as_str(), "no connection: "),
            ("https://127.0.0.1/", "no connection: "),
            ("not a url", "bad request: "),
        ] {
            let error = fetch.get(url, &headers, 1).await.expect_err(url);
            assert!(error.to_string().starts_with(wanted), "{url}: {error}");
        }
    }
}
