//! Takes what an Alertmanager posts to a webhook.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;

/// The path of the webhook.
pub const HOOK_PATH: &str = "/hook";

/// Longest notification.
const MOST_BYTES: usize = 1 << 20;

/// What is done with the body of a notification; false if it cannot be taken now.
pub type Take = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A router that gives each notification to `take`. One that is not taken is answered with 503,
/// after which an Alertmanager sends it again.
pub fn hook(take: Take) -> Router {
    Router::new()
        .route(HOOK_PATH, post(receive))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(take)
}

async fn receive(State(take): State<Take>, body: Bytes) -> StatusCode {
    if take(&body) {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
