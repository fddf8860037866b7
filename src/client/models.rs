//! What `/v1/models` says: the names of the models that a server serves.

use serde::Deserialize;

use super::protocol::plain;

/// Longest name that is taken.
const MAX_NAME: usize = 256;

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

/// The names in the body of a `/v1/models` response, in its order. A name becomes a label and a
/// line of the log: empty and overlong ones are left out, control characters become spaces.
///
/// # Errors
///
/// If the body is not such a list.
pub fn served_models(body: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let list: List = serde_json::from_slice(body)?;
    let usable = |model: &Model| !model.id.is_empty() && model.id.len() <= MAX_NAME;
    let names = list.data.into_iter().filter(usable);
    Ok(names.map(|model| plain(&model.id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_order() {
        let body = br#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"}]}"#;
        assert_eq!(served_models(body).expect("a list"), ["b", "a"]);
        assert!(served_models(b"<html>").is_err());
        let long = format!(
            r#"{{"data":[{{"id":""}},{{"id":"{}"}},{{"id":"a\u001b[31m"}}]}}"#,
            "x".repeat(257)
        );
        assert_eq!(served_models(long.as_bytes()).expect("a list"), ["a [31m"]);
    }
}
