//! The programs whose pages are understood.

/// A server whose metrics are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// vLLM, or what speaks its names.
    Vllm,
    /// `SGLang`.
    Sglang,
    /// Text Generation Inference.
    Tgi,
    /// `trtllm-serve`.
    TensorRtLlm,
    /// Triton, and its TensorRT-LLM backend.
    Triton,
    /// NVIDIA NIM with names of its own.
    Nim,
    /// The frontend of Dynamo.
    DynamoFrontend,
    /// A worker of Dynamo without the metrics of its engine.
    DynamoWorker,
    /// llama.cpp's server.
    LlamaCpp,
    /// `LMDeploy`.
    LmDeploy,
    /// The `LiteLLM` proxy.
    LiteLlm,
    /// Ray Serve.
    RayServe,
    /// `KServe`.
    KServe,
    /// Ollama.
    Ollama,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Vllm,
        Self::Sglang,
        Self::Tgi,
        Self::TensorRtLlm,
        Self::Triton,
        Self::Nim,
        Self::DynamoFrontend,
        Self::DynamoWorker,
        Self::LlamaCpp,
        Self::LmDeploy,
        Self::LiteLlm,
        Self::RayServe,
        Self::KServe,
        Self::Ollama,
    ];

    /// Its name in metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Tgi => "tgi",
            Self::TensorRtLlm => "tensorrt_llm",
            Self::Triton => "triton",
            Self::Nim => "nim",
            Self::DynamoFrontend => "dynamo_frontend",
            Self::DynamoWorker => "dynamo_worker",
            Self::LlamaCpp => "llama_cpp",
            Self::LmDeploy => "lmdeploy",
            Self::LiteLlm => "litellm",
            Self::RayServe => "ray_serve",
            Self::KServe => "kserve",
            Self::Ollama => "ollama",
        }
    }
}
