//! JSON texts with half of a surrogate pair, as `\ud83d` alone: programs that cut text by UTF-16
//! units write them, and no Unicode text can hold them. They become U+FFFD.

/// The text with lone halves replaced; `None` if there are none.
pub(super) fn surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', text.get(at..)?) {
        at += found;
        match unit(text, at) {
            Some(0xd800..=0xdbff) => {
                if matches!(unit(text, at + 6), Some(0xdc00..=0xdfff)) {
                    at += 12;
                    continue;
                }
                replace(mended.get_or_insert_with(|| text.to_vec()), at);
                at += 6;
            }
            Some(0xdc00..=0xdfff) => {
                replace(mended.get_or_insert_with(|| text.to_vec()), at);
                at += 6;
            }
            // The escaped sign is no backslash that begins something.
            _ => at += 2,
        }
        if at >= text.len() {
            break;
        }
    }
    mended
}

fn replace(text: &mut [u8], at: usize) {
    text[at..at + 6].copy_from_slice(b"\\ufffd");
}

/// The value of `\uXXXX` at this place.
fn unit(text: &[u8], at: usize) -> Option<u32> {
    let escape = text.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        let mended = |text: &str| {
            surrogates(text.as_bytes()).map(|text| String::from_utf8(text).expect("still text"))
        };
        assert_eq!(mended(r#""a\ud83d\ude00b""#), None);
        assert_eq!(mended(r#""\\ud83d""#), None);
        assert_eq!(mended(r#""\u00e9\n""#), None);
        assert_eq!(mended(""), None);
        assert_eq!(mended("\\"), None);
        assert_eq!(mended(r#""a\ud83d""#).as_deref(), Some(r#""a\ufffd""#));
        assert_eq!(
            mended(r#""\ude00\uD83Dx""#).as_deref(),
            Some(r#""\ufffd\ufffdx""#)
        );
        assert_eq!(
            mended(r#""\ud83d\ud83d\ude00""#).as_deref(),
            Some(r#""\ufffd\ud83d\ude00""#)
        );
    }
}
