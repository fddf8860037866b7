//! JSON values of a file one at a time, wherever line ends are: one after the other, or the
//! elements of one array.
//!
//! Only as much is understood as it takes to find where a value ends: strings, and brackets that
//! open and close. A value has a longest length, so that an array of a GB is read in bounded
//! memory.

use std::io::{self, BufRead};

/// Where the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At the top, one after the other, or as elements of arrays at the top.
    Top,
    /// Elements of the array under this key of the object at the top.
    Under(&'static str),
}

/// One value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Its text.
    Whole(&'a [u8]),
    /// Longer than allowed; its rest was passed over.
    TooLong,
    /// The file ends inside it.
    Cut,
}

/// The values of `reader`.
#[derive(Debug)]
pub(super) struct Values<R> {
    reader: R,
    place: Place,
    state: State,
    value: Vec<u8>,
    longest: usize,
    /// Lines begun so far, and the one on which the last value began.
    line: u64,
    began_on: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the key that is looked for.
    Outside,
    /// Between values.
    Between,
    /// After the end of the array that was looked for.
    Behind,
}

impl<R: BufRead> Values<R> {
    pub(super) fn new(reader: R, place: Place, longest: usize) -> Self {
        Self {
            reader,
            place,
            state: match place {
                Place::Top => State::Between,
                Place::Under(_) => State::Outside,
            },
            value: Vec::new(),
            longest,
            line: 1,
            began_on: 0,
        }
    }

    /// Line on which the value that was read last began.
    pub(super) fn began_on(&self) -> u64 {
        self.began_on
    }

    /// The next value; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Value<'_>>> {
        if self.state == State::Outside && !self.find_array()? {
            self.state = State::Behind;
        }
        loop {
            let Some(byte) = self.peek()? else {
                return Ok(None);
            };
            match byte {
                // The second part of a byte order mark is no value either.
                b' ' | b'\t' | b'\r' | b'\n' | b',' | 0xef | 0xbb | 0xbf => self.skip(byte),
                _ if self.state == State::Behind => self.skip(byte),
                b'[' if self.place == Place::Top => self.skip(byte),
                b']' => {
                    self.skip(byte);
                    if self.place != Place::Top {
                        self.state = State::Behind;
                    }
                }
                _ => break,
            }
        }
        self.began_on = self.line;
        self.value.clear();
        self.take_value().map(Some)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(chunk) => return Ok(chunk.first().copied()),
            }
        }
    }

    fn skip(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.reader.consume(1);
    }

    /// Reads up to the end of a value, whose first byte is next.
    fn take_value(&mut self) -> io::Result<Value<'_>> {
        let mut scan = Scan::default();
        let mut too_long = false;
        loop {
            let chunk = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                filled => filled?,
            };
            if chunk.is_empty() {
                return Ok(match () {
                    () if scan.is_open() => Value::Cut,
                    () if too_long => Value::TooLong,
                    () => Value::Whole(&self.value),
                });
            }
            let end = chunk.iter().position(|byte| scan.ends_before(*byte));
            let part = &chunk[..end.unwrap_or(chunk.len())];
            self.line += memchr::memchr_iter(b'\n', part).count() as u64;
            too_long |= self.value.len() + part.len() > self.longest;
            if !too_long {
                self.value.extend_from_slice(part);
            }
            let used = part.len();
            self.reader.consume(used);
            if end.is_some() {
                return Ok(if too_long {
                    Value::TooLong
                } else {
                    Value::Whole(&self.value)
                });
            }
        }
    }

    /// Goes into the array under the key; false if the file has none.
    fn find_array(&mut self) -> io::Result<bool> {
        let Place::Under(wanted) = self.place else {
            return Ok(true);
        };
        let mut depth = 0_u32;
        let mut is_key = false;
        while let Some(byte) = self.peek()? {
            match byte {
                b'"' => {
                    self.value.clear();
                    if self.take_value()? == Value::Cut {
                        return Ok(false);
                    }
                    is_key =
                        depth == 1 && self.value.trim_ascii() == format!("\"{wanted}\"").as_bytes();
                    continue;
                }
                b'[' if is_key => {
                    self.skip(byte);
                    self.state = State::Between;
                    return Ok(true);
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                    self.skip(byte);
                    continue;
                }
                _ => {}
            }
            is_key = false;
            self.skip(byte);
        }
        Ok(false)
    }
}

/// How far a value was read.
#[derive(Debug, Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Scan {
    /// Whether the value has ended before `byte`, which belongs to it otherwise.
    fn ends_before(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            _ if self.begun && self.depth == 0 && is_border(byte) => return true,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.begun = true;
        false
    }

    fn is_open(&self) -> bool {
        self.in_string || self.depth > 0
    }
}

/// What cannot belong to a value whose brackets are closed.
fn is_border(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'{' | b'[' | b']' | b'}' | b'"'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, place: Place, longest: usize, buffer: usize) -> Vec<(u64, String)> {
        let reader = io::BufReader::with_capacity(buffer, text.as_bytes());
        let mut values = Values::new(reader, place, longest);
        let mut found = Vec::new();
        loop {
            let told = match values.next().expect("memory can be read") {
                Some(Value::Whole(text)) => String::from_utf8_lossy(text).into_owned(),
                Some(Value::TooLong) => "too long".to_owned(),
                Some(Value::Cut) => "cut".to_owned(),
                None => return found,
            };
            found.push((values.began_on(), told));
        }
    }

    #[track_caller]
    fn check(text: &str, place: Place, wanted: &[(u64, &str)]) {
        let wanted: Vec<(u64, String)> = wanted
            .iter()
            .map(|(line, value)| (*line, (*value).to_owned()))
            .collect();
        for buffer in [1, 2, 7, 1_000] {
            assert_eq!(read(text, place, 20, buffer), wanted, "{text} by {buffer}");
        }
    }

    #[test]
    fn values_stand_one_after_the_other_or_in_an_array() {
        check(
            "\u{feff}{\"a\":1}\n{\"b\":[2]}",
            Place::Top,
            &[(1, "{\"a\":1}"), (2, "{\"b\":[2]}")],
        );
        check(
            "{\"a\":1}{\"b\":2}",
            Place::Top,
            &[(1, "{\"a\":1}"), (1, "{\"b\":2}")],
        );
        check(
            "[\n {\"a\":\n1},\r\n\n{\"b\":\"]}\\\"\"} ]\n",
            Place::Top,
            &[(2, "{\"a\":\n1}"), (5, "{\"b\":\"]}\\\"\"}")],
        );
        check(
            "[1, \"a,b\" ,null]",
            Place::Top,
            &[(1, "1"), (1, "\"a,b\""), (1, "null")],
        );
        check("", Place::Top, &[]);
        check(" [ ] ", Place::Top, &[]);
    }

    #[test]
    fn an_array_is_found_under_its_key() {
        check(
            "{\"x\":{\"data\":[9]},\"y\":\"data\",\n\"data\" : [\n{\"a\":1},{\"b\":2}],\"z\":[3]}",
            Place::Under("data"),
            &[(3, "{\"a\":1}"), (3, "{\"b\":2}")],
        );
        check("{\"x\":[1]}", Place::Under("data"), &[]);
        check("{\"data\":1,\"a\":[2]}", Place::Under("data"), &[]);
    }

    #[test]
    fn a_value_that_is_too_long_or_cut_is_said() {
        check(
            "[{\"a\":\"0123456789012345\"},{\"b\":2}]",
            Place::Top,
            &[(1, "too long"), (1, "{\"b\":2}")],
        );
        check(
            "[{\"a\":1},{\"b\":",
            Place::Top,
            &[(1, "{\"a\":1}"), (1, "cut")],
        );
        check(
            "[{\"a\":1},\"b",
            Place::Top,
            &[(1, "{\"a\":1}"), (1, "cut")],
        );
    }
}
