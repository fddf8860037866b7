//! One sample: `name{labels} value timestamp # {labels} value timestamp`, or with a quoted name,
//! `{"name", labels} value`.

use std::borrow::Cow;

use super::labels::{Labels, braces, unescaped};

/// One sample of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// Name of the series, colons included.
    pub name: Cow<'a, str>,
    /// Its labels.
    pub labels: Labels<'a>,
    /// Its value, which may be `NaN` or infinite.
    pub value: f64,
    /// When it was so, if the page says it: milliseconds since the Unix epoch in the text format,
    /// seconds in `OpenMetrics`.
    pub timestamp: Option<f64>,
    /// One of the values behind it.
    pub exemplar: Option<Exemplar<'a>>,
}

/// One value of a histogram or counter, with labels of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar<'a> {
    /// Its labels.
    pub labels: Labels<'a>,
    /// The value.
    pub value: f64,
    /// When it was seen, in seconds since the Unix epoch.
    pub timestamp: Option<f64>,
}

pub(super) const BLANK: [char; 2] = [' ', '\t'];

pub(super) fn sample(line: &str) -> Option<Line<'_>> {
    let (name, labels, rest) = series(line)?;
    let (value, rest) = number(rest)?;
    let (timestamp, rest) = timestamp(rest)?;
    let exemplar = match rest.strip_prefix('#') {
        Some(rest) => Some(exemplar(skip_blanks(rest))?),
        None if rest.is_empty() => None,
        None => return None,
    };
    Some(Line {
        name,
        labels,
        value,
        timestamp,
        exemplar,
    })
}

/// Name, labels, and what follows them.
fn series(line: &str) -> Option<(Cow<'_, str>, Labels<'_>, &str)> {
    if let Some(list) = line.strip_prefix('{') {
        let list = braces(list)?;
        return Some((unescaped(list.name?), list.labels, list.after));
    }
    let (name, after) = identifier(line, b':')?;
    let rest = skip_blanks(after);
    match rest.strip_prefix('{') {
        Some(list) => {
            let list = braces(list)?;
            // One name is enough.
            let labels = list.name.is_none().then_some(list.labels)?;
            Some((Cow::Borrowed(name), labels, list.after))
        }
        // Without labels, a blank parts the name from the value.
        None => (rest.len() < after.len()).then_some((Cow::Borrowed(name), Labels::NONE, rest)),
    }
}

fn exemplar(text: &str) -> Option<Exemplar<'_>> {
    let list = braces(text.strip_prefix('{')?)?;
    if list.name.is_some() {
        return None;
    }
    let (value, rest) = number(list.after)?;
    let (timestamp, rest) = timestamp(rest)?;
    rest.is_empty().then_some(Exemplar {
        labels: list.labels,
        value,
        timestamp,
    })
}

/// The leading number, and what follows it and its blanks.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = skip_blanks(text);
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'#');
    let end = bytes.iter().position(|byte| !is_part(byte));
    let end = end.unwrap_or(bytes.len());
    Some((text[..end].parse().ok()?, skip_blanks(&text[end..])))
}

/// A time, if one stands there.
fn timestamp(text: &str) -> Option<(Option<f64>, &str)> {
    if text.is_empty() || text.starts_with('#') {
        return Some((None, text));
    }
    let (time, rest) = number(text)?;
    time.is_finite().then_some((Some(time), rest))
}

/// A leading identifier: a letter, `_` or `extra`, then these and digits.
pub(super) fn identifier(text: &str, extra: u8) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if bytes.first()?.is_ascii_digit() {
        return None;
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == extra;
    let end = bytes.iter().position(|byte| !is_part(*byte));
    let end = end.unwrap_or(bytes.len());
    (end > 0).then(|| text.split_at(end))
}

pub(super) fn skip_blanks(text: &str) -> &str {
    match text.as_bytes().first() {
        Some(b' ' | b'\t') => text.trim_start_matches(BLANK),
        _ => text,
    }
}
