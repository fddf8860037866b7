//! Files of a downward API volume: labels and annotations as `key="value"`, one a line, each
//! value quoted as the language Go quotes texts.

use std::borrow::Cow;
use std::str::Chars;

/// What is in a file of labels or annotations.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs<'a> {
    /// Keys and values, in the order of the file.
    pub(super) pairs: Vec<(&'a str, String)>,
    /// Lines that are none of these.
    pub(super) bad_lines: usize,
}

/// Reads the text of a file of labels or annotations, of which only those with a `wanted` key are
/// kept.
pub(super) fn read_pairs(text: &str, wanted: impl Fn(&str) -> bool) -> Pairs<'_> {
    let mut read = Pairs::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let pair = line.split_once('=').filter(|(key, _)| !key.is_empty());
        let Some((key, quoted)) = pair else {
            read.bad_lines += 1;
            continue;
        };
        match unquoted(quoted) {
            None => read.bad_lines += 1,
            Some(value) if wanted(key) => read.pairs.push((key, value.into_owned())),
            Some(_) => {}
        }
    }
    read
}

/// The text that Go writes as `quoted`; `None` if it is none of its.
fn unquoted(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains(['\\', '"']) {
        return Some(Cow::Borrowed(inner));
    }
    // Values need not be UTF-8: what is not is written byte by byte.
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(one) = rest.next() {
        match one {
            '"' => return None,
            '\\' => escaped(&mut rest, &mut bytes)?,
            one => push(&mut bytes, one),
        }
    }
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Adds what stands behind a backslash.
fn escaped(rest: &mut Chars<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    let one = match rest.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        same @ ('\\' | '"') => same,
        'x' => {
            bytes.push(u8::try_from(hexadecimal(rest, 2)?).ok()?);
            return Some(());
        }
        'u' => char::from_u32(hexadecimal(rest, 4)?)?,
        'U' => char::from_u32(hexadecimal(rest, 8)?)?,
        _ => return None,
    };
    push(bytes, one);
    Some(())
}

fn hexadecimal(rest: &mut Chars<'_>, digits: u32) -> Option<u32> {
    (0..digits).try_fold(0, |sum, _| Some(sum << 4 | rest.next()?.to_digit(16)?))
}

fn push(bytes: &mut Vec<u8>, one: char) {
    bytes.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_kubelet_writes_is_read() {
        let text = concat!(
            "app=\"vllm\"\n",
            "app.kubernetes.io/version=\"0.11.0\"\n",
            "example.com/image=\"registry:5000/vllm@sha256:ab=\"\n",
            "kubernetes.io/config.seen=\"2026-01-02T03:04:05.678901234Z\"\n",
            "note=\"said \\\"hi\\\"\\n\\ttwice \\\\ ü→\\u200e\\U0001f600\\x00\\xff\\a\"\n",
            "empty=\"\""
        );
        let read = read_pairs(text, |_| true);
        let expected = [
            ("app", "vllm"),
            ("app.kubernetes.io/version", "0.11.0"),
            ("example.com/image", "registry:5000/vllm@sha256:ab="),
            (
                "kubernetes.io/config.seen",
                "2026-01-02T03:04:05.678901234Z",
            ),
            (
                "note",
                "said \"hi\"\n\ttwice \\ ü→\u{200e}\u{1f600}\0\u{fffd}\u{7}",
            ),
            ("empty", ""),
        ];
        let expected = expected.map(|(key, value)| (key, value.to_owned()));
        assert_eq!((&read.pairs[..], read.bad_lines), (&expected[..], 0));
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let read = read_pairs("a=\"1\"\nb=\"2\"\n", |key| key == "b");
        assert_eq!(read.pairs, [("b", "2".to_owned())]);
    }

    #[test]
    fn what_nobody_wrote_so_is_counted() {
        for line in [
            "nothing",
            "=\"x\"",
            "a=",
            "a=x",
            "a=\"",
            "a=\"x",
            "a=\"x\"y\"",
            "a=\"x\\\"",
            "a=\"\\q\"",
            "a=\"\\x1\"",
            "a=\"\\ud800\"",
            "a=\"\\U00110000\"",
        ] {
            let text = format!("before=\"1\"\n{line}\nafter=\"2\"\n");
            let read = read_pairs(&text, |_| true);
            let expected = [("before", "1".to_owned()), ("after", "2".to_owned())];
            assert_eq!(
                (&read.pairs[..], read.bad_lines),
                (&expected[..], 1),
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([a-z/=\"\\\\nxuU0-9é\n]{0,40})") {
            let read = read_pairs(&text, |_| true);
            prop_assert!(read.pairs.len() + read.bad_lines <= text.lines().count());
        }
    }
}
