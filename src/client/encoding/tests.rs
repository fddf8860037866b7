//! Each encoding cut anywhere, broken anywhere, and as a bomb.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const TEXT: &[u8] = "data: {\"choices\":[{\"delta\":{\"content\":\"Ein größerer Satz\"}}]}\n\n\
                     data: [DONE]\n\n"
    .as_bytes();

const NAMES: [&str; 5] = ["gzip", "deflate", "deflate (bare)", "br", "zstd"];

fn encode(name: &str, text: &[u8]) -> Vec<u8> {
    let level = Compression::new(9);
    let done = "writing to memory does not fail";
    match name {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(text).expect(done);
            encoder.finish().expect(done)
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(text).expect(done);
            encoder.finish().expect(done)
        }
        "deflate (bare)" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(text).expect(done);
            encoder.finish().expect(done)
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            encoder.write_all(text).expect(done);
            encoder.into_inner()
        }
        _ => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).expect(done);
            encoder.write_all(text).expect(done);
            encoder.finish().expect(done)
        }
    }
}

fn decoder(name: &str) -> Decoder {
    let header = name.split(' ').next().expect("a name has a first word");
    Decoder::named(header).expect("the encoding is known")
}

fn decode(name: &str, parts: &[&[u8]]) -> Result<Vec<u8>, EncodingError> {
    let mut decoder = decoder(name);
    let mut out = Vec::new();
    for part in parts {
        decoder.feed(part, &mut |piece| out.extend_from_slice(piece))?;
    }
    decoder.finish().map(|()| out)
}

#[test]
fn each_encoding_gives_the_same_text_wherever_it_is_cut() {
    for name in NAMES {
        let bytes = encode(name, TEXT);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(
                decode(name, &[head, tail]).as_deref(),
                Ok(TEXT),
                "{name} cut at {at}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(
            decode(name, &single).as_deref(),
            Ok(TEXT),
            "{name} in bytes"
        );
    }
}

#[test]
fn longer_texts_than_one_piece_come_out_whole() {
    let text: Vec<u8> = (0..100_000_u32)
        .flat_map(|number| (number % 977).to_le_bytes())
        .collect();
    for name in NAMES {
        let bytes = encode(name, &text);
        let reads: Vec<&[u8]> = bytes.chunks(1400).collect();
        let decoded = decode(name, &reads).expect("it is whole");
        assert!(decoded == text, "{name}");
        let decoded = decode(name, &[&bytes]).expect("it is whole");
        assert!(decoded == text, "{name} in one read");
    }
}

#[test]
fn an_event_comes_out_with_the_bytes_that_complete_it() {
    fn check<W: Write>(name: &str, mut encoder: W, written: fn(&mut W) -> Vec<u8>) {
        let mut decoder = decoder(name);
        for event in ["data: one\n\n", "data: two\n\n", "data: three\n\n"] {
            encoder.write_all(event.as_bytes()).expect("in memory");
            encoder.flush().expect("in memory");
            let mut out = Vec::new();
            decoder
                .feed(&written(&mut encoder), &mut |piece| {
                    out.extend_from_slice(piece);
                })
                .expect("it is valid");
            assert_eq!(out, event.as_bytes(), "{name}");
        }
    }
    let level = Compression::new(6);
    check("gzip", GzEncoder::new(Vec::new(), level), |encoder| {
        std::mem::take(encoder.get_mut())
    });
    check("deflate", ZlibEncoder::new(Vec::new(), level), |encoder| {
        std::mem::take(encoder.get_mut())
    });
    let bare = DeflateEncoder::new(Vec::new(), level);
    check("deflate (bare)", bare, |encoder| {
        std::mem::take(encoder.get_mut())
    });
    let brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    check("br", brotli, |encoder| std::mem::take(encoder.get_mut()));
    let zstd = zstd::stream::write::Encoder::new(Vec::new(), 3).expect("memory");
    check("zstd", zstd, |encoder| std::mem::take(encoder.get_mut()));
}

#[test]
fn lists_are_undone_from_the_last() {
    let bytes = encode("br", &encode("gzip", TEXT));
    assert_eq!(decode("gzip,br", &[&bytes]).as_deref(), Ok(TEXT));
    let mut decoder = Decoder::named("identity, GZIP , Br").expect("known");
    let mut out = Vec::new();
    for byte in bytes.chunks(1) {
        decoder
            .feed(byte, &mut |piece| out.extend_from_slice(piece))
            .expect("it is valid");
    }
    assert_eq!(out, TEXT);
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn unknown_encodings_and_long_lists_are_refused() {
    for header in ["compress", "gzip, lzma", "gzip,gzip,gzip,gzip", "gzip br"] {
        assert!(Decoder::named(header).is_none(), "{header}");
    }
    for header in ["x-gzip", "GZIP", "zstd", "gzip,gzip,gzip"] {
        assert!(Decoder::named(header).is_some(), "{header}");
    }
}

#[test]
fn two_members_of_gzip_are_one_text() {
    let mut bytes = encode("gzip", b"one ");
    bytes.extend(encode("gzip", b"two"));
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(
            decode("gzip", &[head, tail]).as_deref(),
            Ok(&b"one two"[..]),
            "cut at {at}"
        );
    }
}

#[test]
fn a_cut_body_is_told_from_a_whole_one() {
    for name in NAMES {
        let bytes = encode(name, TEXT);
        let cut = &bytes[..bytes.len() - 1];
        let expected = match name {
            "deflate (bare)" => "deflate",
            name => name,
        };
        assert_eq!(
            decode(name, &[cut]),
            Err(EncodingError::Cut(expected)),
            "{name}"
        );
        assert_eq!(decode(name, &[]), Ok(Vec::new()), "{name}: no body at all");
    }
}

#[test]
fn what_is_not_encoded_is_refused() {
    for name in ["gzip", "deflate", "zstd"] {
        let plain = decode(name, &[b"data: this is plain text\n\n"]);
        assert!(plain.is_err(), "{name}: {plain:?}");
    }
    // Nearly any bytes begin a valid brotli stream; they do not end one.
    assert!(decode("br", &[b"data: this is plain text\n\n"]).is_err());
}

/// All that comes out of `parts`, and how it ended.
fn all_of(name: &str, parts: &[&[u8]]) -> (Vec<u8>, Result<(), EncodingError>) {
    let mut decoder = decoder(name);
    let mut out = Vec::new();
    for part in parts {
        let fed = decoder.feed(part, &mut |piece| out.extend_from_slice(piece));
        if fed.is_err() {
            return (out, fed);
        }
    }
    (out, decoder.finish())
}

#[test]
fn what_came_before_damage_comes_out_wherever_the_reads_end() {
    for name in NAMES {
        let bytes = encode(name, TEXT);
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let single: Vec<&[u8]> = damaged.chunks(1).collect();
                let (whole, ended) = all_of(name, &[&damaged]);
                let (cut, ended_cut) = all_of(name, &single);
                assert_eq!(ended, ended_cut, "{name} at {at} by {flip:#x}");
                // Some damage goes unseen: bare deflate and brotli have no checksum.
                assert!(whole.len() < 1024 * 1024, "{name} at {at} by {flip:#x}");
                assert_eq!(whole, cut, "{name} at {at} by {flip:#x}");
            }
        }
    }
}

#[test]
fn bombs_stop_early_and_in_small_pieces() {
    let zeros = vec![0; 68 * 1024 * 1024];
    for name in NAMES {
        let bomb = encode(name, &zeros);
        let (mut total, mut largest) = (0, 0);
        let fed = decoder(name).feed(&bomb, &mut |piece| {
            total += piece.len();
            largest = largest.max(piece.len());
        });
        assert_eq!(fed, Err(EncodingError::TooLarge), "{name}");
        assert!(total <= 64 * 1024 * 1024, "{name}: {total} bytes");
        assert!(
            largest <= 2 * 1024 * 1024,
            "{name}: {largest} bytes at once"
        );
    }
    let nested = encode("gzip", &encode("gzip", &zeros));
    let fed = decoder("gzip,gzip").feed(&nested, &mut |_| {});
    assert_eq!(fed, Err(EncodingError::TooLarge));
}

#[test]
fn what_is_too_much_does_not_depend_on_the_reads() {
    for name in NAMES {
        for (mebibytes, allowed) in [(1, true), (2, false), (9, false)] {
            let dull = vec![b'\n'; mebibytes * 1024 * 1024];
            let bytes = encode(name, &dull);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            let odd: Vec<&[u8]> = bytes.chunks(777).collect();
            let (whole, ended) = all_of(name, &[&bytes]);
            assert!(whole.len() <= bytes.len().next_multiple_of(1024) * 1024);
            for parts in [single, odd] {
                let (cut, ended_cut) = all_of(name, &parts);
                assert_eq!((ended, whole.len()), (ended_cut, cut.len()), "{name}");
            }
            if bytes.len() <= 1024 {
                let ending = (ended, whole.len());
                let expected = if allowed {
                    Ok(())
                } else {
                    Err(EncodingError::TooLarge)
                };
                assert_eq!(ending, (expected, 1024 * 1024), "{name}");
            }
        }
    }
}

#[test]
fn a_checksum_that_does_not_match_is_damage() {
    for name in ["gzip", "deflate"] {
        let mut bytes = encode(name, TEXT);
        // The last bytes of gzip are the length, before it the sum; of zlib the sum.
        let place = bytes.len() - if name == "gzip" { 6 } else { 2 };
        bytes[place] ^= 1;
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            let damaged = decode(name, &[head, tail]).expect_err("the sum is wrong");
            assert!(damaged.is_damage(), "{name} cut at {at}: {damaged}");
        }
        let whole = encode(name, TEXT);
        let cut = decode(name, &[&whole[..whole.len() - 1]]).expect_err("it is cut");
        assert!(!cut.is_damage(), "{name}: {cut}");
    }
}
