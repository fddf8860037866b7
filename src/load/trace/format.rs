//! The formats that are read, a closed set: their names, clocks and block sizes.
//!
//! Names are those of `--custom-dataset-type` of `AIPerf` where it has the format.

use super::number::Unit;

/// A file format of traces or prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Mooncake, JSON lines: milliseconds, blocks of 512 tokens.
    Mooncake,
    /// Bailian (Qwen), JSON lines: seconds, blocks of 16 tokens.
    Bailian,
    /// `BurstGPT`, versions 1 to 3, CSV: seconds.
    BurstGpt,
    /// Azure LLM inference traces of 2023, 2024 and 2025, CSV: instants.
    Azure,
    /// JSON lines with a time and two lengths: seconds.
    Minimal,
    /// Baseten, Parquet: Unix milliseconds, blocks of 64 tokens.
    Baseten,
    /// Data capture of a `SageMaker` endpoint, JSON lines: instants.
    SageMaker,
    /// WEKA agent sessions, one JSON object each: seconds.
    Weka,
    /// `TraceLab` rounds of agent sessions, JSON lines: instants.
    TraceLab,
    /// `ShareGPT` conversations, one JSON array.
    ShareGpt,
    /// JSON lines with `messages`, as sent to chat completions.
    Messages,
    /// JSON lines with one prompt each.
    SingleTurn,
    /// JSON lines with `turns`.
    MultiTurn,
    /// JSON lines of prompts to draw from.
    RandomPool,
    /// `inputs.json` of `AIPerf`: whole request bodies by session.
    Inputs,
    /// JSON lines, each a whole request body.
    RawPayload,
}

/// What rows of a format are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Requests with times and lengths.
    Trace,
    /// Prompts.
    Prompts,
}

/// What the times of a format count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The start of the recording.
    Start,
    /// The beginning of 1970, UTC.
    Unix,
    /// The start of each session.
    Session,
}

impl Format {
    /// Every format, in the order in which lists show them.
    pub const ALL: [Self; 16] = [
        Self::Mooncake,
        Self::Bailian,
        Self::BurstGpt,
        Self::Azure,
        Self::Minimal,
        Self::Baseten,
        Self::SageMaker,
        Self::Weka,
        Self::TraceLab,
        Self::ShareGpt,
        Self::Messages,
        Self::SingleTurn,
        Self::MultiTurn,
        Self::RandomPool,
        Self::Inputs,
        Self::RawPayload,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "mooncake_trace",
            Self::Bailian => "bailian_trace",
            Self::BurstGpt => "burst_gpt_trace",
            Self::Azure => "azure_trace",
            Self::Minimal => "minimal_trace",
            Self::Baseten => "baseten_trace",
            Self::SageMaker => "sagemaker_data_capture",
            Self::Weka => "weka_trace",
            Self::TraceLab => "tracelab",
            Self::ShareGpt => "sharegpt",
            Self::Messages => "messages",
            Self::SingleTurn => "single_turn",
            Self::MultiTurn => "multi_turn",
            Self::RandomPool => "random_pool",
            Self::Inputs => "inputs_json",
            Self::RawPayload => "raw_payload",
        }
    }

    /// The format of this name; `_trace` at its end may be left out.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            format.name() == name || format.name().strip_suffix("_trace") == Some(name)
        })
    }

    /// What its rows are.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Mooncake
            | Self::Bailian
            | Self::BurstGpt
            | Self::Azure
            | Self::Minimal
            | Self::Baseten
            | Self::SageMaker
            | Self::Weka
            | Self::TraceLab => Kind::Trace,
            _ => Kind::Prompts,
        }
    }

    /// What its times count from.
    #[must_use]
    pub const fn clock(self) -> Clock {
        match self {
            Self::Azure | Self::Baseten | Self::SageMaker | Self::TraceLab => Clock::Unix,
            Self::Weka => Clock::Session,
            _ => Clock::Start,
        }
    }

    /// Tokens of a block where the file does not say.
    #[must_use]
    pub const fn block_tokens(self) -> u32 {
        match self {
            Self::Bailian => 16,
            Self::Baseten | Self::TraceLab => 64,
            _ => 512,
        }
    }

    /// Unit of its times, where they are numbers.
    pub(super) const fn unit(self) -> Unit {
        match self {
            Self::Bailian | Self::BurstGpt | Self::Minimal | Self::Weka => Unit::Seconds,
            _ => Unit::Milliseconds,
        }
    }

    /// Whether rows have to come in the order of their times. Captures and agent sessions are
    /// written when requests end, or session by session.
    pub(super) const fn is_ordered(self) -> bool {
        matches!(
            self,
            Self::Mooncake | Self::Bailian | Self::BurstGpt | Self::Azure | Self::Minimal
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_both_names() {
        assert_eq!(Format::named("mooncake_trace"), Some(Format::Mooncake));
        assert_eq!(Format::named("mooncake"), Some(Format::Mooncake));
        assert_eq!(Format::named("sharegpt"), Some(Format::ShareGpt));
        assert_eq!(Format::named("trace"), None);
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
        }
    }
}
