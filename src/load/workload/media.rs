//! Pictures and sounds made on the fly: PNG and WAV, decided by a number.
//!
//! Another number gives another picture or sound, the same one the same; who keeps one to show
//! it again is not known here. Contents are patterns that are cheap to make and pack well, since
//! servers are measured by their size in pixels and seconds, and not by what is to be seen.

use std::f64::consts::TAU;
use std::io::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::draws::Draws;
use super::prompt::Media;

/// Edge of a square of one colour, in pixels.
const SQUARE: u32 = 16;
/// Bytes of a pixel: red, green, blue.
const PIXEL: usize = 3;
/// The first bytes of every PNG file.
const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
/// A tone lasts as long as this part of a second.
const TONES_PER_SECOND: u32 = 4;
/// Tones, in hertz: those of a voice.
const TONE: (u32, u32) = (110, 880);
/// How loud a tone is, of 32,767.
const LOUDNESS: f64 = 12_000.0;

/// The size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// In pixels, 1 to [`Picture::MOST_SIDE`].
    pub width: u32,
    /// In pixels, 1 to [`Picture::MOST_SIDE`].
    pub height: u32,
}

impl Picture {
    /// Pixels of a side, at most.
    pub const MOST_SIDE: u32 = 8_192;

    /// The picture that `seed` decides, as a data URL: squares of many colours that get lighter
    /// from left to right, with a few specks in each row.
    #[must_use]
    pub fn image(self, seed: u64) -> Media {
        let url = format!("data:image/png;base64,{}", STANDARD.encode(self.png(seed)));
        Media::Image(url.into())
    }

    /// The same as the bytes of a PNG file (W3C PNG, third edition): 8-bit RGB, not interlaced.
    fn png(self, seed: u64) -> Vec<u8> {
        let side = |length: u32| length.clamp(1, Self::MOST_SIDE);
        let (width, height) = (side(self.width), side(self.height));
        let mut header = Vec::with_capacity(13);
        header.extend(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        // Bits of a colour, RGB, and the only methods of packing and filtering; not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        let mut file = SIGNATURE.to_vec();
        chunk(&mut file, *b"IHDR", &header);
        chunk(&mut file, *b"IDAT", &pixels((width, height), seed));
        chunk(&mut file, *b"IEND", &[]);
        file
    }
}

/// A chunk of a PNG file: length, name, data, checksum of name and data.
fn chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("pictures are far smaller than 4 GB");
    file.extend(length.to_be_bytes());
    let mut sum = Crc::new();
    for part in [&name[..], data] {
        sum.update(part);
        file.extend(part);
    }
    file.extend(sum.sum().to_be_bytes());
}

/// The rows of a picture, each after the number of its filter, packed.
fn pixels((width, height): (u32, u32), seed: u64) -> Vec<u8> {
    let mut draws = Draws::of(seed);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let squares = width.div_ceil(SQUARE);
    let (mut colours, mut row) = (Vec::new(), Vec::new());
    for y in 0..height {
        if y.is_multiple_of(SQUARE) {
            colours = (0..squares).map(|_| draws.word().to_be_bytes()).collect();
        }
        row.clear();
        // No filter.
        row.push(0);
        for x in 0..width {
            let colour = &colours[(x / SQUARE) as usize];
            let lighter = byte(x * 64 / width);
            row.extend(
                colour[..PIXEL]
                    .iter()
                    .map(|part| part / 4 * 3 + lighter / 2),
            );
        }
        // One speck in 64 pixels.
        for _ in 0..width.div_ceil(64) {
            let at = 1 + draws.below(width) as usize * PIXEL;
            row[at..at + PIXEL].copy_from_slice(&draws.word().to_be_bytes()[..PIXEL]);
        }
        packed.write_all(&row).expect("memory takes all of it");
    }
    packed.finish().expect("memory takes all of it")
}

fn byte(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// The length and the rate of a sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sound {
    /// Milliseconds, 1 to [`Sound::MOST_MILLISECONDS`].
    pub milliseconds: u32,
    /// Samples per second, 8,000 to 48,000.
    pub rate: u32,
}

impl Sound {
    /// Milliseconds, at most: ten minutes.
    pub const MOST_MILLISECONDS: u32 = 600_000;

    /// The sound that `seed` decides: a tone, and another one every quarter of a second.
    #[must_use]
    pub fn audio(self, seed: u64) -> Media {
        Media::Audio {
            format: "wav",
            data: Arc::from(STANDARD.encode(self.wav(seed))),
        }
    }

    /// The same as the bytes of a WAV file: 16-bit PCM, one channel.
    fn wav(self, seed: u64) -> Vec<u8> {
        let rate = self.rate.clamp(8_000, 48_000);
        let length = self.milliseconds.clamp(1, Self::MOST_MILLISECONDS);
        let samples = u64::from(length) * u64::from(rate) / 1_000;
        let samples = u32::try_from(samples).expect("ten minutes at 48 kHz are 28.8 million");
        let bytes = samples * 2;
        let mut file = Vec::with_capacity(44 + bytes as usize);
        file.extend(b"RIFF");
        file.extend((36 + bytes).to_le_bytes());
        file.extend(b"WAVEfmt ");
        file.extend(16_u32.to_le_bytes());
        // PCM, one channel.
        file.extend([1, 0, 1, 0]);
        file.extend(rate.to_le_bytes());
        file.extend((rate * 2).to_le_bytes());
        // Bytes of a sample of all channels, bits of a sample.
        file.extend([2, 0, 16, 0]);
        file.extend(b"data");
        file.extend(bytes.to_le_bytes());
        let mut draws = Draws::of(seed);
        let (mut phase, mut step) = (0.0_f64, 0.0);
        for sample in 0..samples {
            if sample.is_multiple_of(rate / TONES_PER_SECOND) {
                step = f64::from(draws.within(TONE.0, TONE.1)) / f64::from(rate);
            }
            phase = (phase + step).fract();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is at most the loudness"
            )]
            let value = ((phase * TAU).sin() * LOUDNESS) as i16;
            file.extend(value.to_le_bytes());
        }
        file
    }
}

#[cfg(test)]
mod tests;
