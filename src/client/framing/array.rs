//! The elements of one JSON array, incrementally: bytes in, events out, no I/O.
//!
//! Only what has to be known to find the end of an element is read: depth of brackets, and
//! where strings begin and end. Whether an element is JSON is for its reader to say. What
//! stands before the opening bracket and after the closing one is passed over, and any number of
//! commas separates two elements. An element that the end of the stream cuts off is delivered
//! by [`ArrayDecoder::finish`], so that it shows as one that cannot be read.
//!
//! An element that lies whole in one read is handed out as a slice of that read.

use memchr::{memchr, memchr2};

use super::{Event, EventTooLarge, MAX_EVENT};

/// The state between two reads.
#[derive(Debug, Default)]
pub(in crate::client) struct ArrayDecoder {
    place: Place,
    /// The beginning of the element that the last read left unfinished.
    element: Vec<u8>,
    inside: Inside,
    /// An element was delivered.
    has_elements: bool,
    /// Something other than white space came behind the closing bracket.
    has_tail: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the opening bracket.
    #[default]
    Before,
    Between,
    Element,
    /// After the closing bracket.
    After,
}

/// Where in an element.
#[derive(Debug, Default, Clone, Copy)]
struct Inside {
    /// Brackets and braces that are open.
    depth: u32,
    in_string: bool,
    /// The last byte of the read was a backslash in a string.
    escaped: bool,
}

impl ArrayDecoder {
    /// Takes the bytes of one read and calls `on_event` for each value they complete.
    pub(in crate::client) fn feed(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        loop {
            match self.place {
                Place::Before => {
                    let Some(bracket) = memchr(b'[', rest) else {
                        return Ok(());
                    };
                    rest = &rest[bracket + 1..];
                    self.place = Place::Between;
                }
                Place::Between => {
                    let Some(start) = rest.iter().position(|byte| !separates(*byte)) else {
                        return Ok(());
                    };
                    rest = &rest[start..];
                    self.place = if let Some(behind) = rest.strip_prefix(b"]") {
                        rest = behind;
                        Place::After
                    } else {
                        Place::Element
                    };
                    self.inside = Inside::default();
                }
                Place::Element => {
                    let end = self.inside.end_of_element(rest);
                    let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
                    if self.element.len() + part.len() > MAX_EVENT {
                        return Err(EventTooLarge);
                    }
                    if end.is_none() {
                        self.element.extend_from_slice(part);
                        return Ok(());
                    }
                    self.deliver(part, &mut on_event);
                    self.place = Place::Between;
                    rest = after;
                }
                Place::After => {
                    self.has_tail |= !rest.trim_ascii().is_empty();
                    return Ok(());
                }
            }
        }
    }

    /// Whether the array was closed and had no elements.
    pub(in crate::client) fn is_empty(&self) -> bool {
        self.place == Place::After && !self.has_elements
    }

    /// Whether something followed the array.
    pub(in crate::client) const fn has_tail(&self) -> bool {
        self.has_tail
    }

    /// The end of the stream: delivers the element that was not ended.
    pub(in crate::client) fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        if !self.element.is_empty() {
            self.deliver(b"", &mut on_event);
        }
    }

    fn deliver(&mut self, last: &[u8], on_event: &mut impl FnMut(Event<'_>)) {
        self.has_elements = true;
        let whole = if self.element.is_empty() {
            last
        } else {
            self.element.extend_from_slice(last);
            &self.element
        };
        on_event(Event {
            name: b"",
            data: whole,
        });
        self.element.clear();
    }
}

const fn separates(byte: u8) -> bool {
    matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n')
}

impl Inside {
    /// Where the element ends of which `bytes` are the beginning or the next bytes; `None` if
    /// beyond them.
    fn end_of_element(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.end_of_string(bytes, at)?;
                if self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b']' => return Some(at),
                byte if self.depth == 0 && separates(byte) => return Some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Where the string ends that goes on at `from`: behind its closing quote.
    fn end_of_string(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        if self.escaped {
            self.escaped = false;
            at += 1;
        }
        loop {
            let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
            if bytes[found] == b'"' {
                self.in_string = false;
                return Some(found + 1);
            }
            if found + 1 == bytes.len() {
                self.escaped = true;
                return None;
            }
            at = found + 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cutting::{cut_at, texts};
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = ArrayDecoder::default();
        texts(|push| {
            for piece in pieces {
                decoder.feed(piece, &mut *push).expect("small");
            }
            decoder.finish(push);
        })
    }

    #[test]
    fn elements_are_cut_at_their_own_ends() {
        for (text, expected) in [
            ("[{\"a\":1},{\"b\":2}]", vec!["{\"a\":1}", "{\"b\":2}"]),
            (
                "[{\r\n \"a\": 1\r\n}\r\n,\r\n{\"b\":2}\r\n]\r\n",
                vec!["{\r\n \"a\": 1\r\n}", "{\"b\":2}"],
            ),
            (
                "\u{feff} [ 1 ,\t-2.5e3\n, null]",
                vec!["1", "-2.5e3", "null"],
            ),
            (
                r#"[{"a":"]},{\"["},[["b"],"]"],"c,\\"]"#,
                vec![r#"{"a":"]},{\"["}"#, r#"[["b"],"]"]"#, r#""c,\\""#],
            ),
            ("[,,1,,2,]", vec!["1", "2"]),
            ("[\"a\"\"b\"1[2]]", vec!["\"a\"", "\"b\"", "1[2]"]),
            ("[]", vec![]),
            ("[1] [2] {\"a\":1}", vec!["1"]),
            ("[{\"a\":1},{\"b\":\"x", vec!["{\"a\":1}", "{\"b\":\"x"]),
            ("[{\"a\":1},", vec!["{\"a\":1}"]),
            ("[}x,2]", vec!["}x", "2"]),
        ] {
            assert_eq!(decode(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn every_cut_gives_the_same_elements() {
        let text = r#"[{"a":"é\"\\","b":[1,{"c":"]"}]} , "\\\"" ,7]"#.as_bytes();
        let whole = decode(&[text]);
        assert_eq!(whole.len(), 3);
        for cut in 0..text.len() {
            assert_eq!(decode(&[&text[..cut], &text[cut..]]), whole, "{cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(decode(&bytes), whole);
    }

    #[test]
    fn a_whole_element_is_not_copied() {
        let bytes = b"[{\"a\":1},{\"b\":2}]";
        let range = bytes.as_ptr_range();
        let mut decoder = ArrayDecoder::default();
        let fed = decoder.feed(bytes, |event| {
            assert!(range.contains(&event.data.as_ptr()), "a slice of the read");
        });
        assert_eq!(fed, Ok(()));
    }

    #[test]
    fn an_element_without_end_stops_at_the_limit() {
        let mut decoder = ArrayDecoder::default();
        assert_eq!(decoder.feed(b"[\"", |_| ()), Ok(()));
        let piece = vec![b'x'; MAX_EVENT / 2];
        assert_eq!(decoder.feed(&piece, |_| ()), Ok(()));
        assert_eq!(decoder.feed(&piece, |_| ()), Err(EventTooLarge));
    }

    #[test]
    fn brackets_without_end_are_no_harm() {
        let mut decoder = ArrayDecoder::default();
        let piece = vec![b'['; MAX_EVENT];
        assert_eq!(decoder.feed(&piece, |_| ()), Ok(()));
        assert_eq!(decoder.feed(b"[[", |_| ()), Err(EventTooLarge));
    }

    proptest! {
        #[test]
        fn the_cuts_do_not_matter(
            elements in prop::collection::vec("( |\r\n)?(\\{\"a\":\"([é\u{1F600}\\]},]|\\\\\"|\\\\\\\\){0,3}\"\\}|\\[1,\\[2\\]\\]|-?[0-9]{1,3}|\"\")( |\n)?", 0..8),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let text = format!("[{}]", elements.join(","));
            let expected: Vec<String> =
                elements.iter().map(|element| element.trim().to_owned()).collect();
            let bytes = text.as_bytes();
            prop_assert_eq!(decode(&[bytes]), expected.clone());
            prop_assert_eq!(decode(&cut_at(bytes, cuts)), expected);
        }

        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"[]{}\",\\ 1".to_vec())],
                0..300,
            ),
            cuts in prop::collection::vec(0_usize..300, 0..4),
        ) {
            prop_assert_eq!(decode(&cut_at(&bytes, cuts)), decode(&[&bytes]));
        }
    }
}
