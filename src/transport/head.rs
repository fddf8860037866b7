//! Where a response head ends.
//!
//! hyper is shown a response up to the empty line that ends its head and nothing behind it; the
//! body is read by [`super::body`]. Only lines are told apart here: whether they are a good head
//! is for hyper to say. Heads of interim responses (status 1xx, but for 101) belong to what comes
//! before the head.

/// Finds the end of the head in bytes that come in any pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct HeadEnd {
    /// Bytes of the status line that were seen, up to the status.
    seen: usize,
    /// The status, as far as it was seen.
    status: u16,
    line: Line,
}

/// Where in a line the last byte was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    /// Before the first line: empty ones do not count.
    #[default]
    Before,
    /// Somewhere in a line.
    Within,
    /// At the start of one.
    Start,
    /// After a carriage return at the start of one.
    Return,
    /// The head is over.
    Over,
}

/// Where the status is in the status line.
const STATUS: std::ops::Range<usize> = 9..12;

impl HeadEnd {
    /// For a request of ours, whose line has no status.
    pub(super) fn of_request() -> Self {
        Self {
            seen: STATUS.end,
            ..Self::default()
        }
    }

    /// Looks at the next `bytes`. How many of them are of the head.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        for (place, byte) in bytes.iter().enumerate() {
            self.step(*byte);
            if self.line == Line::Over {
                if !self.is_interim() {
                    return place + 1;
                }
                *self = Self::default();
            }
        }
        bytes.len()
    }

    /// Whether the head is over.
    pub(super) fn is_over(self) -> bool {
        self.line == Line::Over
    }

    fn step(&mut self, byte: u8) {
        self.line = match (self.line, byte) {
            (Line::Over, _) | (Line::Start | Line::Return, b'\n') => Line::Over,
            (Line::Before, b'\r' | b'\n') => Line::Before,
            (Line::Start, b'\r') => Line::Return,
            (_, b'\n') => Line::Start,
            _ => Line::Within,
        };
        if self.line != Line::Before && self.seen < STATUS.end {
            if STATUS.contains(&self.seen) && byte.is_ascii_digit() {
                self.status = self.status * 10 + u16::from(byte - b'0');
            }
            self.seen += 1;
        }
    }

    /// Whether another head follows this one; 101 is the last of its connection.
    fn is_interim(self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the head and what is behind it, however they are cut in two.
    #[track_caller]
    fn ends(head: &str, rest: &str) {
        let all = format!("{head}{rest}");
        for cut in 0..=all.len() {
            let (first, second) = all.as_bytes().split_at(cut);
            let mut end = HeadEnd::default();
            let mut taken = end.feed(first);
            if !end.is_over() {
                assert_eq!(taken, first.len(), "{all:?} cut at {cut}");
                taken += end.feed(second);
            }
            assert!(end.is_over(), "{all:?} cut at {cut}");
            assert_eq!(taken, head.len(), "{all:?} cut at {cut}");
        }
    }

    #[test]
    fn an_empty_line_ends_a_head() {
        ends("HTTP/1.1 200 OK\r\na: b\r\n\r\n", "5\r\nhello\r\n");
        ends("HTTP/1.1 200 OK\r\n\r\n", "\r\n\r\n");
        ends("HTTP/1.1 204\r\n\r\n", "");
        ends("HTTP/1.1 200 OK\na: b\n\n", "x");
        ends("HTTP/1.1 200 OK\r\na: b\r\n\n", "x");
    }

    #[test]
    fn empty_lines_before_it_do_not() {
        ends("\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "x");
    }

    #[test]
    fn interim_heads_go_before_the_head() {
        ends(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "x",
        );
        ends("HTTP/1.1 101 Switching\r\n\r\n", "x");
        ends("HTTP/1.1 111 Odd\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "x");
    }

    #[test]
    fn a_return_within_a_line_ends_nothing() {
        ends("HTTP/1.1 200 OK\r\na: \r b\r\n\r\n", "x");
        ends("HTTP/1.1 200 OK\r\n\rb\r\n\r\n", "x");
    }
}
