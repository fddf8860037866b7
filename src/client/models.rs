//! What `/v1/models` says: the names of the models that a server serves.

use serde::Deserialize;

#[derive(Deserialize)]
struct List {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// Path of the list below a target's URL.
pub const MODELS_PATH: &str = "/v1/models";

/// The names in the body of a `/v1/models` response, in its order.
///
/// # Errors
///
/// If the body is not such a list.
pub fn served_models(body: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let list: List = serde_json::from_slice(body)?;
    Ok(list.data.into_iter().map(|model| model.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_order() {
        let body = br#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"}]}"#;
        assert_eq!(served_models(body).expect("a list"), ["b", "a"]);
        assert!(served_models(b"<html>").is_err());
    }
}
