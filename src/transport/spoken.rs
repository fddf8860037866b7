//! What the other side speaks, by its first bytes.
//!
//! A client that speaks HTTP/1.1 to a port of TLS, or HTTP/2 to a server that does not know it,
//! gets an answer that its parser can only call broken. The first bytes say what it is.

/// What the first bytes of a connection belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP/1.1, or 1.0.
    Http1,
    /// HTTP/2.
    Http2,
    /// TLS.
    Tls,
    /// Something else, or too little to tell.
    Other,
}

impl Spoken {
    /// What a connection that begins with `bytes` speaks.
    pub(super) fn of(bytes: &[u8]) -> Self {
        // A frame: 3 bytes of length, type, flags, stream. The first is SETTINGS, or GOAWAY.
        const SETTINGS: u8 = 4;
        const GOAWAY: u8 = 7;
        match bytes {
            [b'H', b'T', b'T', b'P', b'/', ..] => Self::Http1,
            [0x14..=0x17, 0x03, 0x00..=0x04, ..] => Self::Tls,
            [0, _, _, SETTINGS | GOAWAY, _, 0, 0, 0, 0, ..] => Self::Http2,
            _ => Self::Other,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Tls => "TLS",
            Self::Other => "something else",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_say_what_is_spoken() {
        for (bytes, expected) in [
            (&b"HTTP/1.0 400 Bad Request\r\n"[..], Spoken::Http1),
            (b"HTTP/1.1 200 OK\r\n", Spoken::Http1),
            (b"\x15\x03\x01\x00\x02\x02\x46", Spoken::Tls),
            (b"\x15\x03\x03\x00\x02\x02\x16", Spoken::Tls),
            (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", Spoken::Http2),
            (b"\x00\x00\x08\x07\x00\x00\x00\x00\x00", Spoken::Http2),
            (b"\x00\x00\x12\x04\x00\x00\x00\x00\x01", Spoken::Other),
            (b"SSH-2.0-x\r\n", Spoken::Other),
            (b"<html>", Spoken::Other),
            (b"", Spoken::Other),
        ] {
            assert_eq!(Spoken::of(bytes), expected, "{bytes:?}");
        }
    }
}
