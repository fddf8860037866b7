//! Makes JSON text readable whose characters are broken: bytes that are no UTF-8, and halves of
//! surrogate pairs, as a server sends that cuts a character between two tokens.

/// Stands for what cannot be read, as an escape.
const REPLACEMENT: &[u8] = b"\\ufffd";

/// `data` with every broken character replaced; `None` if none is.
pub(super) fn mend(data: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(data);
    let broken_bytes = matches!(text, std::borrow::Cow::Owned(_));
    match without_halves(text.as_bytes()) {
        Some(mended) => Some(mended),
        None => broken_bytes.then(|| text.into_owned().into_bytes()),
    }
}

/// `json` with lone surrogate escapes replaced; `None` if there are none.
fn without_halves(json: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::new();
    let mut found = false;
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        mended.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let taken = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(_), _) => {
                found = true;
                mended.extend_from_slice(REPLACEMENT);
                rest = &rest[6..];
                continue;
            }
            (None, _) => rest.len().min(2),
        };
        mended.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.extend_from_slice(rest);
    found.then_some(mended)
}

enum Half {
    High,
    Low,
}

/// The half of a pair that an escape at the start of `json` stands for.
fn surrogate(json: &[u8]) -> Option<Half> {
    let digits = json.strip_prefix(b"\\u")?.get(..4)?;
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_broken_is_replaced() {
        for (data, expected) in [
            (&b"{\"a\":\"\\ud83d\\ude00 \\n\"}"[..], None),
            (b"\"\\ud83d\"", Some(&b"\"\\ufffd\""[..])),
            (b"\"\\ude00\\ud83d\\n\"", Some(b"\"\\ufffd\\ufffd\\n\"")),
            (b"\"\\\\ud83d\"", None),
            (b"\"\xf0\x9f\"", Some("\"\u{fffd}\"".as_bytes())),
            (b"\"\xf0\\ud83d", Some("\"\u{fffd}\\ufffd".as_bytes())),
            (b"\\", None),
        ] {
            assert_eq!(mend(data).as_deref(), expected, "{data:?}");
        }
    }
}
