//! Pictures and sounds are read again by readers written here.

use std::io::Read as _;

use super::*;

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn little(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// CRC-32 bit by bit, as the annex of the PNG specification has it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

fn file_of(media: &Media) -> Vec<u8> {
    let data = match media {
        Media::Image(url) => url
            .strip_prefix("data:image/png;base64,")
            .expect("it is a data URL"),
        Media::Audio { format, data } => {
            assert_eq!(*format, "wav");
            data
        }
        Media::Video(_) => panic!("no videos are made"),
    };
    STANDARD.decode(data).expect("it is base64")
}

/// Width, height and rows of a PNG file, every checksum held to what it covers.
fn read_png(file: &[u8]) -> (u32, u32, Vec<u8>) {
    assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
    let (mut rest, mut names, mut size, mut packed) = (&file[8..], Vec::new(), (0, 0), Vec::new());
    while !rest.is_empty() {
        let length = number(&rest[..4]) as usize;
        let (name, data) = (&rest[4..8], &rest[8..8 + length]);
        assert_eq!(
            number(&rest[8 + length..12 + length]),
            crc(&rest[4..8 + length])
        );
        match name {
            b"IHDR" => {
                size = (number(&data[..4]), number(&data[4..8]));
                assert_eq!(data[8..], [8, 2, 0, 0, 0], "8-bit RGB");
            }
            b"IDAT" => packed.extend(data),
            _ => assert_eq!(name, b"IEND"),
        }
        names.push(name.to_vec());
        rest = &rest[12 + length..];
    }
    assert_eq!(names, [b"IHDR", b"IDAT", b"IEND"]);
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(&packed[..])
        .read_to_end(&mut rows)
        .expect("it is packed as zlib does");
    (size.0, size.1, rows)
}

#[test]
fn pictures_are_png_files_of_their_size() {
    for (width, height) in [(1, 1), (17, 3), (512, 384), (3, 2_000)] {
        let picture = Picture { width, height };
        let (found_width, found_height, rows) = read_png(&file_of(&picture.image(5)));
        assert_eq!((found_width, found_height), (width, height));
        assert_eq!(rows.len(), (1 + width as usize * 3) * height as usize);
        for row in rows.chunks(1 + width as usize * 3) {
            assert_eq!(row[0], 0, "no filter");
        }
    }
}

#[test]
fn the_seed_decides_a_picture_from_its_first_row_on() {
    let picture = Picture {
        width: 64,
        height: 64,
    };
    assert_eq!(picture.image(1), picture.image(1));
    let rows = |seed| read_png(&file_of(&picture.image(seed))).2;
    let (one, other) = (rows(1), rows(2));
    assert_ne!(one[1..4], other[1..4], "the first pixel");
    let same = one.iter().zip(&other).filter(|(a, b)| a == b).count();
    assert!(same < one.len() / 10, "{same} of {}", one.len());
}

#[test]
fn pictures_pack_well() {
    let picture = Picture {
        width: 1_024,
        height: 1_024,
    };
    let bytes = file_of(&picture.image(1)).len();
    assert!(bytes < 1_024 * 1_024 * 3 / 4, "{bytes}");
}

#[test]
fn sounds_are_wav_files_of_their_length() {
    for (milliseconds, rate, samples) in [
        (1_000, 16_000, 16_000),
        (250, 44_100, 11_025),
        (1, 8_000, 8),
        (3_500, 8_000, 28_000),
    ] {
        let file = file_of(&Sound { milliseconds, rate }.audio(3));
        assert_eq!(file[..4], *b"RIFF");
        assert_eq!(little(&file[4..8]) as usize, file.len() - 8);
        assert_eq!(file[8..16], *b"WAVEfmt ");
        assert_eq!(little(&file[16..20]), 16);
        assert_eq!(little(&file[20..22]), 1, "PCM");
        assert_eq!(little(&file[22..24]), 1, "one channel");
        assert_eq!(little(&file[24..28]), rate);
        assert_eq!(little(&file[28..32]), rate * 2, "bytes per second");
        assert_eq!(little(&file[32..34]), 2, "bytes per sample");
        assert_eq!(little(&file[34..36]), 16, "bits per sample");
        assert_eq!(file[36..40], *b"data");
        assert_eq!(little(&file[40..44]), samples * 2);
        assert_eq!(file.len(), 44 + samples as usize * 2);
    }
}

#[test]
fn sounds_are_heard_and_differ() {
    let sound = Sound {
        milliseconds: 1_000,
        rate: 16_000,
    };
    assert_eq!(sound.audio(1), sound.audio(1));
    assert_ne!(sound.audio(1), sound.audio(2));
    let file = file_of(&sound.audio(1));
    let loudest = file[44..]
        .chunks(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs())
        .max();
    assert!((11_900..=12_000).contains(&loudest.expect("it has samples")));
}
