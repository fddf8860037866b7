//! Content encodings, undone as the bytes come: gzip, deflate, br, zstd, and lists of them.
//!
//! We ask for `identity`; some servers and proxies compress nevertheless. Whatever the bytes so
//! far allow is handed out at once, piece by piece, so that an event has the instant of the read
//! that completed it. Pieces are small, whatever a bomb unpacks to; what comes out is bounded,
//! both in size and in proportion to what came in.
//!
//! No I/O, and no knowledge of what the bytes mean.

use std::fmt;
use std::io::{self, Write};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

/// A response unpacks to no more: as much as a whole body may have.
const MAX_DECODED: u64 = 64 * 1024 * 1024;
/// Text shrinks to a tenth, dull text to a hundredth; only a bomb goes beyond.
const MAX_RATIO: u64 = 1024;
/// The ratio is that to all slices of the wire so far, the last one counted as full: a short, dull
/// body does no harm, and what is too much does not depend on how the body was cut.
const SLICE: u64 = 1024;
/// Encodings of one response: nobody needs two.
const MAX_STAGES: usize = 3;
/// Room for one piece of output.
const PIECE: usize = 16 * 1024;
/// Input that gzip takes at once: at 1,032 to 1, it unpacks to 1 MiB at most.
const GZIP_SLICE: usize = 1024;
/// The largest window, as a power of two, that zstd may use over HTTP (RFC 9659): 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Why a body cannot be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncodingError {
    /// It is not what its header says.
    #[error("the body is not valid `{0}`")]
    Corrupt(&'static str),
    /// It ended too early.
    #[error("the body ended inside its `{0}` encoding")]
    Cut(&'static str),
    /// It unpacks to too much.
    #[error(
        "too large: the body unpacks to more than {MAX_DECODED} bytes, or to more than \
         {MAX_RATIO} KiB for each KiB of it"
    )]
    TooLarge,
}

impl EncodingError {
    /// Whether what came is wrong, and not only less than all.
    pub(super) const fn is_damage(self) -> bool {
        !matches!(self, Self::Cut(_))
    }
}

/// Takes pieces of what was unpacked.
type Sink<'s> = dyn FnMut(&[u8]) -> Result<(), EncodingError> + 's;

/// Undoes the encodings of one response.
pub(super) struct Decoder {
    /// The one that was applied last comes first.
    stages: Vec<Stage>,
    encoded: u64,
}

/// One encoding, and how much came out of it.
struct Stage {
    codec: Codec,
    decoded: u64,
}

enum Codec {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Deflate(Deflate),
    Brotli(Box<Brotli>),
    Zstd(Zstd),
}

impl Decoder {
    /// Undoes `encoding`, the value of a `content-encoding` header; `None` if one of its
    /// encodings is unknown, or there are too many.
    pub(super) fn named(encoding: &str) -> Option<Self> {
        let mut stages = Vec::new();
        for name in encoding.split(',').map(str::trim) {
            if name.is_empty() || name.eq_ignore_ascii_case("identity") {
                continue;
            }
            let codec = Codec::named(&name.to_ascii_lowercase())?;
            stages.insert(0, Stage { codec, decoded: 0 });
        }
        (stages.len() <= MAX_STAGES).then_some(Self { stages, encoded: 0 })
    }

    /// Takes bytes of the body and gives `sink` all that they complete, in pieces.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), EncodingError> {
        let mut sink = |piece: &[u8]| {
            sink(piece);
            Ok(())
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = SLICE - self.encoded % SLICE;
            let (slice, behind) = rest.split_at(rest.len().min(short(room)));
            self.encoded += slice.len() as u64;
            let most = self.encoded.next_multiple_of(SLICE) * MAX_RATIO;
            run(&mut self.stages, (slice, most.min(MAX_DECODED)), &mut sink)?;
            rest = behind;
        }
        Ok(())
    }

    /// The body ended: whether it did where its encodings end. One without bytes may.
    pub(super) fn finish(mut self) -> Result<(), EncodingError> {
        if self.encoded == 0 {
            return Ok(());
        }
        self.stages
            .iter_mut()
            .try_for_each(|stage| stage.codec.finish())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.stages.iter().map(|stage| stage.codec.name()))
            .finish()
    }
}

/// The beginning of what `bytes` unpack to, about `limit` bytes of it, as far as they are
/// valid; empty where the encoding is not known.
pub(super) fn decoded_start(encoding: &str, bytes: &[u8], limit: usize) -> Vec<u8> {
    let mut start = Vec::new();
    let Some(mut decoder) = Decoder::named(encoding) else {
        return start;
    };
    let fed = decoder.feed(bytes, &mut |piece| {
        let room = limit.saturating_sub(start.len()).min(piece.len());
        start.extend_from_slice(&piece[..room]);
    });
    match fed {
        // What came before the damage may say why the server refused.
        Ok(()) | Err(_) => start,
    }
}

/// Sends `bytes` through the stages, each of which may have given out `most` bytes by its end.
fn run(
    stages: &mut [Stage],
    (bytes, most): (&[u8], u64),
    sink: &mut Sink<'_>,
) -> Result<(), EncodingError> {
    let Some((Stage { codec, decoded }, inner)) = stages.split_first_mut() else {
        return sink(bytes);
    };
    codec.feed(bytes, &mut |piece| {
        let allowed = piece.len().min(short(most - *decoded));
        *decoded += allowed as u64;
        run(inner, (&piece[..allowed], most), sink)?;
        if allowed < piece.len() {
            return Err(EncodingError::TooLarge);
        }
        Ok(())
    })
}

impl Codec {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(Vec::new())),
            "deflate" => Self::Deflate(Deflate::default()),
            "br" => Self::Brotli(Box::default()),
            "zstd" => Self::Zstd(Zstd::new()?),
            _ => return None,
        })
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Gzip(_) => "gzip",
            Self::Deflate(_) => "deflate",
            Self::Brotli(_) => "br",
            Self::Zstd(_) => "zstd",
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        match self {
            Self::Gzip(decoder) => {
                for slice in bytes.chunks(GZIP_SLICE) {
                    let fed = decoder.write_all(slice).and_then(|()| decoder.flush());
                    if fed.is_err() {
                        // It holds back what came before the damage until it is written to again.
                        drop(decoder.write(&[0]));
                    }
                    let piece = std::mem::take(decoder.get_mut());
                    sink(&piece)?;
                    fed.map_err(|_| EncodingError::Corrupt("gzip"))?;
                }
                Ok(())
            }
            Self::Deflate(deflate) => deflate.feed(bytes, sink),
            Self::Brotli(brotli) => brotli.feed(bytes, sink),
            Self::Zstd(zstd) => zstd.feed(bytes, sink),
        }
    }

    fn finish(&mut self) -> Result<(), EncodingError> {
        let name = self.name();
        let whole = match self {
            Self::Gzip(decoder) => match decoder.try_finish() {
                Ok(()) => true,
                Err(error) if is_damaged(decoder, &error) => {
                    return Err(EncodingError::Corrupt(name));
                }
                Err(_) => false,
            },
            Self::Deflate(deflate) => deflate.ended,
            Self::Brotli(brotli) => brotli.ended,
            Self::Zstd(zstd) => zstd.between_frames,
        };
        whole.then_some(()).ok_or(EncodingError::Cut(name))
    }
}

/// Whether the checksum of a gzip body is there and wrong, after `error` at its end. Of one that
/// is not there in full the decoder says the same, but goes on taking it.
fn is_damaged(decoder: &mut MultiGzDecoder<Vec<u8>>, error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::UnexpectedEof
        && decoder.header().is_some()
        && decoder.write(&[0]).is_err()
}

/// `deflate`: with the zlib frame that the standard wants, or bare, as some servers send it.
struct Deflate {
    /// The first byte, while it is the only one.
    first: Option<u8>,
    inflate: Option<Decompress>,
    room: Vec<u8>,
    ended: bool,
}

impl Default for Deflate {
    fn default() -> Self {
        Self {
            first: None,
            inflate: None,
            room: vec![0; PIECE],
            ended: false,
        }
    }
}

impl Deflate {
    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        if self.inflate.is_some() {
            return self.inflate(bytes, sink);
        }
        match (self.first.take(), bytes) {
            (first, []) => self.first = first,
            (None, [only]) => self.first = Some(*only),
            (None, [first, second, ..]) => {
                self.inflate = Some(Decompress::new(is_zlib(*first, *second)));
                return self.inflate(bytes, sink);
            }
            (Some(first), [second, ..]) => {
                self.inflate = Some(Decompress::new(is_zlib(first, *second)));
                self.inflate(&[first], sink)?;
                return self.inflate(bytes, sink);
            }
        }
        Ok(())
    }

    fn inflate(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        let Some(inflate) = &mut self.inflate else {
            return Ok(());
        };
        while !self.ended {
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(bytes, &mut self.room, FlushDecompress::Sync);
            let read = short(inflate.total_in() - read);
            let written = short(inflate.total_out() - written);
            sink(&self.room[..written])?;
            let status = status.map_err(|_| EncodingError::Corrupt("deflate"))?;
            bytes = &bytes[read..];
            self.ended = status == Status::StreamEnd;
            if bytes.is_empty() && written < PIECE {
                break;
            }
            // Output that was held back may come without any input being taken.
            if read == 0 && written == 0 && !self.ended {
                return Err(EncodingError::Corrupt("deflate"));
            }
        }
        Ok(())
    }
}

/// Whether two bytes begin a zlib frame (RFC 1950): method 8, and a multiple of 31.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// A count that is no larger than a buffer of ours, or a limit.
fn short(count: u64) -> usize {
    usize::try_from(count).expect("some MiB at most")
}

/// `br` (RFC 7932), without the large windows that browsers refuse too.
struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    room: Vec<u8>,
    ended: bool,
}

impl Default for Brotli {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: BrotliState::new_strict(alloc(), alloc(), alloc()),
            room: vec![0; PIECE],
            ended: false,
        }
    }
}

impl Brotli {
    /// The decoder gives out nothing of what it was given together with damage, so it is given one
    /// byte at a time.
    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        bytes
            .chunks(1)
            .try_for_each(|byte| self.byte(byte, &mut *sink))
    }

    fn byte(&mut self, byte: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        let (mut left, mut read, mut total) = (byte.len(), 0, 0);
        while !self.ended {
            let (mut room, mut written) = (PIECE, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut read,
                byte,
                &mut room,
                &mut written,
                &mut self.room,
                &mut total,
                &mut self.state,
            );
            sink(&self.room[..written])?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => break,
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::ResultFailure => return Err(EncodingError::Corrupt("br")),
            }
        }
        Ok(())
    }
}

/// `zstd` (RFC 8878): one frame or several.
struct Zstd {
    decoder: ZstdDecoder<'static>,
    room: Vec<u8>,
    between_frames: bool,
    /// What completes the next part of a frame, as the decoder says: it is given no more at once,
    /// since it gives out nothing of what it was given together with damage.
    wanted: usize,
}

impl Zstd {
    /// `None` if there is no memory for it.
    fn new() -> Option<Self> {
        let mut decoder = ZstdDecoder::new().ok()?;
        decoder
            .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
            .ok()?;
        Some(Self {
            decoder,
            room: vec![0; PIECE],
            between_frames: false,
            wanted: 1,
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(self.wanted.min(rest.len()));
            self.part(part, sink)?;
            rest = after;
        }
        Ok(())
    }

    fn part(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), EncodingError> {
        let mut written = PIECE;
        // A full piece may have more behind it, though all input is taken.
        while !bytes.is_empty() || written == PIECE && !self.between_frames {
            let status = self
                .decoder
                .run_on_buffers(bytes, &mut self.room)
                .map_err(|_| EncodingError::Corrupt("zstd"))?;
            written = status.bytes_written;
            bytes = &bytes[status.bytes_read..];
            self.between_frames = status.remaining == 0;
            self.wanted = status.remaining.max(1);
            sink(&self.room[..written])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
