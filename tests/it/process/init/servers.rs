//! Servers to look at: each like one that its users have.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The key that a gateway wants.
pub(super) const KEY: &str = "sk-geheim";

/// What a server is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Like {
    /// A gateway that refuses fields it does not know, wants a key, and lists three models.
    Gateway,
    /// A hosted model that knows `max_completion_tokens` only, and no streams.
    Hosted,
    /// Ollama without its `OpenAI` paths.
    Ollama,
    /// Text-generation-inference of before `/v1`.
    Tgi,
    /// llama.cpp without its metrics page.
    Llama,
    /// Vectors only.
    Embeddings,
    /// It is there, and not yet ready for anything.
    Loading,
    /// Chat, and no list.
    Unlisted,
    /// A list without a model, and nothing else.
    Empty,
    /// A list of models, none of which answers.
    Listing,
    /// A name that would be more than a name.
    Hostile,
    /// The same page for everything.
    Html,
    /// All is elsewhere.
    Moved,
    /// Lists and pages without an end.
    Endless,
    /// It takes requests and says nothing.
    Silent,
}

const HOSTILE: &str = "m\": \n# x\nexport: { otlp: {} } 'y'";

fn json(body: &str) -> Response {
    ([(CONTENT_TYPE, "application/json")], body.to_owned()).into_response()
}

fn list(models: &[&str]) -> Response {
    let models: Vec<_> = models
        .iter()
        .map(|id| serde_json::json!({ "id": id, "object": "model" }))
        .collect();
    json(&serde_json::json!({ "object": "list", "data": models }).to_string())
}

fn refused(message: &str) -> Response {
    let error = serde_json::json!({ "error": { "message": message, "type": "invalid" } });
    (StatusCode::BAD_REQUEST, json(&error.to_string())).into_response()
}

fn text(body: &str) -> Response {
    ([(CONTENT_TYPE, "text/plain")], body.to_owned()).into_response()
}

fn events(last: &str) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], format!("{last}\n\n")).into_response()
}

/// A chat of one word.
fn chat() -> Response {
    let chunk = r#"data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":"stop"}]}"#;
    events(&format!("{chunk}\n\ndata: [DONE]"))
}

/// Lists and pages.
fn page(like: Like, path: &str) -> Option<Response> {
    Some(match (like, path) {
        (Like::Gateway, "/v1/models") => list(&["b/first", "a/second", "c/third"]),
        (Like::Hosted, "/v1/models") => list(&["hosted"]),
        (Like::Embeddings, "/v1/models") => list(&["bge"]),
        (Like::Empty, "/v1/models") => list(&[]),
        (Like::Listing, "/v1/models") => list(&["a", "b"]),
        (Like::Hostile, "/v1/models") => list(&[HOSTILE, "o\n- other: { a: b }"]),
        (Like::Llama, "/v1/models") => json(r#"{"data":[{"id":"m","owned_by":"llamacpp"}]}"#),
        (Like::Llama, "/props") => json(r#"{"build_info":"b6000-abc"}"#),
        (Like::Llama, "/metrics") => StatusCode::NOT_IMPLEMENTED.into_response(),
        (Like::Ollama, "/api/tags") => {
            json(r#"{"models":[{"name":"qwen3:0.6b"},{"name":"a:1b"}]}"#)
        }
        (Like::Ollama, "/api/version") => json(r#"{"version":"0.12.0"}"#),
        (Like::Ollama, "/api/ps") => json(r#"{"models":[{"name":"qwen3:0.6b","size":1}]}"#),
        (Like::Tgi, "/metrics") => text("tgi_queue_size 0\ntgi_batch_current_size 1\n"),
        (Like::Tgi, "/info") => json(r#"{"model_id":"org/old","version":"1.4.0"}"#),
        (Like::Html, _) => {
            ([(CONTENT_TYPE, "text/html")], "<!doctype html>It works!").into_response()
        }
        (Like::Loading, _) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        (Like::Moved, _) => {
            let there = [(LOCATION, "https://elsewhere/")];
            (StatusCode::PERMANENT_REDIRECT, there).into_response()
        }
        (Like::Endless, "/v1/models" | "/metrics") => {
            let piece = Bytes::from(vec![b' '; 1 << 20]);
            let pieces = stream::iter(vec![piece; 100]).map(Ok::<_, Infallible>);
            let kind = [(CONTENT_TYPE, "application/json")];
            (kind, Body::from_stream(pieces)).into_response()
        }
        _ => return None,
    })
}

/// Answers to requests for tokens or vectors.
fn answer(like: Like, path: &str, body: &str) -> Response {
    match (like, path) {
        (Like::Gateway, "/v1/chat/completions") if body.contains("ignore_eos") => {
            refused("Unrecognized request argument supplied: ignore_eos")
        }
        (Like::Hosted, "/v1/chat/completions") => hosted(body),
        (
            Like::Gateway | Like::Llama | Like::Unlisted | Like::Hostile | Like::Endless,
            "/v1/chat/completions",
        ) => chat(),
        (Like::Embeddings, "/v1/embeddings") => json(
            r#"{"object":"list","data":[{"index":0,"embedding":[0.5,0.5]}],"usage":{"prompt_tokens":3}}"#,
        ),
        (Like::Ollama, "/api/chat") => json(
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"done\":false}\n\
             {\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1,\"prompt_eval_count\":3}\n",
        ),
        (Like::Tgi, "/generate_stream") => events(
            r#"data:{"token":{"id":1,"text":"a","special":false},"generated_text":"a","details":{"finish_reason":"length","generated_tokens":1}}"#,
        ),
        _ => (StatusCode::NOT_FOUND, json(r#"{"detail":"Not Found"}"#)).into_response(),
    }
}

/// Whole answers only, and another name for the length.
fn hosted(body: &str) -> Response {
    if body.contains("\"max_tokens\"") {
        return refused(
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        );
    }
    if body.contains("ignore_eos") {
        return refused("Unknown parameter: 'ignore_eos'.");
    }
    json(
        r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
    )
}

pub(super) fn router(like: Like) -> Router {
    Router::new().fallback(
        move |uri: Uri, headers: HeaderMap, body: String| async move {
            let key = headers.get(AUTHORIZATION).and_then(|key| key.to_str().ok());
            let wanted = format!("Bearer {KEY}");
            if like == Like::Gateway && key != Some(wanted.as_str()) {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            if like == Like::Silent {
                return std::future::pending().await;
            }
            let path = uri.path();
            page(like, path).unwrap_or_else(|| answer(like, path, &body))
        },
    )
}

/// Starts such a server; its URL.
pub(super) async fn server(like: Like) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, router(like)).await });
    format!("http://{address}")
}

/// Starts one that speaks no HTTP; its URL.
pub(super) async fn strange_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await?;
                let mut asked = [0; 1_024];
                stream.read(&mut asked).await
            });
        }
    });
    format!("http://{address}")
}

/// Takes connections over TLS.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, from)) = self.listener.accept().await
                && let Ok(stream) = self.acceptor.accept(stream).await
            {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Starts such a server over TLS, its certificate in `ca.pem` of `folder`; its URL.
pub(super) async fn secure_server(like: Like, folder: &Path) -> String {
    // Fails only if another test of this process has done it already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("it can be made");
    fs::write(folder.join("ca.pem"), made.cert.pem()).expect("the folder is ours");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("key and certificate belong together");
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let tls = Tls { listener, acceptor };
    tokio::spawn(async move { axum::serve(tls, router(like)).await });
    format!("https://localhost:{}", address.port())
}
