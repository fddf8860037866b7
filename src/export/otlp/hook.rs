//! The HTTP client that the OTLP crate posts through: ours, on [`Fetch`].
//!
//! The crate reduces an answer to success or not. The hook keeps what it has read from it,
//! rejections included, until the exporter takes it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

use super::answer::Answer;
use crate::transport::fetch::{Fetch, FetchError, Fetched, Post};

#[derive(Debug)]
pub(super) struct Hook {
    fetch: Fetch,
    timeout: Duration,
    requests: AtomicU64,
    last: Mutex<Option<Answer>>,
}

impl Hook {
    pub(super) fn new(fetch: Fetch, timeout: Duration) -> Self {
        Self {
            fetch,
            timeout,
            requests: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// Requests sent so far, whatever became of them.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The answer to the request since the last call; `None` if there was no request.
    pub(super) fn take_answer(&self) -> Option<Answer> {
        self.slot().take()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Answer>> {
        // A value is replaced whole, so a panic elsewhere cannot have left half of one.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (head, body) = request.into_parts();
        let post = Post {
            url: &head.uri.to_string(),
            headers: head.headers,
            body,
            timeout: self.timeout,
        };
        let result = self.fetch.post(post).await;
        *self.slot() = Some(Answer::new(&result));
        to_response(result).map_err(Into::into)
    }
}

fn to_response(result: Result<Fetched, FetchError>) -> Result<Response<Bytes>, FetchError> {
    let fetched = result?;
    let mut response = Response::new(fetched.body);
    *response.status_mut() = fetched.status;
    *response.headers_mut() = fetched.headers;
    Ok(response)
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Hook {
    // The lifetimes are those that the trait's macro writes.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Sending<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.send(request))
    }
}
