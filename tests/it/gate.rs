//! A forwarder for HTTP posts whose port can be closed and opened again, to put an outage in
//! front of a receiver.
//!
//! A request it has taken is answered before the port is down, and one it has not taken never
//! reaches the receiver: what the sender was told is exactly what the receiver holds.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// For one exchange with the receiver.
const EXCHANGE: Duration = Duration::from_secs(10);

/// The forwarder; ends when dropped.
pub(crate) struct Gate {
    address: SocketAddr,
    upstream: String,
    open: Option<Open>,
}

struct Open {
    close: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Gate {
    /// Opens a port whose requests go to `upstream`, a URL without a path.
    pub(crate) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("loopback has free ports");
        let mut gate = Self {
            address: listener.local_addr().expect("it is bound"),
            upstream: upstream.to_owned(),
            open: None,
        };
        gate.serve(listener);
        gate
    }

    /// The URL to send to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the port and waits until the requests that were taken are answered.
    ///
    /// # Panics
    ///
    /// If it is closed already.
    pub(crate) async fn close(&mut self) {
        let Open { close, server } = self.open.take().expect("it is open");
        close.send(()).expect("the server waits for it");
        server.await.expect("the server does not panic");
    }

    /// Opens the same port again.
    ///
    /// # Panics
    ///
    /// If something else has taken the port.
    pub(crate) async fn open(&mut self) {
        let listener = TcpListener::bind(self.address).await;
        self.serve(listener.expect("nothing else uses our port"));
    }

    fn serve(&mut self, listener: TcpListener) {
        let client = crate::program::http_client()
            .timeout(EXCHANGE)
            .build()
            .expect("the options are fixed");
        let router = Router::new()
            .fallback(forward)
            .with_state((client, self.upstream.clone()));
        let (close, closed) = oneshot::channel();
        let server = axum::serve(listener, router).with_graceful_shutdown(async {
            // A gate that is dropped closes too.
            drop(closed.await);
        });
        let server = tokio::spawn(async { server.await.expect("it never fails") });
        self.open = Some(Open { close, server });
    }
}

/// Posts what came to the receiver, and hands back its answer.
async fn forward(
    State((client, upstream)): State<(reqwest::Client, String)>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let kind = headers.get(CONTENT_TYPE).cloned();
    let answer = async {
        let mut request = client.post(format!("{upstream}{uri}")).body(body);
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let answer = request.send().await?;
        Ok::<_, reqwest::Error>((answer.status(), answer.bytes().await?))
    };
    match answer.await {
        Ok(answer) => answer.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
