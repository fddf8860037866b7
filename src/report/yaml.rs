//! Texts of others inside a YAML file: as values that are read back as they were, and in comments
//! that end where their line does.

use crate::measurement::plain;

/// Longest text of others in a comment, characters.
const LONGEST: usize = 100;

/// Words that readers of YAML, old or new, take for something else than a text.
const NOT_TEXTS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// `text` as a value: bare where nothing in it could be taken for anything else, else in double
/// quotes with everything unusual escaped.
pub(super) fn scalar(text: &str) -> String {
    let first = text.bytes().next();
    let is_plain = first.is_some_and(|first| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_./:-".contains(&byte))
        && !text.ends_with(':')
        && !NOT_TEXTS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_plain {
        text.to_owned()
    } else {
        quoted(text)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ if c.is_alphanumeric() => out.push(c),
            _ => out.push_str(&escaped(u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn escaped(code: u32) -> String {
    match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// `text` for a comment: on one line, without what could end it or turn it around, and cut.
pub(super) fn remark(text: &str) -> String {
    let text = plain(text);
    let mut shown: String = text
        .chars()
        .map(|c| if is_unseen(c) { ' ' } else { c })
        .take(LONGEST)
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Breaks of lines for older readers of YAML, and what no YAML may hold bare.
const fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Read {
        a: String,
        b: u8,
    }

    fn read_back(text: &str) -> Result<(), String> {
        let file = format!("a: {}   # {}\nb: 1\n", scalar(text), remark(text));
        let read: Read =
            serde_saphyr::from_str(&file).map_err(|error| format!("{file}: {error}"))?;
        if read.a != text || read.b != 1 {
            return Err(format!("{file}: {}", read.a));
        }
        Ok(())
    }

    #[test]
    fn plain_names_stand_bare_and_others_in_quotes() {
        for (text, written) in [
            ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
            ("qwen3:0.6b", "qwen3:0.6b"),
            ("http://127.0.0.1:8000/a", "http://127.0.0.1:8000/a"),
            ("http://[::1]:8000", "\"http://[::1]:8000\""),
            ("7b", "\"7b\""),
            ("", "\"\""),
            ("No", "\"No\""),
            ("a: b", "\"a: b\""),
            ("a:", "\"a:\""),
            ("a #b", "\"a #b\""),
            ("\"}\\", "\"\\\"}\\\\\""),
            ("a\nb: 2", "\"a\\x0ab: 2\""),
            ("模型\u{2028}\u{1f600}", "\"模型\\u2028\\U0001f600\""),
        ] {
            assert_eq!(scalar(text), written);
            read_back(text).expect("it is read back");
        }
    }

    #[test]
    fn a_remark_stays_on_its_line() {
        assert_eq!(remark("a\nb: 1\u{2028}\u{85}\u{202e}c"), "a b: 1   c");
        let long = remark(&"x".repeat(200));
        assert_eq!(long.chars().count(), 101);
    }

    proptest! {
        #[test]
        fn every_text_is_read_back_as_it_was(text in any::<String>()) {
            read_back(&text).map_err(TestCaseError::fail)?;
        }

        #[test]
        fn so_is_every_text_of_marks_that_yaml_knows(
            text in "[-?:,\\[\\]{}#&*!|>'\"%@`~ \\\\\r\n\t\u{85}\u{2028}\u{feff}a0.]{0,12}"
        ) {
            read_back(&text).map_err(TestCaseError::fail)?;
        }
    }
}
