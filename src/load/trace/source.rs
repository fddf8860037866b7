//! The bytes of a file, whatever they are packed in.
//!
//! gzip (several members too) and zstd are undone while reading; nothing is unpacked to disk or
//! wholly into memory. The head stays readable, so that the format can be told from it.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

/// Bytes of the head that the format is told from. The keys of a row come before its longest
/// list, so that a row need not fit.
const HEAD: u64 = 64 << 10;

/// Buffer behind a decoder.
const BUFFER: usize = 256 << 10;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Plain,
    /// gzip, one or several members.
    Gzip,
    /// Zstandard, one or several frames.
    Zstd,
}

impl Encoding {
    /// What the first bytes say.
    #[must_use]
    pub fn detect(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// An unpacked file with a head that can be looked at.
pub struct Source {
    encoding: Encoding,
    reader: io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead + Send>>,
}

impl Source {
    /// Unpacks what `file` gives.
    ///
    /// # Errors
    /// If the beginning cannot be read or unpacked.
    pub fn open(mut file: impl BufRead + Send + 'static) -> io::Result<Self> {
        let encoding = Encoding::detect(file.fill_buf()?);
        let mut reader: Box<dyn BufRead + Send> = match encoding {
            Encoding::Plain => Box::new(file),
            Encoding::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
            Encoding::Zstd => Box::new(BufReader::with_capacity(
                BUFFER,
                zstd::Decoder::with_buffer(file)?,
            )),
        };
        let mut head = Vec::new();
        if let Err(error) = reader.by_ref().take(HEAD).read_to_end(&mut head) {
            if head.is_empty() || error.kind() != io::ErrorKind::UnexpectedEof {
                return Err(error);
            }
            // A file that is cut inside its head is told when it is read, with the line.
            reader = Box::new(Cut(error.to_string()));
        }
        Ok(Self {
            encoding,
            reader: Cursor::new(head).chain(reader),
        })
    }

    /// How it was packed.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The first bytes, at most 64 KiB, while none has been read.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.reader.get_ref().0.get_ref()
    }

    /// Everything from the beginning.
    #[must_use]
    pub fn into_reader(self) -> impl BufRead + Send + 'static {
        self.reader
    }
}

/// What is behind the last byte of a file that was cut.
struct Cut(String);

impl Cut {
    fn error(&self) -> io::Error {
        io::Error::new(io::ErrorKind::UnexpectedEof, self.0.clone())
    }
}

impl Read for Cut {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.error())
    }
}

impl BufRead for Cut {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Err(self.error())
    }

    fn consume(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gz(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("memory can be written");
        encoder.finish().expect("memory can be written")
    }

    fn unpacked(bytes: Vec<u8>) -> (Encoding, Vec<u8>, io::Result<Vec<u8>>) {
        let source = Source::open(Cursor::new(bytes)).expect("the head is good");
        let (encoding, head) = (source.encoding(), source.head().to_vec());
        let mut all = Vec::new();
        let read = source.into_reader().read_to_end(&mut all).map(|_| all);
        (encoding, head, read)
    }

    #[test]
    fn every_packing_is_undone() {
        let text = b"one\ntwo\n".repeat(20_000);
        let zst = zstd::encode_all(&text[..], 1).expect("memory can be written");
        for (bytes, wanted) in [
            (text.clone(), Encoding::Plain),
            ([gz(&text[..8]), gz(&text[8..])].concat(), Encoding::Gzip),
            (zst, Encoding::Zstd),
        ] {
            let (encoding, head, all) = unpacked(bytes);
            assert_eq!(encoding, wanted);
            assert_eq!(head, text[..65_536], "{wanted:?}");
            assert_eq!(all.expect("readable"), text, "{wanted:?}");
        }
    }

    #[test]
    fn a_truncated_file_is_an_error_and_no_end() {
        let mut noise = 1_u32;
        let text: Vec<u8> = (0..400_000)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b'a' + u8::try_from(noise >> 28).expect("four bits")
            })
            .collect();
        for mut bytes in [gz(&text), zstd::encode_all(&text[..], 1).expect("writable")] {
            bytes.truncate(bytes.len() / 2);
            let (_, head, all) = unpacked(bytes);
            assert_eq!(head.len(), 65_536);
            let error = all.expect_err("half of it is missing");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
        }
        // Cut inside the head: told when it is read, not before.
        let text = b"{\"timestamp\":1}\n";
        for mut bytes in [gz(text), zstd::encode_all(&text[..], 1).expect("writable")] {
            bytes.truncate(bytes.len() - 1);
            let (_, _, all) = unpacked(bytes);
            let error = all.expect_err("a byte is missing");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
        }
    }
}
