//! What a response head says of the body that follows.

use hyper::header::{self, HeaderMap};

/// Whether a success with this status owes no body.
pub(super) const fn is_without_content(status: u16) -> bool {
    matches!(status, 204 | 205)
}

/// The content encodings of a response, though we asked for none, in the order in which they
/// were applied.
pub(super) fn unasked_encoding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let names: Vec<&str> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"))
        .collect();
    (!names.is_empty()).then(|| names.join(","))
}
