//! Which engine a server is, from what its pages said. Pure: the asking is done elsewhere.

use serde::Deserialize;

use crate::measurement::plain;
use crate::measurement::server::Engine;

/// Longest version that is kept, bytes.
const LONGEST: usize = 128;

/// What a server answered, where it was asked and did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said<'a> {
    /// Whose metrics page it has.
    pub page: Option<Engine>,
    /// The body of `/version`, or of what an engine has in its place.
    pub version: Option<&'a [u8]>,
    /// The body of `/v1/models`.
    pub models: Option<&'a [u8]>,
}

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detected {
    /// Which engine it is.
    pub engine: Option<Engine>,
    /// Its version.
    pub version: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version: Option<String>,
    /// llama.cpp's `/props`.
    build_info: Option<String>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    owned_by: Option<String>,
}

/// The engine that `said` speaks of. Its metrics page is believed first: names of metrics are
/// nobody else's, while an owner of models may be whoever a gateway stands in front of.
#[must_use]
pub fn detect(said: Said<'_>) -> Detected {
    let version = said
        .version
        .and_then(|body| serde_json::from_slice::<Version>(body).ok());
    let is_llama = version
        .as_ref()
        .is_some_and(|version| version.build_info.is_some());
    let version = version.and_then(|version| version.version.or(version.build_info));
    Detected {
        engine: said
            .page
            .or_else(|| owner(said.models?))
            .or(is_llama.then_some(Engine::LlamaCpp)),
        version: version
            .filter(|version| !version.is_empty() && version.len() <= LONGEST)
            .map(|version| plain(&version)),
    }
}

/// The engine that all models of a list are owned by.
fn owner(body: &[u8]) -> Option<Engine> {
    let list: Models = serde_json::from_slice(body).ok()?;
    let mut owners = list.data.iter().map(|model| {
        Some(match model.owned_by.as_deref()? {
            "vllm" => Engine::Vllm,
            "sglang" => Engine::Sglang,
            "tensorrt_llm" => Engine::TensorRtLlm,
            "llamacpp" => Engine::LlamaCpp,
            "lmdeploy" => Engine::LmDeploy,
            "library" => Engine::Ollama,
            "nvidia" => Engine::DynamoFrontend,
            _ => return None,
        })
    });
    let first = owners.next()??;
    owners.all(|owner| owner == Some(first)).then_some(first)
}

/// Where a server tells its version, below its URL, if `engine` is what its page says.
#[must_use]
pub const fn version_path(engine: Option<Engine>) -> &'static str {
    match engine {
        Some(Engine::Tgi) => "/info",
        Some(Engine::Sglang) => "/get_server_info",
        Some(Engine::LlamaCpp) => "/props",
        Some(Engine::Ollama) => "/api/version",
        _ => "/version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::read_page;

    fn check(
        page: Option<&str>,
        (version, models): (&str, &str),
        expected: (Option<Engine>, Option<&str>),
    ) {
        let found = detect(Said {
            page: page.and_then(|page| read_page(page, None).engine()),
            version: Some(version.as_bytes()),
            models: Some(models.as_bytes()),
        });
        let expected = Detected {
            engine: expected.0,
            version: expected.1.map(str::to_owned),
        };
        assert_eq!(found, expected, "{version} {models}");
    }

    #[test]
    fn the_page_is_believed_before_the_owner_of_models() {
        let vllm = r#"{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}"#;
        let version = r#"{"version":"0.11.0"}"#;
        check(None, (version, vllm), (Some(Engine::Vllm), Some("0.11.0")));
        let page = Some("litellm_requests_metric_total 1\n");
        check(
            page,
            (version, vllm),
            (Some(Engine::LiteLlm), Some("0.11.0")),
        );
        check(
            Some("a 1\n"),
            (version, vllm),
            (Some(Engine::Vllm), Some("0.11.0")),
        );
    }

    #[test]
    fn each_owner_is_known_and_others_are_not() {
        let list = |owner: &str| format!(r#"{{"data":[{{"id":"m","owned_by":"{owner}"}}]}}"#);
        for (owner, engine) in [
            ("sglang", Some(Engine::Sglang)),
            ("tensorrt_llm", Some(Engine::TensorRtLlm)),
            ("llamacpp", Some(Engine::LlamaCpp)),
            ("lmdeploy", Some(Engine::LmDeploy)),
            ("library", Some(Engine::Ollama)),
            ("nvidia", Some(Engine::DynamoFrontend)),
            ("openai", None),
        ] {
            check(None, ("{}", &list(owner)), (engine, None));
        }
        let mixed = r#"{"data":[{"id":"a","owned_by":"vllm"},{"id":"b","owned_by":"sglang"}]}"#;
        check(None, ("", mixed), (None, None));
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        for body in ["", "<html>", "[]", r#"{"data":[]}"#, r#"{"version":7}"#] {
            check(None, (body, body), (None, None));
        }
        let props = r#"{"build_info":"b6000-abc","default_generation_settings":{}}"#;
        check(
            None,
            (props, "{}"),
            (Some(Engine::LlamaCpp), Some("b6000-abc")),
        );
        let long = format!(r#"{{"version":"{}"}}"#, "x".repeat(129));
        check(None, (&long, ""), (None, None));
    }
}
