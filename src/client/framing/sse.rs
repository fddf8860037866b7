//! Server-sent events, incrementally: bytes in, events out, no I/O.
//!
//! By the WHATWG rules (LF, CR and CRLF end a line, also split between two reads; a byte order
//! mark at the start; comments; several `data` lines joined by LF; one optional space), with
//! two departures: an event that the end of the stream cuts off before its blank line is
//! delivered by [`SseDecoder::finish`], since many servers end with `data: [DONE]` and no more;
//! and a field `error`, in which llama.cpp told of failures until 2025, is the data of an event
//! of that name.
//!
//! An event whose only line lies in one read is handed out as a slice of that read.

use memchr::memchr2;

use super::{Event, EventTooLarge, MAX_EVENT};

/// The state between two reads.
#[derive(Debug, Default)]
pub(in crate::client) struct SseDecoder {
    /// The line that the last read left unfinished.
    line: Vec<u8>,
    /// Data of the event that is not finished yet; lines joined by LF.
    data: Vec<u8>,
    name: Vec<u8>,
    has_data: bool,
    /// The last read ended in CR: an LF that comes next belongs to it.
    after_cr: bool,
    past_start: bool,
}

impl SseDecoder {
    /// Takes the bytes of one read and calls `on_event` for each event they complete.
    pub(in crate::client) fn feed(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, after) = self.split(rest, end);
            rest = after;
            if self.line.is_empty() {
                rest = self.line_from_read(line, rest, &mut on_event);
            } else {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut on_event);
                self.line = line;
                self.line.clear();
            }
            if self.data.len() > MAX_EVENT {
                return Err(EventTooLarge);
            }
        }
        if self.line.len() + rest.len() > MAX_EVENT {
            return Err(EventTooLarge);
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The end of the stream: delivers what has no blank line behind it.
    pub(in crate::client) fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut on_event);
        }
        self.take_line(b"", &mut on_event);
    }

    /// Cuts `rest` at the line end at `end`; notes a CR at the very end of the read.
    fn split<'a>(&mut self, rest: &'a [u8], end: usize) -> (&'a [u8], &'a [u8]) {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        if rest[end] == b'\n' {
            return (line, after);
        }
        self.after_cr = after.is_empty();
        (line, after.strip_prefix(b"\n").unwrap_or(after))
    }

    /// A line that lies whole in this read. If it is the only one of its event and the blank
    /// line follows, the event is handed out without a copy.
    fn line_from_read<'a>(
        &mut self,
        line: &[u8],
        rest: &'a [u8],
        on_event: &mut impl FnMut(Event<'_>),
    ) -> &'a [u8] {
        let whole = !self.has_data && self.past_start && rest.first() == Some(&b'\n');
        match value_of(line, b"data") {
            Some(data) if whole && !data.is_empty() => {
                on_event(Event {
                    name: &self.name,
                    data,
                });
                self.name.clear();
                &rest[1..]
            }
            _ => {
                self.take_line(line, on_event);
                rest
            }
        }
    }

    fn take_line(&mut self, line: &[u8], on_event: &mut impl FnMut(Event<'_>)) {
        let line = if self.past_start {
            line
        } else {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        };
        self.past_start = true;
        if line.is_empty() {
            if !self.data.is_empty() {
                on_event(Event {
                    name: &self.name,
                    data: &self.data,
                });
            }
            self.data.clear();
            self.name.clear();
            self.has_data = false;
        } else if let Some(data) = value_of(line, b"data") {
            self.add_data(data);
        } else if let Some(error) = value_of(line, b"error") {
            self.name.clear();
            self.name.extend_from_slice(b"error");
            self.add_data(error);
        } else if let Some(name) = value_of(line, b"event") {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        // Comments, `id`, `retry` and unknown fields say nothing about tokens.
    }

    fn add_data(&mut self, data: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
    }
}

/// The value of the field `name`, without its one optional space.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(b"");
    }
    let value = rest.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Owned = (String, String);

    fn decode(pieces: &[&[u8]]) -> Vec<Owned> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        let mut push = |event: Event<'_>| {
            events.push((
                String::from_utf8_lossy(event.name).into_owned(),
                String::from_utf8_lossy(event.data).into_owned(),
            ));
        };
        for piece in pieces {
            decoder.feed(piece, &mut push).expect("small");
        }
        decoder.finish(&mut push);
        events
    }

    fn data(values: &[&str]) -> Vec<Owned> {
        values
            .iter()
            .map(|value| (String::new(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
        ] {
            assert_eq!(decode(&[text.as_bytes()]), data(&["a", "b"]), "{text:?}");
        }
    }

    #[test]
    fn fields_follow_the_specification() {
        for (text, expected) in [
            ("data:a\n\n", data(&["a"])),
            ("data:  a\n\n", data(&[" a"])),
            ("data: a\ndata: b\n\n", data(&["a\nb"])),
            ("data\ndata\n\n", data(&["\n"])),
            (": ping\n\ndata: a\n\n: x\n\n", data(&["a"])),
            (":\ndata: a\n\n", data(&["a"])),
            ("data:\n\ndata: a\n\n", data(&["a"])),
            ("id: 1\nretry: 5\ndata: a\n\n", data(&["a"])),
            ("\u{feff}data: a\n\n", data(&["a"])),
            ("data: a\u{2028}b\n\n", data(&["a\u{2028}b"])),
            (
                "event: error\ndata: a\n\ndata: b\n\n",
                vec![("error".into(), "a".into()), (String::new(), "b".into())],
            ),
            (
                "error: {\"code\":500}\n\ndata: b\n\n",
                vec![
                    ("error".into(), "{\"code\":500}".into()),
                    (String::new(), "b".into()),
                ],
            ),
            ("errors: x\ndata: a\n\n", data(&["a"])),
            // A field without a colon is empty, and so is the name that it sets.
            ("event: error\nevent\ndata: a\n\n", data(&["a"])),
            ("error: a\nevent\n\n", data(&["a"])),
            ("events: error\ndata: a\n\n", data(&["a"])),
            ("data: a\n\ndata: [DONE]", data(&["a", "[DONE]"])),
            ("data: : keepalive\n\n", data(&[": keepalive"])),
        ] {
            assert_eq!(decode(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_without_end_stops_at_the_limit() {
        let mut decoder = SseDecoder::default();
        let piece = vec![b'x'; MAX_EVENT / 2 + 1];
        assert_eq!(decoder.feed(&piece, |_| ()), Ok(()));
        assert_eq!(decoder.feed(&piece, |_| ()), Err(EventTooLarge));
    }

    #[test]
    fn many_short_data_lines_stop_at_the_limit() {
        let mut decoder = SseDecoder::default();
        let mut line = b"data: ".to_vec();
        line.resize(MAX_EVENT / 2, b'x');
        line.push(b'\n');
        assert_eq!(decoder.feed(&line, |_| ()), Ok(()));
        assert_eq!(decoder.feed(&line, |_| ()), Ok(()));
        assert_eq!(decoder.feed(&line, |_| ()), Err(EventTooLarge));
    }

    proptest! {
        #[test]
        fn the_cuts_do_not_matter(
            lines in prop::collection::vec("(data:|data: |event: |: |id: |)[aé你\u{1F600}]{0,4}(\n|\r|\r\n)(\n|\r\n|\r|)", 0..12),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            decode(&[&bytes]);
        }
    }
}
