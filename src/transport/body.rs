//! The framing of an HTTP/1.1 response body (RFC 9112, section 6): which bytes are of the body.
//!
//! Bytes in, parts of the body out, in place and whatever way they are cut. Chunk extensions and
//! trailers are read over, up to a limit. A line that is not of the format ends the body with an
//! error: what follows cannot be known.

/// Longest chunk extension or line of trailers, and all trailers together: what hyper allows.
const MOST_EXTRA: usize = 16 * 1024;

/// How the end of a body is known, and how far it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length; so many bytes are left.
    Length(u64),
    /// In chunks.
    Chunked(Place),
    /// It ends with the connection.
    UntilClose,
}

/// Where in a chunked body the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the size of a chunk, which has had so many digits.
    Size {
        value: u64,
        digits: u8,
    },
    /// After the size, in what may follow it: white space, then extensions.
    AfterSize {
        value: u64,
        extra: usize,
        is_extension: bool,
    },
    /// Before the line feed that ends the size line.
    SizeEnd(u64),
    /// In the data of a chunk, of which so many bytes are left.
    Data(u64),
    /// Before the line end after the data.
    DataReturn,
    DataEnd,
    /// At the start of a line of trailers, of which there were so many bytes.
    TrailerStart(usize),
    Trailer(usize),
    /// Before the line feed that ends the body.
    LastEnd,
    Over,
}

/// A body that is not of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The size of a chunk is not a number in hexadecimal digits that fits 64 bits.
    #[error("the size of a chunk is no hexadecimal number of at most 16 digits")]
    Size,
    /// A size line or the data of a chunk has another end than CR LF.
    #[error("a chunk does not end with CR LF")]
    LineEnd,
    /// Chunk extensions or trailers take more than 16 KiB.
    #[error("chunk extensions or trailers of more than 16 KiB")]
    TooMuch,
}

impl Framing {
    /// A chunked body from its start.
    pub(super) const CHUNKED: Self = Self::Chunked(SIZE);

    /// Gives the parts of the body in `bytes` to `take`. How many of the bytes belong to the
    /// message: all, unless it is over.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, FramingError> {
        match self {
            Self::Length(left) => {
                let (part, after) = of_length(*left, bytes);
                if !part.is_empty() {
                    take(part);
                }
                *left = after;
                Ok(part.len())
            }
            Self::UntilClose => {
                take(bytes);
                Ok(bytes.len())
            }
            Self::Chunked(place) => chunked(place, bytes, take),
        }
    }

    /// Whether all of the body was read.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Place::Over))
    }
}

const SIZE: Place = Place::Size {
    value: 0,
    digits: 0,
};

fn chunked(
    place: &mut Place,
    bytes: &[u8],
    take: &mut dyn FnMut(&[u8]),
) -> Result<usize, FramingError> {
    let mut at = 0;
    while at < bytes.len() && *place != Place::Over {
        if let Place::Data(left) = *place {
            let (part, after) = of_length(left, &bytes[at..]);
            take(part);
            at += part.len();
            *place = if after == 0 {
                Place::DataReturn
            } else {
                Place::Data(after)
            };
        } else {
            *place = step(*place, bytes[at])?;
            at += 1;
        }
    }
    Ok(at)
}

/// The part of `bytes` that belongs to a run of `left` bytes, and how many are then left.
fn of_length(left: u64, bytes: &[u8]) -> (&[u8], u64) {
    let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (&bytes[..here], left - here as u64)
}

/// The place after `byte`, which is not data.
fn step(place: Place, byte: u8) -> Result<Place, FramingError> {
    Ok(match (place, byte) {
        (Place::Size { value, digits }, _) => return size(value, digits, byte),
        (Place::AfterSize { value, .. }, b'\r') => Place::SizeEnd(value),
        (Place::AfterSize { .. }, b'\n') => return Err(FramingError::LineEnd),
        (
            Place::AfterSize {
                value,
                extra,
                is_extension,
            },
            _,
        ) => {
            let is_extension = is_extension || byte == b';';
            if !is_extension && byte != b' ' && byte != b'\t' {
                return Err(FramingError::Size);
            }
            Place::AfterSize {
                value,
                extra: more(extra)?,
                is_extension,
            }
        }
        (Place::SizeEnd(0), b'\n') => Place::TrailerStart(0),
        (Place::SizeEnd(value), b'\n') => Place::Data(value),
        (Place::DataReturn, b'\r') => Place::DataEnd,
        (Place::DataEnd, b'\n') => SIZE,
        (Place::SizeEnd(_) | Place::DataReturn | Place::DataEnd, _) => {
            return Err(FramingError::LineEnd);
        }
        (Place::TrailerStart(_), b'\r') => Place::LastEnd,
        (Place::TrailerStart(extra) | Place::Trailer(extra), b'\n') => {
            Place::TrailerStart(more(extra)?)
        }
        (Place::TrailerStart(extra) | Place::Trailer(extra), _) => Place::Trailer(more(extra)?),
        (Place::LastEnd, b'\n') | (Place::Over, _) => Place::Over,
        (Place::LastEnd, _) => return Err(FramingError::LineEnd),
        (Place::Data(left), _) => Place::Data(left),
    })
}

fn size(value: u64, digits: u8, byte: u8) -> Result<Place, FramingError> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ if digits == 0 => return Err(FramingError::Size),
        b'\r' => return Ok(Place::SizeEnd(value)),
        b'\n' => return Err(FramingError::LineEnd),
        b' ' | b'\t' | b';' => {
            return Ok(Place::AfterSize {
                value,
                extra: 0,
                is_extension: byte == b';',
            });
        }
        _ => return Err(FramingError::Size),
    };
    if digits == 16 {
        return Err(FramingError::Size);
    }
    Ok(Place::Size {
        value: value << 4 | u64::from(digit),
        digits: digits + 1,
    })
}

fn more(extra: usize) -> Result<usize, FramingError> {
    if extra >= MOST_EXTRA {
        return Err(FramingError::TooMuch);
    }
    Ok(extra + 1)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    /// What `framing` takes of `bytes`, given in pieces that end at `cuts`.
    fn read(
        mut framing: Framing,
        bytes: &[u8],
        cuts: &[usize],
    ) -> Result<(String, usize, bool), FramingError> {
        let (mut taken, mut used, mut from) = (Vec::new(), 0, 0);
        for to in cuts.iter().copied().chain([bytes.len()]) {
            let to = to.clamp(from, bytes.len());
            used += framing.feed(&bytes[from..to], &mut |part| taken.extend_from_slice(part))?;
            from = to;
        }
        let text = String::from_utf8(taken).expect("as given");
        Ok((text, used, framing.is_over()))
    }

    #[track_caller]
    fn check(framing: Framing, bytes: &str, body: &str, (used, over): (usize, bool)) {
        for cut in 0..=bytes.len() {
            assert_eq!(
                read(framing, bytes.as_bytes(), &[cut]),
                Ok((body.to_owned(), used, over)),
                "cut at {cut}"
            );
        }
    }

    #[track_caller]
    fn refused(bytes: &str, error: FramingError) {
        for cut in 0..=bytes.len() {
            assert_eq!(
                read(Framing::CHUNKED, bytes.as_bytes(), &[cut]),
                Err(error),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_length_takes_so_many_bytes() {
        check(Framing::Length(5), "hello", "hello", (5, true));
        check(Framing::Length(5), "hello, you", "hello", (5, true));
        check(Framing::Length(6), "hello", "hello", (5, false));
        check(Framing::Length(0), "x", "", (0, true));
    }

    #[test]
    fn without_a_length_all_is_body_until_the_connection_ends() {
        check(Framing::UntilClose, "hello", "hello", (5, false));
    }

    #[test]
    fn chunks_are_joined_and_what_is_behind_the_last_is_left() {
        check(
            Framing::CHUNKED,
            "5\r\nhello\r\n1;a=b\r\n,\r\n00A \t\r\n0123456789\r\n0\r\n\r\n",
            "hello,0123456789",
            (44, true),
        );
        check(
            Framing::CHUNKED,
            "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\nHTTP/1.1",
            "x",
            (23, true),
        );
        check(Framing::CHUNKED, "3\r\nab", "ab", (5, false));
    }

    #[test]
    fn what_is_not_of_the_format_is_an_error() {
        refused("\r\n", FramingError::Size);
        refused("g\r\n", FramingError::Size);
        refused("-1\r\n", FramingError::Size);
        refused("5 x\r\n", FramingError::Size);
        refused("00000000000000005\r\n", FramingError::Size);
        refused("5\nhello", FramingError::LineEnd);
        refused("5\rhello", FramingError::LineEnd);
        refused("5;a\nhello", FramingError::LineEnd);
        refused("5\r\nhello6\r\n", FramingError::LineEnd);
        refused("0\r\n\rx", FramingError::LineEnd);
    }

    #[test]
    fn endless_extensions_and_trailers_are_an_error() {
        let long = "a".repeat(MOST_EXTRA + 1);
        let read = |bytes: String| read(Framing::CHUNKED, bytes.as_bytes(), &[7]);
        assert_eq!(read(format!("5;{long}")), Err(FramingError::TooMuch));
        assert_eq!(read(format!("0\r\n{long}")), Err(FramingError::TooMuch));
        assert_eq!(
            read(format!("0\r\n{}", "a: b\n".repeat(4_000))),
            Err(FramingError::TooMuch)
        );
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_body(
            parts in prop::collection::vec("[a-z]{1,20}", 0..8),
            mut cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            cuts.sort_unstable();
            let mut bytes = String::new();
            for part in &parts {
                write!(bytes, "{:x}\r\n{part}\r\n", part.len()).expect("a string takes all");
            }
            bytes.push_str("0\r\n\r\n");
            let length = bytes.len();
            bytes.push_str("rest");
            prop_assert_eq!(
                read(Framing::CHUNKED, bytes.as_bytes(), &cuts),
                Ok((parts.concat(), length, true))
            );
        }
    }
}
