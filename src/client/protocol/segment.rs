//! A name as one segment of a path: whatever it holds, it stays one.

use std::fmt::Write;

/// `name` with all but letters, digits, `-`, `.`, `_` and `~` percent-encoded (RFC 3986 §2.3).
pub(super) fn segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            write!(segment, "%{byte:02X}").expect("a string takes all that is written");
        }
    }
    // A client may resolve these two away, and with them the segment before.
    match segment.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => segment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment() {
        for (name, expected) in [
            ("llama-3.1_8B~x", "llama-3.1_8B~x"),
            ("org/model", "org%2Fmodel"),
            ("a b?c#d:e%f", "a%20b%3Fc%23d%3Ae%25f"),
            ("é", "%C3%A9"),
            ("..", "%2E%2E"),
            ("", ""),
        ] {
            assert_eq!(segment(name), expected, "{name:?}");
        }
    }
}
