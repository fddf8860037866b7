//! The page's own files, compiled in. Nothing else is served and nothing is downloaded.

use axum::extract::Path;
use axum::http::{Uri, header};
use axum::response::{Html, IntoResponse, Response};

use super::answer;

const INDEX: &str = include_str!("page/index.html");

/// Name, content type and text of every file under `/assets/`.
const ASSETS: [(&str, &str, &str); 3] = [
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_str!("page/app.js"),
    ),
    (
        "app.css",
        "text/css; charset=utf-8",
        include_str!("page/app.css"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

pub(super) async fn index() -> Html<&'static str> {
    Html(INDEX)
}

pub(super) async fn asset(Path(name): Path<String>, uri: Uri) -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == name) {
        Some((_, content_type, text)) => {
            ([(header::CONTENT_TYPE, *content_type)], *text).into_response()
        }
        None => answer::not_found(uri).await,
    }
}
