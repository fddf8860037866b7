//! How fast the modelled engine is.
//!
//! Every step of the engine (a prefill, the next token of a sequence) lasts a whole number of
//! milliseconds, or nothing: timers have millisecond steps, so finer times would not be exact.
//! This file turns the parameters into such steps; it does not know what runs.

use std::time::Duration;

/// Speed and size of the modelled engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Time from admission to the first token for a prompt of no length.
    pub prefill_base: Duration,
    /// Further prefill time per 1000 prompt tokens.
    pub prefill_per_1k_tokens: Duration,
    /// Time from one token to the next while the sequence runs alone.
    pub decode_base: Duration,
    /// Further time per token for each other sequence that runs beside it.
    pub decode_per_extra_sequence: Duration,
    /// Sequences that run at once, at least 1; the others wait in order.
    pub max_running: usize,
    /// Tokens the KV cache holds. Only the usage gauge knows it: a full cache preempts nothing.
    pub kv_capacity_tokens: u32,
    /// Share in [0, 1) by which each step may be shorter or longer, drawn by seed; 0 is off.
    pub jitter: f64,
    /// Whether a request that does not ask for a fixed length may end earlier, drawn by seed.
    pub stops_early: bool,
}

impl Profile {
    /// A small model on one GPU: TTFT around 40 to 80 ms, ITL around 8 to 12 ms.
    #[must_use]
    pub const fn demo() -> Self {
        Self {
            prefill_base: Duration::from_millis(45),
            prefill_per_1k_tokens: Duration::from_millis(80),
            decode_base: Duration::from_millis(9),
            decode_per_extra_sequence: Duration::from_micros(250),
            max_running: 64,
            kv_capacity_tokens: 16_384,
            jitter: 0.15,
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
            kv_capacity_tokens: 1_048_576,
            jitter: 0.0,
            stops_early: false,
        }
    }

    /// Time from admission to the first token, before jitter and faults.
    #[must_use]
    pub fn prefill(&self, prompt_tokens: u32) -> Duration {
        self.prefill_base + self.prefill_per_1k_tokens * prompt_tokens / 1000
    }

    /// Time to the next token in a batch of `running` sequences, before jitter and faults.
    #[must_use]
    pub fn decode(&self, running: usize) -> Duration {
        let others = u32::try_from(running.saturating_sub(1)).unwrap_or(u32::MAX);
        self.decode_base + self.decode_per_extra_sequence * others
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
