//! The usage object of the `OpenAI` family, under all its names.

use serde::Deserialize;

use super::Usage;
use super::count::Count;
use super::lenient::Maybe;

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
        let details = |one: Maybe<Details>, other: Maybe<Details>| {
            one.get().or(other.get()).unwrap_or_default()
        };
        let of_input = details(raw.prompt_tokens_details, raw.input_tokens_details);
        let of_output = details(raw.completion_tokens_details, raw.output_tokens_details);
        Self::of(
            raw.prompt_tokens.or(raw.input_tokens),
            raw.completion_tokens.or(raw.output_tokens),
            of_output.reasoning_tokens.or(raw.reasoning_tokens),
            of_input.cached_tokens,
        )
    }
}
