//! Which read brought which byte of an HTTP/2 response body.
//!
//! The task of an HTTP/2 connection reads ahead of whoever takes the body, so the last read is
//! not the one that brought what comes out. [`Frames`] walks the frames of the plain bytes as
//! they are read (a frame's head is 9 bytes; nothing needs to be decompressed) and [`Ledger`]
//! keeps, for the response under way, up to which byte of the body each read went. Bounded: if
//! the taker falls more than [`MOST_READS`] reads behind, the ledger says that it cannot tell.
//!
//! Pure: no socket, no clock.

use std::collections::VecDeque;

use super::marks::ReadMark;

/// Reads that are kept until their bytes are taken: more than a flow-control window of usual
/// events.
const MOST_READS: usize = 1024;

/// Length of a frame's head.
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// Flag of DATA: the payload begins with the length of the padding at its end.
const PADDED: u8 = 8;

/// What a stretch of bytes belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Headers or trailers.
    Fields,
    /// So many bytes of a body; zero for an empty frame.
    Body(usize),
}

/// Walks the frames of one direction of a connection, however they are cut.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Bytes before the next frame that are none of it.
    skip: usize,
    head: [u8; HEAD],
    filled: usize,
    frame: Option<Frame>,
}

/// A frame of which the head is known.
#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: u8,
    stream: u32,
    /// Payload that is still to come.
    left: usize,
    /// Padding at its end.
    padding: usize,
    /// Whether the length of the padding is the next byte.
    is_padding_next: bool,
}

impl Frames {
    /// Of the bytes that a client writes: they begin with 24 bytes that are no frame.
    pub(super) fn of_client() -> Self {
        Self {
            skip: 24,
            ..Self::default()
        }
    }

    /// Takes the next bytes; `on` is told what they belong to, and of which stream.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut on: impl FnMut(u32, Part)) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let Some(frame) = &mut self.frame else {
                let taken = (HEAD - self.filled).min(bytes.len());
                self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
                self.filled += taken;
                bytes = &bytes[taken..];
                if self.filled == HEAD {
                    self.filled = 0;
                    let frame = Frame::of(self.head);
                    if let Some(part) = frame.part(0) {
                        on(frame.stream, part);
                    }
                    self.frame = Some(frame).filter(|frame| frame.left > 0);
                }
                continue;
            };
            let taken = frame.left.min(bytes.len());
            let body = frame.take(&bytes[..taken]);
            if let Some(part) = frame.part(body) {
                on(frame.stream, part);
            }
            bytes = &bytes[taken..];
            if frame.left == 0 {
                self.frame = None;
            }
        }
    }
}

impl Frame {
    fn of(head: [u8; HEAD]) -> Self {
        let [l2, l1, l0, kind, flags, s3, s2, s1, s0] = head;
        Self {
            kind,
            stream: u32::from_be_bytes([s3 & 0x7f, s2, s1, s0]),
            left: usize::from(l2) << 16 | usize::from(l1) << 8 | usize::from(l0),
            padding: 0,
            is_padding_next: kind == DATA && flags & PADDED != 0,
        }
    }

    /// Takes bytes of the payload and returns how many of them are neither padding nor its
    /// length.
    fn take(&mut self, mut bytes: &[u8]) -> usize {
        if let Some((first, rest)) = bytes.split_first().filter(|_| self.is_padding_next) {
            self.is_padding_next = false;
            self.left -= 1;
            self.padding = usize::from(*first);
            bytes = rest;
        }
        let body = self.left.saturating_sub(self.padding).min(bytes.len());
        self.left -= bytes.len();
        body
    }

    const fn part(&self, body: usize) -> Option<Part> {
        match self.kind {
            DATA => Some(Part::Body(body)),
            HEADERS | CONTINUATION => Some(Part::Fields),
            _ => None,
        }
    }
}

/// The reads of the response under way, of which bytes were not taken yet.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Greatest stream whose response has begun.
    stream: u32,
    /// Streams up to this one belong to exchanges that are over.
    over: u32,
    /// Bytes of its body so far.
    count: u64,
    /// Reads, and up to which byte each went.
    reads: VecDeque<(u64, ReadMark)>,
    /// Reads had to be dropped.
    is_lost: bool,
}

impl Ledger {
    /// An exchange begins; what still comes for the one before is nobody's.
    pub(super) fn begin(&mut self) {
        self.over = self.stream;
        self.count = 0;
        self.reads.clear();
        self.is_lost = false;
    }

    /// `read` brought `part` of `stream`. Whether it belongs to the exchange under way.
    pub(super) fn take(&mut self, (stream, part): (u32, Part), read: ReadMark) -> bool {
        if stream <= self.over {
            return false;
        }
        self.stream = self.stream.max(stream);
        if let Part::Body(bytes @ 1..) = part {
            self.count += bytes as u64;
            let kept = self.reads.len();
            match self.reads.back_mut() {
                Some((end, last)) if last.number == read.number => *end = self.count,
                _ if kept == MOST_READS => self.is_lost = true,
                _ => self.reads.push_back((self.count, read)),
            }
        }
        true
    }

    /// The read that brought byte number `count` of the body, from 1, if that is known.
    pub(super) fn read_of(&mut self, count: u64) -> Option<ReadMark> {
        if self.is_lost {
            return None;
        }
        while self.reads.front().is_some_and(|(end, _)| *end < count) {
            self.reads.pop_front();
        }
        self.reads.front().map(|(_, read)| *read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonoTime;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, stream];
        bytes.extend_from_slice(payload);
        bytes
    }

    /// SETTINGS, HEADERS, DATA of 5, padded DATA of 3, PING, empty DATA.
    fn connection() -> Vec<u8> {
        [
            frame(4, 0, 0, &[0; 6]),
            frame(1, 4, 1, &[7; 11]),
            frame(0, 0, 1, b"hello"),
            frame(0, 8, 1, b"\x04abc\0\0\0\0"),
            frame(6, 0, 0, &[0; 8]),
            frame(0, 1, 1, b""),
        ]
        .concat()
    }

    #[test]
    fn the_body_is_counted_however_the_bytes_are_cut() {
        let bytes = connection();
        for step in 1..=bytes.len() {
            let mut frames = Frames::default();
            let (mut body, mut fields, mut empty) = (0, 0, 0);
            for piece in bytes.chunks(step) {
                frames.feed(piece, |stream, part| {
                    assert_eq!(stream, 1);
                    match part {
                        Part::Fields => fields += 1,
                        Part::Body(0) => empty += 1,
                        Part::Body(count) => body += count,
                    }
                });
            }
            assert_eq!(body, 8, "in pieces of {step}");
            assert!(fields > 0 && empty > 0);
        }
    }

    #[test]
    fn every_cut_in_two_gives_the_body_bytes_before_it() {
        let bytes = connection();
        // 6 + 9 of settings, 11 + 9 of headers, 9 of the first head.
        let (hello, padded) = (44, 44 + 5 + 9 + 1);
        for cut in 0..=bytes.len() {
            let mut before = 0;
            Frames::default().feed(&bytes[..cut], |_, part| {
                if let Part::Body(count) = part {
                    before += count;
                }
            });
            let expected = cut.saturating_sub(hello).min(5) + cut.saturating_sub(padded).min(3);
            assert_eq!(before, expected, "cut at {cut}");
        }
    }

    #[test]
    fn padding_longer_than_its_frame_is_no_body_and_no_panic() {
        let bytes = frame(0, 8, 1, b"\xffab");
        Frames::default().feed(&bytes, |_, part| assert_eq!(part, Part::Body(0)));
        Frames::default().feed(&frame(0, 8, 1, b""), |_, part| {
            assert_eq!(part, Part::Body(0));
        });
    }

    #[test]
    fn what_a_client_writes_first_is_no_frame() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(1, 5, 1, b"x"));
        let mut found = Vec::new();
        let mut frames = Frames::of_client();
        for byte in bytes {
            frames.feed(&[byte], |stream, part| found.push((stream, part)));
        }
        assert_eq!(found, [(1, Part::Fields), (1, Part::Fields)]);
    }

    fn read(number: u32) -> ReadMark {
        ReadMark::user(MonoTime::from_nanos(u64::from(number)), number)
    }

    #[test]
    fn each_byte_is_of_the_read_that_brought_it() {
        let mut ledger = Ledger::default();
        assert!(ledger.take((1, Part::Fields), read(1)));
        assert_eq!(ledger.read_of(1), None);
        for (bytes, number) in [(5, 2), (5, 2), (3, 3), (4, 5)] {
            ledger.take((1, Part::Body(bytes)), read(number));
        }
        let numbers = [5, 10, 11, 13, 14, 17].map(|count| {
            let read = ledger.read_of(count).expect("known");
            read.number
        });
        assert_eq!(numbers, [2, 2, 3, 3, 5, 5]);
        assert_eq!(ledger.read_of(18), None);
    }

    #[test]
    fn what_comes_late_for_an_exchange_that_is_over_is_not_counted() {
        let mut ledger = Ledger::default();
        ledger.take((1, Part::Body(5)), read(1));
        ledger.begin();
        assert!(!ledger.take((1, Part::Body(7)), read(2)));
        assert!(ledger.take((3, Part::Fields), read(3)));
        ledger.take((3, Part::Body(2)), read(3));
        assert_eq!(ledger.read_of(2).map(|read| read.number), Some(3));
    }

    #[test]
    fn a_ledger_that_is_full_knows_nothing_until_the_next_exchange() {
        let mut ledger = Ledger::default();
        for number in 0..1_025 {
            ledger.take((1, Part::Body(1)), read(number));
        }
        assert_eq!(ledger.read_of(1), None);
        ledger.begin();
        ledger.take((3, Part::Body(1)), read(2_000));
        assert_eq!(ledger.read_of(1).map(|read| read.number), Some(2_000));
    }
}
