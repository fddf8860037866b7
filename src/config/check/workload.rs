//! What a probe sends: the sizes of its prompts, what they share, and what is beside the text.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{
    Audio, CacheModes, Counting, Images, Lengths, PrefixPool, PromptSource, SizePairs, Sizes,
    Synthetic, SystemPrompt, TextStyle, WorkloadConfig,
};
use super::known_answers::known_answers;
use super::prompt_file::prompt_file;
use super::small;
use crate::measurement::CacheMode;

/// Longest prompt and longest answer.
pub(super) const MOST_TOKENS: u64 = 1_000_000;
/// The tokens at the end of a warm prompt that are not fixed.
const WARM_TAIL: u32 = 16;
/// Prefixes of a pool; their texts are kept.
const MOST_PREFIXES: u64 = 100_000;
/// Pictures or sounds of one prompt.
const MOST_MEDIA: u64 = 100;
/// Pixels of a side of a picture.
const MOST_PIXELS: u64 = 8_192;
/// Longest and shortest sound.
const SOUND: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_mins(10);
/// Tools of a prompt; servers refuse more.
const MOST_TOOLS: u64 = 128;

/// The workload, if nothing is wrong with it.
pub(super) fn workload_of<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
) -> Option<WorkloadConfig> {
    if section.get("file").is_some() && section.get("known_answers").is_none() {
        return Some(WorkloadConfig {
            source: PromptSource::File(prompt_file(reader, section)?),
            cache: CacheModes::Only(CacheMode::Cold),
            cache_salt: false,
        });
    }
    if section.get("known_answers").is_some() {
        return known_answers(reader, section);
    }
    let cache = reader.optional(section, "cache", |given| {
        let known = [
            ("cold", CacheModes::Only(CacheMode::Cold)),
            ("warm", CacheModes::Only(CacheMode::Warm)),
            ("paired", CacheModes::Paired),
        ];
        given.word(&known, &[])
    });
    let cache = cache.unwrap_or(CacheModes::Only(CacheMode::Cold));
    let cache_salt = reader.optional(section, "cache_salt", |given| given.flag());
    reader.require(section, "synthetic");
    let synthetic = reader.subsection(section, "synthetic", &keys::SYNTHETIC)?;
    Some(WorkloadConfig {
        source: PromptSource::Synthetic(Box::new(synthetic_of(reader, &synthetic, cache)?)),
        cache,
        cache_salt: cache_salt.unwrap_or(false),
    })
}

fn synthetic_of<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    cache: CacheModes,
) -> Option<Synthetic> {
    let sizes = sizes_of(reader, section, cache);
    let style = reader.optional(section, "style", |given| {
        given.word(&TextStyle::ALL.map(|style| (style.name(), style)), &[])
    });
    let count = reader.optional(section, "count", |given| {
        let known = [
            ("auto", Counting::Auto),
            ("words", Counting::Words),
            ("tokenizer", Counting::Tokenizer),
            ("server", Counting::Server),
        ];
        given.word(&known, &[])
    });
    let system = system_of(reader, section);
    let context_tokens = reader.optional(section, "context_tokens", tokens);
    let tools = reader.optional(section, "tools", |given| given.whole(0..=MOST_TOOLS));
    let prefixes = pool_of(reader, section);
    let images = images_of(reader, section);
    let audio = audio_of(reader, section);
    Some(Synthetic {
        style: style.unwrap_or_default(),
        count: count.unwrap_or_default(),
        system,
        prefixes,
        context_tokens,
        images,
        audio,
        tools: small(tools.unwrap_or(0)),
        ..Synthetic::new(sizes?)
    })
}

/// Either `sizes`, or `input_tokens` and `output_tokens`.
fn sizes_of<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    cache: CacheModes,
) -> Option<Sizes> {
    let long_enough = |most: u32| {
        if cache != CacheModes::Only(CacheMode::Cold) && most <= WARM_TAIL {
            return Err(Refusal::new(Problem::OutOfRange)
                .wanted(format!(
                    "more than `{WARM_TAIL}` for `cache: warm` and `cache: paired`"
                ))
                .hint("the last 16 tokens of a warm prompt are always new"));
        }
        Ok(())
    };
    if section.get("sizes").is_some() {
        for other in ["input_tokens", "output_tokens"] {
            if let Some(node) = section.get(other) {
                let refusal = Refusal::new(Problem::Conflict)
                    .wanted("`sizes`, or `input_tokens` and `output_tokens`");
                reader.refuse(&node, &refusal);
            }
        }
        return reader.optional(section, "sizes", |given| {
            let sizes = Sizes::Pairs(SizePairs::parse(given.text()?).map_err(not_understood)?);
            long_enough(sizes.most_input())?;
            Ok(sizes)
        });
    }
    let input = reader.required(section, "input_tokens", |given| {
        let lengths = lengths(given)?;
        long_enough(lengths.most())?;
        Ok(lengths)
    });
    let output = reader.required(section, "output_tokens", lengths);
    Some(Sizes::Apart {
        input: input?,
        output: Some(output?),
    })
}

/// A number of tokens, or a distribution of them.
fn lengths(given: Given<'_>) -> Result<Lengths, Refusal> {
    match given.whole(1..=MOST_TOKENS) {
        Ok(tokens) => Ok(Lengths::Fixed(small(tokens))),
        Err(refusal) => match given.text() {
            Ok(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Lengths::parse(text).map_err(not_understood)
            }
            _ => Err(refusal),
        },
    }
}

fn not_understood(wanted: String) -> Refusal {
    Refusal::new(Problem::NotUnderstood).hint(wanted)
}

fn tokens(given: Given<'_>) -> Result<u32, Refusal> {
    given.whole(1..=MOST_TOKENS).map(small)
}

/// `system_tokens` or `system_prompt`.
fn system_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<SystemPrompt> {
    let made = reader.optional(section, "system_tokens", tokens);
    let given = reader.optional(section, "system_prompt", |given| {
        match given.text()?.trim() {
            "" => Err(Refusal::new(Problem::OutOfRange)),
            text => Ok(text.to_owned()),
        }
    });
    if let (Some(_), Some(node)) = (&made, section.get("system_prompt")) {
        let refusal =
            Refusal::new(Problem::Conflict).wanted("`system_tokens` or `system_prompt`, not both");
        reader.refuse(&node, &refusal);
    }
    made.map(SystemPrompt::Tokens)
        .or_else(|| given.map(SystemPrompt::Text))
}

fn pool_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<PrefixPool> {
    let pool = reader.subsection(section, "prefixes", &keys::PREFIXES)?;
    let count = reader.required(&pool, "count", |given| given.whole(1..=MOST_PREFIXES));
    let tokens = reader.required(&pool, "tokens", tokens);
    Some(PrefixPool {
        count: small(count?),
        tokens: tokens?,
    })
}

fn images_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Images> {
    let images = reader.subsection(section, "images", &keys::IMAGES)?;
    let count = reader.optional(&images, "count", |given| given.whole(1..=MOST_MEDIA));
    let mut side = |key| reader.required(&images, key, |given| given.whole(1..=MOST_PIXELS));
    let (width, height) = (side("width"), side("height"));
    Some(Images {
        count: small(count.unwrap_or(1)),
        width: small(width?),
        height: small(height?),
    })
}

fn audio_of<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Audio> {
    let audio = reader.subsection(section, "audio", &keys::AUDIO)?;
    let count = reader.optional(&audio, "count", |given| given.whole(1..=MOST_MEDIA));
    let length = reader.required(&audio, "length", |given| given.duration(SOUND));
    Some(Audio {
        count: small(count.unwrap_or(1)),
        length: length?,
    })
}
