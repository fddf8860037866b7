//! A metrics page, line by line, borrowing from the page: the Prometheus text format 0.0.4 and
//! `OpenMetrics` 1.0, with the quoted names of either.
//!
//! Tolerant per line: a line that is no sample is counted and left out, the others stand.
//! Bounded: a line longer than [`MAX_LINE`] is bad, and reading stops after [`MAX_LINES`].
//! Not here: what a family means.

mod labels;
mod line;

use std::borrow::Cow;

use memchr::memchr;

pub use labels::Labels;
pub(super) use labels::unescaped;
pub use line::{Exemplar, Line};

/// Longest line, bytes. The longest seen on a real page is below 2 KiB.
pub const MAX_LINE: usize = 64 * 1024;
/// Most lines of a page, comments included. Real pages have a few thousand.
pub const MAX_LINES: usize = 500_000;

/// What one line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<'a> {
    /// A sample.
    Sample(Line<'a>),
    /// The type of a family.
    Type(Cow<'a, str>, Type),
    /// The unit of a family.
    Unit(Cow<'a, str>, &'a str),
    /// The help text of a family, still escaped.
    Help(Cow<'a, str>, &'a str),
    /// `# EOF`: the page is whole.
    End,
}

/// The type of a family, in either format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Goes up, and begins anew.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, a sum and a count.
    Histogram,
    /// Buckets of a present state.
    GaugeHistogram,
    /// Quantiles, a sum and a count.
    Summary,
    /// Always 1, told in labels.
    Info,
    /// One series for each state.
    StateSet,
    /// Not told.
    Unknown,
}

impl Type {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "counter" => Self::Counter,
            "gauge" => Self::Gauge,
            "histogram" => Self::Histogram,
            "gaugehistogram" => Self::GaugeHistogram,
            "summary" => Self::Summary,
            "info" => Self::Info,
            "stateset" => Self::StateSet,
            "unknown" | "untyped" => Self::Unknown,
            _ => return None,
        })
    }
}

/// The samples of a page, in order.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a str,
    seen: usize,
    bad: u64,
    ended: bool,
}

impl<'a> Lines<'a> {
    /// Reads `page` from its first line.
    #[must_use]
    pub const fn new(page: &'a str) -> Self {
        Self {
            rest: page,
            seen: 0,
            bad: 0,
            ended: false,
        }
    }

    /// Lines so far that were neither samples, comments nor blank.
    #[must_use]
    pub const fn bad(&self) -> u64 {
        self.bad
    }

    /// Whether reading stopped before the end of the page, at [`MAX_LINES`].
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.seen == MAX_LINES && !self.rest.is_empty()
    }

    /// Whether the last line that said anything was `# EOF`: without it, a page of `OpenMetrics`
    /// is not whole.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// What the next line says that says anything.
    pub fn item(&mut self) -> Option<Item<'a>> {
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                continue;
            }
            self.ended = false;
            let is_long = line.len() > MAX_LINE;
            let said = match (line.starts_with('#'), is_long) {
                // A comment of any length is a comment.
                (true, true) => Said::Nothing,
                (true, false) => comment(line),
                (false, true) => Said::Rubbish,
                (false, false) => line::sample(line)
                    .map_or(Said::Rubbish, |sample| Said::Item(Item::Sample(sample))),
            };
            match said {
                Said::Item(item) => {
                    self.ended = item == Item::End;
                    return Some(item);
                }
                Said::Nothing => {}
                Said::Rubbish => self.bad += 1,
            }
        }
        None
    }

    fn next_line(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() || self.seen == MAX_LINES {
            return None;
        }
        self.seen += 1;
        let (line, rest) = match memchr(b'\n', self.rest.as_bytes()) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        Some(trimmed(line))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        loop {
            if let Item::Sample(line) = self.item()? {
                return Some(line);
            }
        }
    }
}

/// `line` without blanks and carriage returns at its ends.
fn trimmed(line: &str) -> &str {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let bytes = line.as_bytes();
    let Some(start) = bytes.iter().position(|byte| !is_blank(byte)) else {
        return "";
    };
    let end = bytes.iter().rposition(|byte| !is_blank(byte));
    &line[start..=end.unwrap_or(start)]
}

/// What a line is.
enum Said<'a> {
    Item(Item<'a>),
    Nothing,
    Rubbish,
}

/// What the comment `line` says.
fn comment(line: &str) -> Said<'_> {
    let text = line[1..].trim_start_matches(line::BLANK);
    if text == "EOF" {
        return Said::Item(Item::End);
    }
    let Some((keyword, rest)) = text.split_once(line::BLANK) else {
        return Said::Nothing;
    };
    let rest = rest.trim_start_matches(line::BLANK);
    let item = match keyword {
        "TYPE" => family(rest).and_then(|(name, kind)| Some(Item::Type(name, Type::parse(kind)?))),
        "UNIT" => family(rest).map(|(name, unit)| Item::Unit(name, unit)),
        "HELP" => family(rest).map(|(name, help)| Item::Help(name, help)),
        _ => return Said::Nothing,
    };
    item.map_or(Said::Rubbish, Said::Item)
}

/// A name, and the text after it.
fn family(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (name, rest) = if let Some(quoted) = text.strip_prefix('"') {
        let end = labels::closing_quote(quoted.as_bytes())?;
        let name = (end > 0).then(|| labels::unescaped(&quoted[..end]))?;
        (name, &quoted[end + 1..])
    } else {
        let (name, rest) = line::identifier(text, b':')?;
        (Cow::Borrowed(name), rest)
    };
    let after = rest.trim_start_matches(line::BLANK);
    (rest.is_empty() || after.len() < rest.len()).then_some((name, after))
}

#[cfg(test)]
mod tests;
