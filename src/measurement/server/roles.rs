//! The roles of metrics, whatever an engine calls them.

/// What a gauge says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GaugeRole {
    /// Requests in the executing batch.
    Running,
    /// Requests queued before execution.
    Waiting,
    /// Requests whose KV cache was moved to the host.
    Swapped,
    /// Occupancy of the KV cache, 0 to 1; the mean over ranks.
    KvUsage,
    /// The same of the fullest rank.
    KvUsageMax,
    /// Share of looked-up prompt tokens that were cached, as the server computes it.
    PrefixHitRate,
    /// Most requests in the executing batch.
    RunningLimit,
    /// Blocks of the KV cache.
    KvBlocks,
    /// Blocks of the KV cache in use.
    KvBlocksUsed,
    /// Tokens of one block.
    BlockTokens,
    /// Tokens that the KV cache holds.
    KvTokens,
    /// Tokens of the KV cache in use.
    KvTokensUsed,
}

impl GaugeRole {
    /// How many there are.
    pub const COUNT: usize = 12;
    /// All of them, in the order of their positions.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Running,
        Self::Waiting,
        Self::Swapped,
        Self::KvUsage,
        Self::KvUsageMax,
        Self::PrefixHitRate,
        Self::RunningLimit,
        Self::KvBlocks,
        Self::KvBlocksUsed,
        Self::BlockTokens,
        Self::KvTokens,
        Self::KvTokensUsed,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Swapped => "swapped",
            Self::KvUsage => "kv_usage",
            Self::KvUsageMax => "kv_usage_max",
            Self::PrefixHitRate => "prefix_hit_rate",
            Self::RunningLimit => "running_limit",
            Self::KvBlocks => "kv_blocks",
            Self::KvBlocksUsed => "kv_blocks_used",
            Self::BlockTokens => "block_tokens",
            Self::KvTokens => "kv_tokens",
            Self::KvTokensUsed => "kv_tokens_used",
        }
    }

    /// Whether it is a share, 0 to 1.
    #[must_use]
    pub const fn is_share(self) -> bool {
        matches!(self, Self::KvUsage | Self::KvUsageMax | Self::PrefixHitRate)
    }
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterRole {
    /// Prompt tokens.
    PromptTokens,
    /// Generated tokens.
    GenerationTokens,
    /// Tokens (or blocks) looked up in the prefix cache.
    PrefixQueries,
    /// Those that were there.
    PrefixHits,
    /// Requests taken out of the batch for lack of memory.
    Preemptions,
    /// Requests that ended, for whatever reason; where an engine counts sequences, these.
    Requests,
    /// Seconds spent on prefill, added up over requests.
    PrefillTime,
    /// Seconds spent on decoding, added up over requests.
    DecodeTime,
    /// Tokens drafted by speculation.
    DraftTokens,
    /// Drafted tokens that were accepted.
    AcceptedTokens,
}

impl CounterRole {
    /// How many there are.
    pub const COUNT: usize = 10;
    /// All of them, in the order of their positions.
    pub const ALL: [Self; Self::COUNT] = [
        Self::PromptTokens,
        Self::GenerationTokens,
        Self::PrefixQueries,
        Self::PrefixHits,
        Self::Preemptions,
        Self::Requests,
        Self::PrefillTime,
        Self::DecodeTime,
        Self::DraftTokens,
        Self::AcceptedTokens,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PromptTokens => "prompt_tokens",
            Self::GenerationTokens => "generation_tokens",
            Self::PrefixQueries => "prefix_queries",
            Self::PrefixHits => "prefix_hits",
            Self::Preemptions => "preemptions",
            Self::Requests => "requests",
            Self::PrefillTime => "prefill_time",
            Self::DecodeTime => "decode_time",
            Self::DraftTokens => "draft_tokens",
            Self::AcceptedTokens => "accepted_tokens",
        }
    }
}

/// What the values of a histogram are, all in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HistogramRole {
    /// Time to first token.
    Ttft,
    /// Time between tokens, one value per gap.
    Itl,
    /// Mean time per token, one value per request.
    Tpot,
    /// Whole requests.
    E2e,
    /// Waiting before execution.
    Queue,
    /// Prefill.
    Prefill,
    /// Decoding.
    Decode,
}

impl HistogramRole {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them, in the order of their positions.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Ttft,
        Self::Itl,
        Self::Tpot,
        Self::E2e,
        Self::Queue,
        Self::Prefill,
        Self::Decode,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Itl => "itl",
            Self::Tpot => "tpot",
            Self::E2e => "e2e",
            Self::Queue => "queue",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}
