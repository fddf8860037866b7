//! How fast the modelled engine is.
//!
//! Every step of the engine (a prefill, the next token of a sequence) lasts a whole number of
//! milliseconds, or nothing: timers have millisecond steps, so finer times would not be exact.
//! This file turns the parameters into such steps; it does not know what runs.

use std::time::Duration;

/// Tokens of a block where vLLM is not told otherwise.
const VLLM_BLOCK: u32 = 16;
/// Sequences that vLLM runs at once where it is not told otherwise.
const VLLM_SEQUENCES: usize = 256;

/// Speed and size of the modelled engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Time from admission to the first token for a prompt of no length.
    pub prefill_base: Duration,
    /// Further prefill time per 1000 prompt tokens that are not in the prefix cache.
    pub prefill_per_1k_tokens: Duration,
    /// Time from one token to the next while the sequence runs alone.
    pub decode_base: Duration,
    /// Further time per token for each other sequence that runs beside it.
    pub decode_per_extra_sequence: Duration,
    /// Sequences that run at once, at least 1; the others wait in order.
    pub max_running: usize,
    /// Blocks of the KV cache, at least 1. A sequence runs only while it has one for each
    /// `block_tokens` of its tokens, begun ones included.
    pub kv_blocks: u32,
    /// Tokens of a block, at least 1.
    pub block_tokens: u32,
    /// Whether full blocks that are free or shared serve prompts that begin alike.
    pub prefix_caching: bool,
    /// Share in [0, 1) by which each step may be shorter or longer, drawn by seed; 0 is off.
    pub jitter: f64,
    /// Whether a request that does not ask for a fixed length may end earlier, drawn by seed.
    pub stops_early: bool,
}

impl Profile {
    /// A middling model on one GPU: TTFT around 40 to 60 ms for a short prompt, near 300 ms for
    /// one of 2,000 tokens and as for a short one if most of it is cached; ITL around 8 to 12 ms.
    #[must_use]
    pub const fn demo() -> Self {
        Self {
            prefill_base: Duration::from_millis(35),
            // 8,000 tokens a second, so that what the prefix cache saves can be seen.
            prefill_per_1k_tokens: Duration::from_millis(120),
            decode_base: Duration::from_millis(9),
            decode_per_extra_sequence: Duration::from_micros(250),
            max_running: 64,
            // 65,536 tokens: 64 sequences of 1,000.
            kv_blocks: 4096,
            block_tokens: VLLM_BLOCK,
            prefix_caching: true,
            jitter: 0.15,
            stops_early: false,
        }
    }

    /// A model of 0.6 billion parameters (as Qwen3-0.6B in bf16) on one GPU of 80 GB (as H100):
    /// everything but the cache is overhead.
    #[must_use]
    pub const fn small() -> Self {
        Self {
            // HTTP, tokenizer, scheduler and the launch of one forward pass.
            prefill_base: Duration::from_millis(12),
            // 1.2 GFLOP a token: 100,000 tokens a second at an eighth of the GPU's 990 TFLOP/s.
            prefill_per_1k_tokens: Duration::from_millis(10),
            // 1.2 GB of weights are read in 0.4 ms; the rest is the launch of 28 layers.
            decode_base: Duration::from_millis(3),
            // 1,000 tokens of context are 115 MB, read in 35 us, and a sample is drawn.
            decode_per_extra_sequence: Duration::from_micros(40),
            max_running: VLLM_SEQUENCES,
            // 28 layers * 2 * 8 heads * 128 * 2 bytes = 112 KiB a token; 0.9 of 80 GB less
            // weights and activations is 68 GB: 590,000 tokens.
            kv_blocks: 37_000,
            block_tokens: VLLM_BLOCK,
            prefix_caching: true,
            jitter: 0.1,
            stops_early: false,
        }
    }

    /// A model of 70 billion parameters (as Llama 3.3 in bf16) on four GPUs of 80 GB (as H100):
    /// bound by arithmetic in prefill, by memory in decode, and short of KV cache.
    #[must_use]
    pub const fn large() -> Self {
        Self {
            // As for the small one, and 160 sums over the GPUs.
            prefill_base: Duration::from_millis(30),
            // 141 GFLOP a token: 12,500 tokens a second at 45 % of 4 * 990 TFLOP/s.
            prefill_per_1k_tokens: Duration::from_millis(80),
            // 141 GB of weights are read in 14 ms at 75 % of 4 * 3.35 TB/s; the rest is sums over
            // the GPUs and launches.
            decode_base: Duration::from_millis(18),
            // 1,000 tokens of context are 330 MB, read in 33 us; the token's arithmetic is 80 us.
            decode_per_extra_sequence: Duration::from_micros(110),
            max_running: VLLM_SEQUENCES,
            // 80 layers * 2 * 8 heads * 128 * 2 bytes = 320 KiB a token; 0.9 of 320 GB less
            // weights and activations is 135 GB: 412,000 tokens.
            kv_blocks: 25_700,
            block_tokens: VLLM_BLOCK,
            prefix_caching: true,
            jitter: 0.1,
            stops_early: false,
        }
    }

    /// No delay anywhere.
    #[must_use]
    pub const fn instant() -> Self {
        Self::fixed(Duration::ZERO, Duration::ZERO)
    }

    /// Exactly `ttft` to the first token and `itl` between tokens, whatever else runs.
    #[must_use]
    pub const fn fixed(ttft: Duration, itl: Duration) -> Self {
        Self {
            prefill_base: ttft,
            prefill_per_1k_tokens: Duration::ZERO,
            decode_base: itl,
            decode_per_extra_sequence: Duration::ZERO,
            max_running: 4096,
            // Four million tokens, so that nothing waits for a block.
            kv_blocks: 262_144,
            block_tokens: VLLM_BLOCK,
            prefix_caching: true,
            jitter: 0.0,
            stops_early: false,
        }
    }

    /// Time from admission to the first token, before jitter and faults, for a prompt of which
    /// so many tokens are not cached.
    #[must_use]
    pub fn prefill(&self, tokens: u32) -> Duration {
        self.prefill_base + self.prefill_per_1k_tokens * tokens / 1000
    }

    /// Tokens that fit in the KV cache.
    #[must_use]
    pub fn kv_tokens(&self) -> u64 {
        u64::from(self.kv_blocks.max(1)) * u64::from(self.block_tokens.max(1))
    }

    /// Time to the next token in a batch of `running` sequences, before jitter and faults.
    #[must_use]
    pub fn decode(&self, running: usize) -> Duration {
        let others = u32::try_from(running.saturating_sub(1)).unwrap_or(u32::MAX);
        self.decode_base + self.decode_per_extra_sequence * others
    }

    /// The same where what each sequence adds, the first one too, lasts `factor` times as long.
    #[must_use]
    pub fn decode_strained(&self, running: usize, factor: f64) -> Duration {
        let normal = self.decode(running);
        let sequences = u32::try_from(running).unwrap_or(u32::MAX);
        let share = self.decode_per_extra_sequence * sequences;
        (normal + share.mul_f64(factor)).saturating_sub(share)
    }
}

/// `span` times `factor` as a step of the engine: the nearest whole millisecond, at least one
/// unless the span is zero. `factor` is finite and positive.
#[must_use]
pub(super) fn whole_millis(span: Duration, factor: f64) -> Duration {
    if span.is_zero() {
        return span;
    }
    let scaled = span.mul_f64(factor) + Duration::from_micros(500);
    let millis = u64::try_from(scaled.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn prefill_grows_with_the_prompt_and_decode_with_the_batch() {
        let profile = Profile {
            prefill_base: ms(10),
            prefill_per_1k_tokens: ms(100),
            decode_per_extra_sequence: ms(2),
            ..Profile::fixed(ms(0), ms(5))
        };
        assert_eq!(profile.prefill(0), ms(10));
        assert_eq!(profile.prefill(250), ms(35));
        assert_eq!(profile.decode(1), ms(5));
        assert_eq!(profile.decode(4), ms(11));
    }

    #[test]
    fn steps_are_whole_milliseconds_or_nothing() {
        assert_eq!(whole_millis(Duration::ZERO, 3.0), Duration::ZERO);
        assert_eq!(whole_millis(Duration::from_micros(100), 1.0), ms(1));
        assert_eq!(whole_millis(Duration::from_micros(9_250), 1.0), ms(9));
        assert_eq!(whole_millis(Duration::from_micros(9_500), 1.0), ms(10));
        assert_eq!(whole_millis(ms(10), 1.5), ms(15));
    }
}
