//! The usage object of the `OpenAI` family, under all its names.

use serde::Deserialize;

use super::Usage;
use super::lenient::{Count, Maybe};

/// Usage as it is written. Some servers send both names of one count.
#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(super) struct RawUsage {
    prompt_tokens: Count,
    input_tokens: Count,
    completion_tokens: Count,
    output_tokens: Count,
    /// `SGLang` has it here, others among the details.
    reasoning_tokens: Count,
    prompt_tokens_details: Maybe<Details>,
    input_tokens_details: Maybe<Details>,
    completion_tokens_details: Maybe<Details>,
    output_tokens_details: Maybe<Details>,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Details {
    cached_tokens: Count,
    reasoning_tokens: Count,
}

/// What a usage field says; nothing if it is null, empty, or not there.
pub(super) fn usage(raw: Maybe<RawUsage>) -> Option<Usage> {
    let usage = match raw {
        Maybe::Absent => return None,
        Maybe::Odd => Usage {
            bad: true,
            ..Usage::default()
        },
        Maybe::Object(raw) => raw.into(),
    };
    (usage != Usage::default()).then_some(usage)
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        let mut bad = false;
        let mut first = |counts: [Count; 2]| {
            bad |= counts.iter().any(|count| count.bad);
            counts[0].value.or(counts[1].value)
        };
        let input = first([raw.prompt_tokens, raw.input_tokens]);
        let output = first([raw.completion_tokens, raw.output_tokens]);
        let details = |one: Maybe<Details>, other: Maybe<Details>| {
            one.get().or(other.get()).unwrap_or_default()
        };
        let of_input = details(raw.prompt_tokens_details, raw.input_tokens_details);
        let of_output = details(raw.completion_tokens_details, raw.output_tokens_details);
        let reasoning = first([of_output.reasoning_tokens, raw.reasoning_tokens]);
        let cached = first([of_input.cached_tokens, Count::default()]);
        Self {
            input,
            output,
            reasoning,
            cached,
            bad,
        }
    }
}
