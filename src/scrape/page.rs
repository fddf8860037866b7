//! A metrics page in the Prometheus text format 0.0.4, line by line, borrowing from the page.
//!
//! Tolerant per line: a line that is no sample is counted and left out, the others stand.
//! Bounded: a line longer than [`MAX_LINE`] is bad, and reading stops after [`MAX_LINES`].
//! Not here: what a family means, types and help texts, quoted metric names.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Longest line, bytes. The longest seen on a real page is below 2 KiB.
pub const MAX_LINE: usize = 64 * 1024;
/// Most lines of a page, comments included. Real pages have a few thousand.
pub const MAX_LINES: usize = 500_000;

/// One sample of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line<'a> {
    /// Name of the series, colons included.
    pub name: &'a str,
    /// Its labels.
    pub labels: Labels<'a>,
    /// Its value, which may be `NaN` or infinite.
    pub value: f64,
}

/// The labels of one sample; well-formed, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// The value of the label called `name`, its escapes resolved.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.iter()
            .find_map(|(label, value)| (label == name).then_some(value))
    }

    /// Names and values in the order of the page.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || match label(rest)? {
            Step::Label { name, raw, after } => {
                rest = after;
                Some((name, unescaped(raw)))
            }
            Step::End(_) => None,
        })
    }
}

/// The samples of a page, in order.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a str,
    seen: usize,
    bad: u64,
}

impl<'a> Lines<'a> {
    /// Reads `page` from its first line.
    #[must_use]
    pub const fn new(page: &'a str) -> Self {
        Self {
            rest: page,
            seen: 0,
            bad: 0,
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
        Some(line.trim_matches([' ', '\t', '\r']))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.next_line() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match sample(line) {
                Some(sample) if line.len() <= MAX_LINE => return Some(sample),
                _ => self.bad += 1,
            }
        }
        None
    }
}

/// `name{labels} value timestamp`; labels and timestamp may be absent.
fn sample(line: &str) -> Option<Line<'_>> {
    let (name, rest) = identifier(line, |byte| byte == b':')?;
    let rest = rest.trim_start_matches(BLANK);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(labels) => (Labels(labels), after_labels(labels)?),
        // Without labels, a blank parts the name from the value.
        None if rest.len() == line.len() - name.len() => return None,
        None => (Labels("}"), rest),
    };
    // An exemplar may follow on pages that mix formats.
    let numbers = rest.split('#').next().unwrap_or_default();
    let mut numbers = numbers.split(BLANK).filter(|text| !text.is_empty());
    let value = number(numbers.next()?)?;
    if let Some(timestamp) = numbers.next() {
        number(timestamp)?;
    }
    numbers.next().is_none().then_some(Line {
        name,
        labels,
        value,
    })
}

const BLANK: [char; 2] = [' ', '\t'];

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// A leading identifier: a letter, `_` or `extra`, then these and digits.
fn identifier(text: &str, extra: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    if bytes.first()?.is_ascii_digit() {
        return None;
    }
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || extra(*byte);
    let end = bytes.iter().take_while(|byte| part(byte)).count();
    (end > 0).then(|| text.split_at(end))
}

/// What stands at the front of a label list.
enum Step<'a> {
    Label {
        name: &'a str,
        /// The value between its quotes, still escaped.
        raw: &'a str,
        after: &'a str,
    },
    /// The closing brace; what follows it.
    End(&'a str),
}

/// The text behind the closing brace, if all labels before it are well-formed.
fn after_labels(mut text: &str) -> Option<&str> {
    loop {
        match label(text)? {
            Step::Label { after, .. } => text = after,
            Step::End(after) => return Some(after),
        }
    }
}

fn label(text: &str) -> Option<Step<'_>> {
    let text = text.trim_start_matches(BLANK);
    if let Some(after) = text.strip_prefix('}') {
        return Some(Step::End(after));
    }
    let (name, rest) = identifier(text, |_| false)?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('=')?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('"')?;
    let end = closing_quote(rest.as_bytes())?;
    let (raw, after) = (&rest[..end], rest[end + 1..].trim_start_matches(BLANK));
    let after = match after.strip_prefix(',') {
        Some(after) => after,
        None if after.starts_with('}') => after,
        None => return None,
    };
    Some(Step::Label { name, raw, after })
}

/// Position of the first quote that no backslash escapes.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'"', b'\\', bytes.get(from..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

/// Resolves `\\`, `\"` and `\n`; another escape stands for itself.
fn unescaped(raw: &str) -> Cow<'_, str> {
    if memchr(b'\\', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut letters = raw.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some(quoted @ ('\\' | '"')) => text.push(quoted),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Expected<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

    /// Reads `page`; each sample as its name, its labels and its value, and the bad lines.
    fn check(page: &str, expected: &[Expected<'_>], bad: u64) {
        let mut lines = Lines::new(page);
        let read: Vec<Line<'_>> = lines.by_ref().collect();
        assert_eq!(lines.bad(), bad, "{page:?}");
        assert_eq!(read.len(), expected.len(), "{page:?}");
        for (line, (name, labels, value)) in read.iter().zip(expected) {
            let found: Vec<(&str, Cow<'_, str>)> = line.labels.iter().collect();
            let labels: Vec<_> = labels.iter().map(|(k, v)| (*k, Cow::from(*v))).collect();
            assert_eq!((line.name, found), (*name, labels), "{page:?}");
            assert_eq!(line.value.to_bits(), value.to_bits(), "{page:?}");
        }
    }

    #[test]
    fn samples_are_read_in_all_their_spellings() {
        check("a 1", &[("a", &[], 1.0)], 0);
        check(
            "# HELP a b\n\n  # x\na 1\r\nb 2\r\n",
            &[("a", &[], 1.0), ("b", &[], 2.0)],
            0,
        );
        check("vllm:x{} 1.5e3", &[("vllm:x", &[], 1500.0)], 0);
        check(
            "a{b=\"c\"} 1 1700000000000",
            &[("a", &[("b", "c")], 1.0)],
            0,
        );
        check(
            "a{ b = \"c\" , d=\"e\", }\t7",
            &[("a", &[("b", "c"), ("d", "e")], 7.0)],
            0,
        );
        check("a{b=\"}\"}1", &[("a", &[("b", "}")], 1.0)], 0);
        check(
            r#"a{b="q\"\\n\nz\t",c="{d=\"1\"}, # x"} -0"#,
            &[("a", &[("b", "q\"\\n\nz\\t"), ("c", "{d=\"1\"}, # x")], -0.0)],
            0,
        );
        check(
            "a +Inf\na -Inf",
            &[("a", &[], f64::INFINITY), ("a", &[], f64::NEG_INFINITY)],
            0,
        );
        check("a NaN", &[("a", &[], f64::NAN)], 0);
        check(
            "a_bucket{le=\"1\"} 3 # {t=\"x\"} 0.5",
            &[("a_bucket", &[("le", "1")], 3.0)],
            0,
        );
    }

    #[test]
    fn a_bad_line_is_counted_and_hurts_no_other() {
        for bad in [
            "<html>",
            "a",
            "a b",
            "1a 1",
            "a{b} 1",
            "a{b=c} 1",
            "a{b=\"c} 1",
            "a{b=\"c\"",
            "{} 1",
            "a{b=\"c\"d=\"e\"} 1",
            "a 1 2 3",
            "a 1 x",
            "a-b 1",
            "a{b=\"c\\",
            "ä 1",
        ] {
            let page = format!("x 1\n{bad}\ny 2\n");
            check(&page, &[("x", &[], 1.0), ("y", &[], 2.0)], 1);
        }
    }

    #[test]
    fn a_page_cannot_keep_the_reader_busy_for_ever() {
        let long = format!("a{{b=\"{}\"}} 1\nb 2", "x".repeat(MAX_LINE));
        check(&long, &[("b", &[], 2.0)], 1);
        let page = "\n".repeat(MAX_LINES + 1);
        let mut lines = Lines::new(&page);
        assert_eq!(lines.by_ref().count(), 0);
        assert!(lines.is_cut());
    }

    #[test]
    fn one_label_can_be_asked_for() {
        let line = Lines::new("a{engine=\"0\",model_name=\"m\"} 1")
            .next()
            .expect("a sample");
        assert_eq!(line.labels.get("model_name").as_deref(), Some("m"));
        assert_eq!(line.labels.get("model"), None);
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "[ -~\\n\\r\"\\\\{}äé=,#]{0,200}") {
            for line in Lines::new(&page) {
                prop_assert!(line.labels.iter().count() <= page.len());
            }
        }
    }
}
