//! The text of a distribution, and back: `128`, `normal(512, 64)`, `log_normal(512, 256)`,
//! `uniform(64, 256)`, `one_of(128, 256:3, 512)`, `mix(70: normal(128, 16), 30: 2048)`.
//!
//! What is read is written again in the same form, so that a plan or a record can show it. Mixes
//! hold mixes, but those hold none; parts are counted, so no text makes a large value.

use std::fmt;
use std::ops::RangeInclusive;

use super::{Lengths, MOST_LENGTH};

/// Parts of one mix or one list.
const MOST_PARTS: usize = 1_000;
/// Mixes inside each other.
const MOST_DEPTH: u32 = 2;
/// Weights; beyond these a part is there always or never.
const MOST_WEIGHT: f64 = 1e9;
/// Standard deviation of a log-normal length, in means; with more, nearly all of it lies below 1.
const MOST_SPREAD: f64 = 100.0;
/// All forms, for messages.
const FORMS: &str = "a length as in `128`, `normal(512, 64)`, `log_normal(512, 256)`, \
                     `uniform(64, 256)`, `one_of(128, 256:3)` or `mix(70: 128, 30: 2048)`";

impl Lengths {
    /// The distribution that `text` describes.
    ///
    /// # Errors
    ///
    /// The value that is wrong, and what was wanted there.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text, 0)
    }
}

fn parse(text: &str, depth: u32) -> Result<Lengths, String> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return length(text).map(Lengths::Fixed).map_err(|wrong| {
            if text.starts_with(|first: char| first.is_ascii_digit()) {
                wrong
            } else {
                format!("`{}`, wanted {FORMS}", shown(text))
            }
        });
    };
    let Some(inside) = rest.strip_suffix(')') else {
        return Err(format!("`{}`, wanted `)` at the end", shown(text)));
    };
    let parts = split(inside)?;
    match name.trim() {
        "normal" => {
            let (mean, sd) = moments(text, &parts, f64::INFINITY)?;
            Ok(Lengths::Normal { mean, sd })
        }
        "log_normal" => {
            let (mean, sd) = moments(text, &parts, MOST_SPREAD)?;
            Ok(Lengths::LogNormal { mean, sd })
        }
        "uniform" => uniform(text, &parts),
        "one_of" => values(&parts).map(|parts| Lengths::OneOf(parts.into())),
        "mix" if depth == MOST_DEPTH => Err(format!(
            "`{}` inside {MOST_DEPTH} mixes, wanted at most {MOST_DEPTH} inside each other",
            shown(text)
        )),
        "mix" => mixed(&parts, depth + 1).map(|parts| Lengths::Mix(parts.into())),
        _ => Err(format!("`{}`, wanted {FORMS}", shown(text))),
    }
}

/// The parts between commas that stand in no further brackets.
fn split(inside: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i64);
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(inside[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if depth < 0 || parts.len() >= MOST_PARTS {
            break;
        }
    }
    if depth != 0 {
        return Err(format!("`{}`, wanted a `)` for each `(`", shown(inside)));
    }
    if parts.len() >= MOST_PARTS {
        return Err(format!("more than {MOST_PARTS} parts, wanted fewer"));
    }
    parts.push(inside[start..].trim());
    Ok(parts)
}

/// Mean and standard deviation, which is at most `spread` times the mean.
fn moments(text: &str, parts: &[&str], spread: f64) -> Result<(f64, f64), String> {
    let [mean, sd] = parts else {
        let wanted = "wanted a mean and a standard deviation";
        return Err(format!("`{}`, {wanted}", shown(text)));
    };
    let most = f64::from(MOST_LENGTH);
    let mean = number(mean, "a mean", 1.0..=most)?;
    let most = most.min(mean * spread);
    Ok((mean, number(sd, "a standard deviation", 0.0..=most)?))
}

fn uniform(text: &str, parts: &[&str]) -> Result<Lengths, String> {
    let [least, most] = parts else {
        return Err(format!("`{}`, wanted the least and the most", shown(text)));
    };
    let (least, most) = (length(least)?, length(most)?);
    if most < least {
        let wanted = format!("wanted at least {least}, the least");
        return Err(format!("`{most}` as the most, {wanted}"));
    }
    Ok(Lengths::Uniform { least, most })
}

/// The parts of a list, each with the weight 1 if it gives none: in `256:3` the weight comes
/// last.
fn values(parts: &[&str]) -> Result<Vec<(f64, u32)>, String> {
    let value = |part: &&str| match part.split_once(':') {
        None => Ok((1.0, length(part)?)),
        Some((value, of)) => Ok((weight(of)?, length(value)?)),
    };
    heavy(parts.iter().map(value).collect::<Result<_, String>>()?)
}

/// The parts of a mix, each with the weight 1 if it gives none: in `70: normal(128, 16)` the
/// weight comes first.
fn mixed(parts: &[&str], depth: u32) -> Result<Vec<(f64, Lengths)>, String> {
    let part = |part: &&str| {
        let bracket = part.find('(').unwrap_or(part.len());
        match part[..bracket].find(':') {
            None => Ok((1.0, parse(part, depth)?)),
            Some(at) => Ok((weight(&part[..at])?, parse(&part[at + 1..], depth)?)),
        }
    };
    heavy(parts.iter().map(part).collect::<Result<_, String>>()?)
}

/// `parts`, if one of them can be chosen.
fn heavy<T>(parts: Vec<(f64, T)>) -> Result<Vec<(f64, T)>, String> {
    if parts.iter().all(|(weight, _)| *weight <= 0.0) {
        return Err("all weights are `0`, wanted a positive one".to_owned());
    }
    Ok(parts)
}

fn weight(text: &str) -> Result<f64, String> {
    number(text, "a weight", 0.0..=MOST_WEIGHT)
}

/// A number of tokens.
fn length(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let known = text.parse::<u32>().ok();
    known
        .filter(|length| (1..=MOST_LENGTH).contains(length))
        .ok_or_else(|| {
            format!(
                "`{}`, wanted whole tokens from 1 to {MOST_LENGTH}",
                shown(text)
            )
        })
}

/// A number within `range`.
pub(super) fn number(text: &str, what: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let text = text.trim();
    let known = text.parse::<f64>().ok();
    // `contains` is false for what is not a number. Plus zero: `-0` is written as `0`.
    let known = known.filter(|number| range.contains(number));
    known.map(|number| number + 0.0).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        format!("`{}` as {what}, wanted {least} to {most}", shown(text))
    })
}

/// The beginning of what was given, for a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl fmt::Display for Lengths {
    /// As [`Lengths::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "{length}"),
            Self::Normal { mean, sd } => write!(f, "normal({mean}, {sd})"),
            Self::LogNormal { mean, sd } => write!(f, "log_normal({mean}, {sd})"),
            Self::Uniform { least, most } => write!(f, "uniform({least}, {most})"),
            Self::OneOf(values) => {
                let values = values.iter().map(|(weight, value)| {
                    if is_one(*weight) {
                        value.to_string()
                    } else {
                        format!("{value}:{weight}")
                    }
                });
                write!(f, "one_of({})", values.collect::<Vec<_>>().join(", "))
            }
            Self::Mix(parts) => {
                let parts = parts.iter().map(|(weight, part)| {
                    if is_one(*weight) {
                        part.to_string()
                    } else {
                        format!("{weight}: {part}")
                    }
                });
                write!(f, "mix({})", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Whether a weight need not be written.
fn is_one(weight: f64) -> bool {
    (weight - 1.0).abs() < f64::EPSILON / 4.0
}
