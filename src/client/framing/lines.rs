//! One JSON value per line, incrementally: bytes in, events out, no I/O.
//!
//! LF or CRLF ends a line; lines of nothing but whitespace are skipped, and so is a byte order
//! mark at the start. A last line without an end is delivered by [`LineDecoder::finish`].
//!
//! A line that lies whole in one read is handed out as a slice of that read.

use memchr::memchr;

use super::{Event, EventTooLarge, MAX_EVENT};

/// The state between two reads.
#[derive(Debug, Default)]
pub(in crate::client) struct LineDecoder {
    /// The line that the last read left unfinished.
    line: Vec<u8>,
    past_start: bool,
}

impl LineDecoder {
    /// Takes the bytes of one read and calls `on_event` for each value they complete.
    pub(in crate::client) fn feed(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.line.len() + line.len() > MAX_EVENT {
                return Err(EventTooLarge);
            }
            if self.line.is_empty() {
                self.deliver(line, &mut on_event);
            } else {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.deliver(&line, &mut on_event);
                self.line = line;
                self.line.clear();
            }
        }
        if self.line.len() + rest.len() > MAX_EVENT {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The end of the stream: delivers the line that was not ended.
    pub(in crate::client) fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        self.deliver(&line, &mut on_event);
    }

    fn deliver(&mut self, line: &[u8], on_event: &mut impl FnMut(Event<'_>)) {
        let line = if self.past_start {
            line
        } else {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        };
        self.past_start = true;
        let data = line.trim_ascii();
        if !data.is_empty() {
            on_event(Event { name: b"", data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cutting::{cut_at, texts};
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = LineDecoder::default();
        texts(|push| {
            for piece in pieces {
                decoder.feed(piece, &mut *push).expect("small");
            }
            decoder.finish(push);
        })
    }

    #[test]
    fn every_line_with_something_on_it_is_an_event() {
        for (text, expected) in [
            ("{\"a\":1}\n{\"b\":2}\n", vec!["{\"a\":1}", "{\"b\":2}"]),
            ("{\"a\":1}\r\n{\"b\":2}\r\n", vec!["{\"a\":1}", "{\"b\":2}"]),
            (
                "{\"a\":1}\n\n \t\r\n{\"b\":2}",
                vec!["{\"a\":1}", "{\"b\":2}"],
            ),
            ("\u{feff}{\"a\":1}\n", vec!["{\"a\":1}"]),
            ("  {\"a\":1}\t\n", vec!["{\"a\":1}"]),
            ("{\"a\":\"\u{2028}\"}\n", vec!["{\"a\":\"\u{2028}\"}"]),
            ("{\"a\":1}\n{\"b\":", vec!["{\"a\":1}", "{\"b\":"]),
            ("\n\r\n", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(decode(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn a_whole_line_is_not_copied() {
        let bytes = b"{\"a\":1}\n{\"b\":2}\n";
        let range = bytes.as_ptr_range();
        let mut decoder = LineDecoder::default();
        let fed = decoder.feed(bytes, |event| {
            assert!(range.contains(&event.data.as_ptr()), "a slice of the read");
        });
        assert_eq!(fed, Ok(()));
    }

    #[test]
    fn a_line_without_end_stops_at_the_limit() {
        let piece = vec![b'x'; MAX_EVENT / 2 + 1];
        let mut decoder = LineDecoder::default();
        assert_eq!(decoder.feed(&piece, |_| ()), Ok(()));
        assert_eq!(decoder.feed(&piece, |_| ()), Err(EventTooLarge));
        let mut line = vec![b'x'; MAX_EVENT + 1];
        line.push(b'\n');
        assert_eq!(
            LineDecoder::default().feed(&line, |_| ()),
            Err(EventTooLarge)
        );
    }

    proptest! {
        #[test]
        fn the_cuts_do_not_matter(
            lines in prop::collection::vec("[ \t]?(\\{\"a\":\"[bé你\u{1F600}\u{2028}]{0,3}\"\\}|)[ \r]?(\n|\r\n|)", 0..12),
            mark in any::<bool>(),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let text = format!("{}{}", if mark { "\u{feff}" } else { "" }, lines.concat());
            let bytes = text.as_bytes();
            prop_assert_eq!(decode(&cut_at(bytes, cuts)), decode(&[bytes]));
        }

        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            cuts in prop::collection::vec(0_usize..300, 0..4),
        ) {
            prop_assert_eq!(decode(&cut_at(&bytes, cuts)), decode(&[&bytes]));
        }
    }
}
