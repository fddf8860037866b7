//! Ollama has no metrics page. Its `/api/ps` lists the models that are loaded, with their memory.

use serde::Deserialize;

use crate::measurement::server::{Engine, ServerInfo, ServerPage};

/// Most models that are listed.
const MOST_MODELS: usize = 64;
/// Longest name that is kept, bytes.
const LONGEST_NAME: usize = 256;

#[derive(Deserialize)]
struct Loaded {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    name: String,
    /// Bytes of it, all in all.
    size: Option<u64>,
    /// Bytes of it on the GPU.
    #[serde(default)]
    size_vram: Option<u64>,
    expires_at: Option<String>,
    context_length: Option<u64>,
}

/// What the answer `body` of `/api/ps` says; `None` if it is none.
pub(in crate::scrape) fn loaded(body: &[u8]) -> Option<ServerPage> {
    let Loaded { mut models } = serde_json::from_slice(body).ok()?;
    models.retain(|model| model.name.len() <= LONGEST_NAME);
    models.sort_by(|a, b| a.name.cmp(&b.name));
    models.truncate(MOST_MODELS);
    // An object with an empty list is what Ollama says before it is asked for anything.
    let mut info = ServerInfo::default();
    for model in models {
        let facts = [
            ("size_bytes", model.size.map(|size| size.to_string())),
            (
                "size_vram_bytes",
                model.size_vram.map(|size| size.to_string()),
            ),
            ("expires_at", model.expires_at),
            (
                "context_length",
                model.context_length.map(|length| length.to_string()),
            ),
        ];
        for (fact, value) in facts {
            if let Some(value) = value.filter(|value| value.len() <= LONGEST_NAME) {
                let name = format!("{}/{fact}", model.name);
                info.flags.push((name.into(), value.into()));
            }
        }
        info.models.push(model.name.into());
    }
    info.flags.sort();
    Some(ServerPage {
        engine: Some(Engine::Ollama),
        info,
        ..ServerPage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_models_are_named_with_their_memory() {
        let body = br#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b","size":6591830464,
            "digest":"2ae6","details":{"family":"qwen3"},"expires_at":"2026-11-30T12:00:00Z",
            "size_vram":5333539264,"context_length":4096}]}"#;
        let page = loaded(body).expect("a list");
        assert_eq!(page.engine, Some(Engine::Ollama));
        assert_eq!(page.info.models, ["qwen3:8b".into()]);
        let vram = ("qwen3:8b/size_vram_bytes".into(), "5333539264".into());
        assert!(page.info.flags.contains(&vram), "{:?}", page.info.flags);
        assert_eq!(
            page.totals,
            crate::measurement::server::ServerTotals::default()
        );
    }

    #[test]
    fn other_json_is_none_of_it() {
        assert!(loaded(br#"{"models":[]}"#).is_some());
        for other in ["[]", "{}", "", "<html>", r#"{"models":[{"id":1}]}"#] {
            assert_eq!(loaded(other.as_bytes()), None, "{other}");
        }
    }
}
