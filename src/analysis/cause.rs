//! What can be the matter, and what to look at then.

/// Why requests are slow or fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Requests wait for a place in the batch.
    Queueing,
    /// The KV cache is full, so requests wait or lose their place.
    KvCachePressure,
    /// The weights leave room for a few requests only.
    NoRoomForCache,
    /// Sequences lose their place again and again and are computed anew.
    Preemption,
    /// The prompt is computed more slowly, or there is more of it.
    PrefillBound,
    /// Each step of the batch takes longer: memory bandwidth.
    DecodeBound,
    /// It is as slow with a single request.
    SlowAlone,
    /// Prompts that begin alike are computed anew.
    PrefixCacheLoss,
    /// A GPU's clocks are held down.
    GpuThrottled,
    /// A GPU reported an error.
    GpuError,
    /// One GPU has more to do or to hold than the others.
    GpuImbalance,
    /// The GPUs idle while requests wait: the program beside them is too slow.
    HostBound,
    /// The server is short of processors, for its machine or its limit.
    ServerHost,
    /// Requests wait before the engine: tokenizer, API server, load balancer.
    FrontendBound,
    /// The time is lost between us and the server.
    Network,
    /// Something on the way keeps the answer back and sends it at once.
    BufferingProxy,
    /// It takes requests and produces nothing.
    HungEngine,
    /// Another model, version or format answers.
    ModelChange,
    /// We were late or slow ourselves.
    OwnClient,
}

/// How sure a diagnosis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// One sign; what would confirm it is not known.
    Possible,
    /// The signs it needs.
    Likely,
    /// And at least one more that speaks for it.
    Strong,
}

impl Confidence {
    /// Its name in labels and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Strong => "strong",
        }
    }

    /// As a number in metrics: 1, 2 or 3.
    #[must_use]
    pub const fn level(self) -> f64 {
        match self {
            Self::Possible => 1.0,
            Self::Likely => 2.0,
            Self::Strong => 3.0,
        }
    }
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Queueing,
        Self::KvCachePressure,
        Self::NoRoomForCache,
        Self::Preemption,
        Self::PrefillBound,
        Self::DecodeBound,
        Self::SlowAlone,
        Self::PrefixCacheLoss,
        Self::GpuThrottled,
        Self::GpuError,
        Self::GpuImbalance,
        Self::HostBound,
        Self::ServerHost,
        Self::FrontendBound,
        Self::Network,
        Self::BufferingProxy,
        Self::HungEngine,
        Self::ModelChange,
        Self::OwnClient,
    ];

    /// Its name in labels and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queueing => "queueing",
            Self::KvCachePressure => "kv_cache_pressure",
            Self::NoRoomForCache => "no_room_for_cache",
            Self::Preemption => "preemption",
            Self::PrefillBound => "prefill_bound",
            Self::DecodeBound => "decode_bound",
            Self::SlowAlone => "slow_alone",
            Self::PrefixCacheLoss => "prefix_cache_loss",
            Self::GpuThrottled => "gpu_throttled",
            Self::GpuError => "gpu_error",
            Self::GpuImbalance => "gpu_imbalance",
            Self::HostBound => "host_bound",
            Self::ServerHost => "server_host",
            Self::FrontendBound => "frontend_bound",
            Self::Network => "network",
            Self::BufferingProxy => "buffering_proxy",
            Self::HungEngine => "hung_engine",
            Self::ModelChange => "model_change",
            Self::OwnClient => "own_client",
        }
    }

    /// Those whose rule says nothing where the server's page lacks the role called `role`. Roles
    /// that only confirm a cause, or have another in their place, have none.
    #[must_use]
    pub fn untold_without(role: &str) -> &'static [Self] {
        match role {
            "running" => &[Self::SlowAlone, Self::FrontendBound, Self::HostBound],
            "waiting" => &[Self::Queueing, Self::FrontendBound],
            "kv_usage" => &[Self::KvCachePressure],
            "preemptions" => &[Self::Preemption],
            "ttft" => &[Self::Network],
            _ => &[],
        }
    }

    /// What an operator does about it. Options are vLLM's; other engines have them under other
    /// names.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Queueing => {
                "Requests wait while the KV cache has room: raise --max-num-seqs if the time between tokens allows it, else add a replica or take less load."
            }
            Self::KvCachePressure => {
                "The KV cache is what is short: raise --gpu-memory-utilization, store it in fp8 (--kv-cache-dtype fp8), lower --max-model-len or --max-num-seqs, or add a GPU."
            }
            Self::NoRoomForCache => {
                "Few requests fit beside the weights: take a smaller or quantised model, raise --tensor-parallel-size, or a GPU with more memory."
            }
            Self::Preemption => {
                "Work is thrown away and done again: lower --max-num-seqs so that what runs fits in the KV cache, or make room for more of it."
            }
            Self::PrefillBound => {
                "Computing prompts takes the time: look for longer prompts of other users, keep prefix caching on, tune --max-num-batched-tokens, or add prefill capacity."
            }
            Self::DecodeBound => {
                "Each token takes longer, and nothing waits: smaller batches (--max-num-seqs), a quantised model or a GPU with more memory bandwidth; more replicas help only if the batch has grown."
            }
            Self::SlowAlone => {
                "It is as slow with one request: more replicas will not help; a smaller or quantised model, speculative decoding, more tensor parallelism or a faster GPU will."
            }
            Self::PrefixCacheLoss => {
                "Prompts that begin alike are computed anew: see whether the server restarted, the router stopped sending users to the same replica, or the system prompt changed."
            }
            Self::GpuThrottled => {
                "Clocks are held down: look at temperature, cooling and power supply (nvidia-smi -q -d PERFORMANCE), and move load off this node meanwhile."
            }
            Self::GpuError => {
                "A GPU reported an XID: look at dmesg and at the error's number, drain the node, and reset or replace the GPU."
            }
            Self::GpuImbalance => {
                "One GPU has more to do than the others of its group: look at its clocks and neighbours, at data-parallel balance and expert placement."
            }
            Self::HostBound => {
                "GPUs wait for the program beside them: look at CPU use of the engine and API server, CUDA graphs (no --enforce-eager), --async-scheduling, and --api-server-count."
            }
            Self::ServerHost => {
                "The server is short of processors: raise the CPU limit of its container, above all where that is throttled, pin it to the GPU's NUMA node, and move noisy neighbours."
            }
            Self::FrontendBound => {
                "The engine has room and gets nothing to do: look at the API server, tokenizer and load balancer (--api-server-count, limits on connections), not at the GPU."
            }
            Self::Network => {
                "The server answers as fast as before: look at the gateway, proxy, service mesh and network between, and at packet loss."
            }
            Self::BufferingProxy => {
                "Streaming is broken on the way: switch off response buffering (nginx: proxy_buffering off; X-Accel-Buffering: no) and compression."
            }
            Self::HungEngine => {
                "It takes requests and produces nothing: restart it, keep a stack dump (py-spy dump), and see its log for NCCL timeouts."
            }
            Self::ModelChange => {
                "What answers was changed at that time: compare both releases, or roll back."
            }
            Self::OwnClient => {
                "We were late ourselves, so the server is not to blame: give the canary more CPU, or let it send less."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_documents_have_a_row_for_each() {
        let page = include_str!("../../docs/diagnosis.md");
        let rows: HashSet<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        for cause in Cause::ALL {
            assert!(rows.contains(cause.name()), "{}", cause.name());
        }
        for confidence in [Confidence::Possible, Confidence::Likely, Confidence::Strong] {
            assert!(rows.contains(confidence.name()), "{}", confidence.name());
        }
    }

    #[test]
    fn all_are_listed_once_and_say_what_to_do_in_one_line() {
        let names: HashSet<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert!(cause.advice().ends_with('.'), "{}", cause.name());
            assert!(!cause.advice().contains('\n'), "{}", cause.name());
        }
    }
}
