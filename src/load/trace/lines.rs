//! Lines of a file, one at a time, with a longest length: a file of one line of 2 GB is an error
//! in bounded memory.
//!
//! A byte order mark at the beginning, carriage returns and blank lines are passed over; line
//! numbers count what an editor counts.

use std::io::{self, BufRead};

use memchr::memchr;

/// The lines of `reader`.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    longest: usize,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Its bytes without the line end.
    Whole(&'a [u8]),
    /// Longer than allowed; its rest was passed over.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R, longest: usize) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
            longest,
        }
    }

    /// Number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut too_long = false;
            let mut any = false;
            loop {
                let chunk = match self.reader.fill_buf() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    filled => filled?,
                };
                if chunk.is_empty() {
                    break;
                }
                any = true;
                let end = memchr(b'\n', chunk);
                let part = &chunk[..end.unwrap_or(chunk.len())];
                too_long |= self.line.len() + part.len() > self.longest;
                if !too_long {
                    self.line.extend_from_slice(part);
                }
                let used = part.len() + usize::from(end.is_some());
                self.reader.consume(used);
                if end.is_some() {
                    break;
                }
            }
            if !any {
                self.number -= 1;
                return Ok(None);
            }
            if too_long {
                return Ok(Some(Line::TooLong));
            }
            if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
                self.line.drain(..3);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(Line::Whole(self.line.trim_ascii())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], longest: usize, buffer: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(buffer, text), longest);
        let mut found = Vec::new();
        loop {
            let line = match lines.next().expect("memory can be read") {
                Some(Line::Whole(line)) => Some(line.to_vec()),
                Some(Line::TooLong) => None,
                None => return found,
            };
            found.push((lines.number(), line));
        }
    }

    #[test]
    fn lines_are_numbered_as_in_an_editor() {
        for buffer in [1, 3, 100] {
            assert_eq!(
                read(b"\xef\xbb\xbfa\r\n\n \nbc\nd", 10, buffer),
                [
                    (1, Some(b"a".to_vec())),
                    (4, Some(b"bc".to_vec())),
                    (5, Some(b"d".to_vec()))
                ]
            );
        }
        assert_eq!(read(b"", 10, 8), []);
        assert_eq!(read(b"\n\n", 10, 8), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_without_being_kept() {
        for buffer in [1, 3, 100] {
            assert_eq!(
                read(b"abcd\nabcde\nab\n", 4, buffer),
                [
                    (1, Some(b"abcd".to_vec())),
                    (2, None),
                    (3, Some(b"ab".to_vec()))
                ]
            );
        }
        let text = b"x".repeat(100_000);
        let mut lines = Lines::new(io::BufReader::new(&text[..]), 1_000);
        assert_eq!(lines.next().expect("readable"), Some(Line::TooLong));
        assert!(
            lines.line.capacity() <= 16 * 1_024,
            "{}",
            lines.line.capacity()
        );
    }
}
