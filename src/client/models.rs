//! What a list of models says: the names of those that a server serves.

use serde::Deserialize;

use crate::measurement::{Api, plain};

/// Longest name that is taken.
const MAX_NAME: usize = 256;

#[derive(Deserialize)]
struct List {
    data: Option<Vec<Model>>,
    /// Ollama's.
    models: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

/// Path of the list of models below a target's URL; `None` where the protocol needs no model in
/// its requests, or has no such list.
#[must_use]
pub const fn models_path(api: Api) -> Option<&'static str> {
    match api {
        Api::Ollama | Api::OllamaGenerate => Some("/api/tags"),
        Api::Tgi
        | Api::Llamacpp
        | Api::Triton
        | Api::Kserve
        | Api::Gemini
        | Api::TeiEmbed
        | Api::TeiRerank
        | Api::Raw
        | Api::Template => None,
        _ => Some("/v1/models"),
    }
}

/// The names in the body of such a list, in its order. A name becomes a label and a line of the
/// log: empty and overlong ones are left out, control characters become spaces.
///
/// # Errors
///
/// If the body is not such a list.
pub fn served_models(body: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let list: List = serde_json::from_slice(body)?;
    let names: Vec<String> = match (list.data, list.models) {
        (Some(data), _) => data.into_iter().map(|model| model.id).collect(),
        (None, Some(tags)) => tags.into_iter().map(|tag| tag.name).collect(),
        (None, None) => return Err(serde::de::Error::missing_field("data")),
    };
    let usable = |name: &String| !name.is_empty() && name.len() <= MAX_NAME;
    let names = names.into_iter().filter(usable);
    Ok(names.map(|name| plain(&name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_order() {
        let body = br#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"}]}"#;
        assert_eq!(served_models(body).expect("a list"), ["b", "a"]);
        let tags = br#"{"models":[{"name":"qwen3:0.6b","size":1},{"name":"b"}]}"#;
        assert_eq!(served_models(tags).expect("a list"), ["qwen3:0.6b", "b"]);
        assert!(served_models(b"<html>").is_err());
        assert!(served_models(b"{}").is_err());
        let long = format!(
            r#"{{"data":[{{"id":""}},{{"id":"{}"}},{{"id":"a\u001b[31m"}}]}}"#,
            "x".repeat(257)
        );
        assert_eq!(served_models(long.as_bytes()).expect("a list"), ["a [31m"]);
    }
}
