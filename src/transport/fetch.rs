//! Plain HTTP requests beside the measured path: metrics pages, discovery, OTLP.
//!
//! The one place that names reqwest. The client follows no redirect, reads no proxy from the
//! environment, asks for no compression and retries nothing: what is fetched is what the other
//! side sent, once. Every body has a limit and every request a deadline.
//!
//! Not here: the measured requests (they need the phases that reqwest hides) and TLS (`https`
//! is refused by `config`; a request to it fails here as a bad URL).

use std::error::Error;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::{HeaderMap, StatusCode};

use crate::clock::{MonoTime, TimeAnchor};

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

/// A pooled HTTP client. Cheap to clone; clones share the connections.
#[derive(Debug, Clone)]
pub struct Fetch {
    client: reqwest::Client,
    anchor: TimeAnchor,
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
    /// A client whose instants are offsets of `anchor`.
    ///
    /// # Errors
    ///
    /// If the system refuses what a client needs.
    pub fn new(anchor: TimeAnchor, timeouts: FetchTimeouts) -> Result<Self, FetchError> {
        let client = reqwest::Client::builder()
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
            .build()
            .map_err(|error| FetchError::Client(innermost(&error)))?;
        Ok(Self { client, anchor })
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
        self.finish(self.client.get(url).headers(headers.clone()), limit)
            .await
    }

    /// Posts a body and reads the answer, at most 1 MiB of it.
    ///
    /// # Errors
    ///
    /// If no whole response came; a status other than 2xx is not an error.
    pub async fn post(&self, post: Post<'_>) -> Result<Fetched, FetchError> {
        let request = self
            .client
            .post(post.url)
            .headers(post.headers)
            .body(post.body)
            .timeout(post.timeout);
        self.finish(request, ANSWER_LIMIT).await
    }

    async fn finish(
        &self,
        request: reqwest::RequestBuilder,
        limit: usize,
    ) -> Result<Fetched, FetchError> {
        let mut response = request.send().await.map_err(FetchError::from)?;
        let mut finished_at = self.anchor.now();
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(FetchError::from)? {
            finished_at = self.anchor.now();
            if body.len() + chunk.len() > limit {
                return Err(FetchError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.freeze(),
            finished_at,
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
        } else if error.is_builder() {
            Self::Request(message)
        } else if error.is_connect() {
            Self::Connect(message)
        } else {
            Self::Broken(message)
        }
    }
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
