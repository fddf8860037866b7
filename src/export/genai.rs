//! The `GenAI` conventions' words for what is asked for, and by whose protocol.

use crate::measurement::Api;

/// The operation that a protocol asks for.
pub(super) const fn operation(api: Api) -> &'static str {
    match api {
        Api::Chat | Api::Responses | Api::Messages | Api::Ollama | Api::Cohere => "chat",
        Api::Gemini => "generate_content",
        Api::Completions
        | Api::Tgi
        | Api::Llamacpp
        | Api::OllamaGenerate
        | Api::Triton
        | Api::Kserve
        | Api::Raw
        | Api::Template => "text_completion",
        Api::Embeddings | Api::ChatEmbeddings | Api::NimEmbeddings | Api::TeiEmbed => "embeddings",
        Api::Rerank | Api::CohereRerank | Api::TeiRerank | Api::NimRerank => "rerank",
    }
}

/// Which flavour of the wire is spoken: whose protocol it is, not who serves. The conventions
/// know no names for self-hosted engines.
pub(super) const fn provider(api: Api) -> &'static str {
    match api {
        Api::Chat | Api::Completions | Api::Responses | Api::Embeddings | Api::ChatEmbeddings => {
            "openai"
        }
        Api::Messages => "anthropic",
        Api::Gemini => "gcp.gemini",
        Api::Cohere | Api::CohereRerank => "cohere",
        Api::Tgi | Api::TeiEmbed | Api::TeiRerank => "huggingface",
        Api::Llamacpp => "llama_cpp",
        Api::Ollama | Api::OllamaGenerate => "ollama",
        Api::Triton | Api::NimEmbeddings | Api::NimRerank => "nvidia",
        Api::Kserve => "kserve",
        Api::Rerank => "jina",
        Api::Raw | Api::Template => "custom",
    }
}
