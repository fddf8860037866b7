//! The labels of a sample: well-formed, read when somebody asks.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::line::{identifier, skip_blanks};

/// The labels of one sample; well-formed, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// None.
    pub(super) const NONE: Self = Self("}");

    /// The value of the label called `name`, its escapes resolved.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.iter()
            .find_map(|(label, value)| (label == name).then_some(value))
    }

    /// Names and values in the order of the page.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.raw()
            .map(|(name, value)| (unescaped(name), unescaped(value)))
    }

    /// The same, still escaped.
    pub fn raw(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            loop {
                match step(rest)? {
                    Step::Label { name, value, after } => {
                        rest = after;
                        return Some((name, value));
                    }
                    Step::Name { after, .. } => rest = after,
                    Step::End(_) => return None,
                }
            }
        })
    }
}

/// What stands at the front of a label list.
enum Step<'a> {
    Label {
        name: &'a str,
        /// The value between its quotes, still escaped.
        value: &'a str,
        after: &'a str,
    },
    /// The name of the metric, in quotes, still escaped.
    Name { name: &'a str, after: &'a str },
    /// The closing brace; what follows it.
    End(&'a str),
}

/// A label list that is well-formed.
pub(super) struct Braces<'a> {
    pub(super) labels: Labels<'a>,
    /// The name of the metric, if it stands among them; still escaped.
    pub(super) name: Option<&'a str>,
    /// What follows the closing brace.
    pub(super) after: &'a str,
}

/// Reads the label list that begins after an opening brace. `None` if it is broken, or names the
/// metric twice.
pub(super) fn braces(text: &str) -> Option<Braces<'_>> {
    let (mut rest, mut found) = (text, None);
    loop {
        match step(rest)? {
            Step::Label { after, .. } => rest = after,
            Step::Name { name, after } => {
                if found.replace(name).is_some() || name.is_empty() {
                    return None;
                }
                rest = after;
            }
            Step::End(after) => {
                return Some(Braces {
                    labels: Labels(text),
                    name: found,
                    after,
                });
            }
        }
    }
}

fn step(text: &str) -> Option<Step<'_>> {
    let text = skip_blanks(text);
    let (name, rest, is_quoted) = match text.as_bytes().first()? {
        b'}' => return Some(Step::End(&text[1..])),
        b'"' => {
            let end = closing_quote(&text.as_bytes()[1..])?;
            (&text[1..=end], &text[end + 2..], true)
        }
        _ => {
            let (name, rest) = identifier(text, b'_')?;
            (name, rest, false)
        }
    };
    let rest = skip_blanks(rest);
    let Some(rest) = rest.strip_prefix('=') else {
        let after = separated(rest)?;
        return is_quoted.then_some(Step::Name { name, after });
    };
    let rest = skip_blanks(rest).strip_prefix('"')?;
    let end = closing_quote(rest.as_bytes())?;
    let (value, after) = (&rest[..end], separated(skip_blanks(&rest[end + 1..]))?);
    (!name.is_empty()).then_some(Step::Label { name, value, after })
}

/// What follows a comma, or a closing brace with it.
fn separated(text: &str) -> Option<&str> {
    match text.as_bytes().first()? {
        b',' => Some(&text[1..]),
        b'}' => Some(text),
        _ => None,
    }
}

/// Position of the first quote that no backslash escapes.
pub(super) fn closing_quote(bytes: &[u8]) -> Option<usize> {
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
pub(in crate::scrape) fn unescaped(raw: &str) -> Cow<'_, str> {
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
