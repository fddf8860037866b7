//! Pairs of prompt and output lengths that go together: `128|16,64:70;4096,1024|100:30`.
//!
//! The text is that of `AIPerf`'s `--seq-dist` in its three forms: `ISL[|sd],OSL[|sd]:percent;…`,
//! `[(ISL[|sd],OSL[|sd]):percent,…]` and `{"pairs":[{"isl":…,"isl_stddev":…,"osl":…,
//! "osl_stddev":…,"prob":…}]}`. Percentages sum to 100. Beside these, the name of a shape.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::grammar::{number, shown};
use super::{Lengths, MOST_LENGTH};

/// Pairs of one distribution.
const MOST_PAIRS: usize = 1_000;
/// What a sum of percentages may be off by.
const SLACK: f64 = 1e-6;

/// Shapes of load that have a name: prompt and output tokens.
const SHAPES: [(&str, u32, u32); 7] = [
    ("short-short", SHORT_INPUT, SHORT_OUTPUT),
    ("short-long", SHORT_INPUT, LONG_OUTPUT),
    ("long-short", LONG_INPUT, SHORT_OUTPUT),
    ("long-long", LONG_INPUT, LONG_OUTPUT),
    ("512x512", 512, 512),
    ("1024x1024", 1_024, 1_024),
    ("4096x1024", 4_096, 1_024),
];
/// A question.
const SHORT_INPUT: u32 = 128;
/// A question with documents.
const LONG_INPUT: u32 = 4_096;
/// A sentence or two.
const SHORT_OUTPUT: u32 = 64;
/// A page.
const LONG_OUTPUT: u32 = 1_024;

/// One pair.
#[derive(Debug, Clone, PartialEq)]
pub struct SizePair {
    /// Prompt tokens: fixed or normal.
    pub input: Lengths,
    /// Output tokens: fixed or normal.
    pub output: Lengths,
    /// How often, in percent.
    pub percent: f64,
}

/// Pairs of prompt and output lengths, of which each request takes one.
#[derive(Debug, Clone, PartialEq)]
pub struct SizePairs(Arc<[SizePair]>);

impl SizePairs {
    /// The pairs that `text` describes or names.
    ///
    /// # Errors
    ///
    /// The value that is wrong, and what was wanted there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((_, input, output)) = SHAPES.iter().find(|(name, ..)| *name == text) {
            return Self::checked(vec![SizePair {
                input: Lengths::Fixed(*input),
                output: Lengths::Fixed(*output),
                percent: 100.0,
            }]);
        }
        let pairs = match text.chars().next() {
            Some('{') => json(text),
            Some('[') => bracketed(text),
            Some(first) if first.is_ascii_digit() => {
                let pairs = text.split(';').filter(|part| !part.trim().is_empty());
                pairs.take(MOST_PAIRS + 1).map(pair).collect()
            }
            _ => Err(wrong(text)),
        }?;
        Self::checked(pairs)
    }

    /// Names that can be given instead of pairs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHAPES.iter().map(|(name, ..)| *name)
    }

    /// The pairs, at least one; their percentages sum to 100.
    #[must_use]
    pub fn pairs(&self) -> &[SizePair] {
        &self.0
    }

    /// Mean prompt and output tokens of a request.
    #[must_use]
    pub fn mean(&self) -> (f64, f64) {
        let sum = |of: fn(&SizePair) -> &Lengths| {
            let parts = self.0.iter().map(|pair| pair.percent * of(pair).mean());
            parts.sum::<f64>() / self.0.iter().map(|pair| pair.percent).sum::<f64>()
        };
        (sum(|pair| &pair.input), sum(|pair| &pair.output))
    }

    fn checked(pairs: Vec<SizePair>) -> Result<Self, String> {
        if pairs.len() > MOST_PAIRS {
            return Err(format!("more than {MOST_PAIRS} pairs, wanted fewer"));
        }
        let sum = pairs.iter().fold(0.0, |sum, pair| sum + pair.percent);
        if (sum - 100.0).abs() > SLACK {
            return Err(format!("percentages that sum to `{sum}`, wanted 100"));
        }
        Ok(Self(pairs.into()))
    }
}

/// `ISL[|sd],OSL[|sd]:percent`.
fn pair(text: &str) -> Result<SizePair, String> {
    let (sizes, percent) = text.rsplit_once(':').ok_or_else(|| wrong(text))?;
    sized(sizes, percent)
}

fn sized(sizes: &str, percent: &str) -> Result<SizePair, String> {
    let (input, output) = sizes.split_once(',').ok_or_else(|| wrong(sizes))?;
    Ok(SizePair {
        input: side(input)?,
        output: side(output)?,
        percent: number(percent, "a percentage", 0.0..=100.0)?,
    })
}

/// `[(ISL[|sd],OSL[|sd]):percent,…]`.
fn bracketed(text: &str) -> Result<Vec<SizePair>, String> {
    let mut rest = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .ok_or_else(|| format!("`{}`, wanted `]` at the end", shown(text)))?
        .trim();
    let mut pairs = Vec::new();
    while !rest.is_empty() && pairs.len() <= MOST_PAIRS {
        let (sizes, after) = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .ok_or_else(|| wrong(rest))?;
        let after = after.trim_start();
        let after = after.strip_prefix(':').ok_or_else(|| wrong(rest))?;
        let (percent, next) = after.split_once(',').unwrap_or((after, ""));
        pairs.push(sized(sizes, percent)?);
        rest = next.trim();
    }
    Ok(pairs)
}

/// `ISL` or `ISL|sd`.
fn side(text: &str) -> Result<Lengths, String> {
    let (mean, sd) = text.split_once('|').unwrap_or((text, "0"));
    distribution(
        number(mean, "tokens", 1.0..=f64::from(MOST_LENGTH))?,
        number(sd, "a standard deviation", 0.0..=f64::from(MOST_LENGTH))?,
    )
}

fn distribution(mean: f64, sd: f64) -> Result<Lengths, String> {
    if sd <= 0.0 && mean.fract() > 0.0 {
        return Err(format!("`{mean}` as tokens, wanted a whole number"));
    }
    Ok(Lengths::normal(mean, sd))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    pairs: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    isl: f64,
    #[serde(default)]
    isl_stddev: f64,
    osl: f64,
    #[serde(default)]
    osl_stddev: f64,
    prob: f64,
}

fn json(text: &str) -> Result<Vec<SizePair>, String> {
    let wanted =
        "wanted `{\"pairs\": [{\"isl\", \"isl_stddev\", \"osl\", \"osl_stddev\", \"prob\"}]}`";
    let document: Document =
        serde_json::from_str(text).map_err(|error| format!("{error}, {wanted}"))?;
    let entries = document.pairs.iter().take(MOST_PAIRS + 1);
    entries.map(entry).collect()
}

fn entry(entry: &Entry) -> Result<SizePair, String> {
    let tokens =
        |name: &str, value: f64| number(&value.to_string(), name, 1.0..=f64::from(MOST_LENGTH));
    let deviation =
        |name: &str, value: f64| number(&value.to_string(), name, 0.0..=f64::from(MOST_LENGTH));
    Ok(SizePair {
        input: distribution(
            tokens("`isl`", entry.isl)?,
            deviation("`isl_stddev`", entry.isl_stddev)?,
        )?,
        output: distribution(
            tokens("`osl`", entry.osl)?,
            deviation("`osl_stddev`", entry.osl_stddev)?,
        )?,
        percent: number(&entry.prob.to_string(), "`prob`", 0.0..=100.0)?,
    })
}

fn wrong(text: &str) -> String {
    let names: Vec<String> = SizePairs::names().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    format!(
        "`{}`, wanted pairs as in `128|16,64:70;4096,1024:30` (percent), or one of {names}",
        shown(text.trim())
    )
}

impl fmt::Display for SizePairs {
    /// As [`SizePairs::parse`] reads it: `ISL[|sd],OSL[|sd]:percent;…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |lengths: &Lengths| match lengths {
            Lengths::Normal { mean, sd } => format!("{mean}|{sd}"),
            other => other.to_string(),
        };
        let pairs = self.0.iter().map(|pair| {
            let (input, output) = (side(&pair.input), side(&pair.output));
            format!("{input},{output}:{}", pair.percent)
        });
        f.write_str(&pairs.collect::<Vec<_>>().join(";"))
    }
}
