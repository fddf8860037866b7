//! What a count is and is not, for each kind of tokenizer.

use super::*;

/// Bytes, `th`, `the`, and runs of two and four spaces; its post-processor adds a token at the
/// start, and it cuts and pads what it is given.
const TINY: &[u8] = include_bytes!("../../../../tests/fixtures/tokenizer/tiny.json");

fn tiny() -> Tokenizer {
    Tokenizer::json(TINY).expect("the fixture is valid")
}

fn counts(tokenizer: &Tokenizer, text: &str) -> u32 {
    tokenizer.count(text).expect("it can be counted")
}

/// A file of ranks: every byte, then these tokens.
fn ranks(tokens: &[&str]) -> String {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let tokens = tokens.iter().map(|token| token.as_bytes().to_vec());
    let lines: Vec<String> = bytes
        .chain(tokens)
        .enumerate()
        .map(|(rank, token)| format!("{} {rank}\n", base64(&token)))
        .collect();
    lines.concat()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let shown = if digit > group.len() {
                '='
            } else {
                char::from(DIGITS[value as usize])
            };
            text.push(shown);
        }
    }
    text
}

fn tiktoken(tokens: &[&str], pattern: Pattern) -> Tokenizer {
    Tokenizer::tiktoken(ranks(tokens).as_bytes(), pattern).expect("the ranks are valid")
}

#[test]
fn bos_is_not_counted() {
    // the + space, c, a, t; with the token at the start it would be 6.
    assert_eq!(counts(&tiny(), "the cat"), 5);
}

#[test]
fn chunk_counts_are_not_summed() {
    let tokenizer = tiny();
    let chunks = ["t", "he c", "at"];
    let pieces: u32 = chunks.iter().map(|chunk| counts(&tokenizer, chunk)).sum();
    assert_eq!(pieces, 7, "t; h, e, space, c; a, t");
    assert_eq!(counts(&tokenizer, &chunks.concat()), 5);
}

#[test]
fn many_spaces_are_counted_as_the_tokenizer_says() {
    let tokenizer = tiny();
    assert_eq!(counts(&tokenizer, &" ".repeat(100)), 25, "four to a token");
    assert_eq!(
        counts(&tokenizer, "        a"),
        5,
        "seven spaces are 4 + 2 + 1, the eighth belongs to the word"
    );
    let wide = tiktoken(&["  ", "    "], Pattern::Cl100k);
    assert_eq!(counts(&wide, &" ".repeat(100)), 25);
}

#[test]
fn output_count_has_no_plus_one() {
    for tokenizer in [
        tiny(),
        tiktoken(&["th", "the"], Pattern::O200k),
        Tokenizer::words(),
    ] {
        assert_eq!(counts(&tokenizer, "the"), 1, "{tokenizer:?}");
        assert_eq!(counts(&tokenizer, ""), 0, "{tokenizer:?}");
    }
}

#[test]
fn a_long_text_is_neither_cut_nor_a_short_one_padded() {
    assert_eq!(counts(&tiny(), "the the the the the the"), 11);
}

#[test]
fn the_source_tells_a_count_from_an_estimate() {
    assert_eq!(tiny().source(), TokenSource::Tokenizer);
    assert_eq!(
        tiktoken(&[], Pattern::R50k).source(),
        TokenSource::Tokenizer
    );
    assert_eq!(Tokenizer::words().source(), TokenSource::Words);
}

#[test]
fn tokenizers_are_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&tiny());
}

#[test]
fn each_pattern_splits_as_its_models_do() {
    // No token is longer than a byte but these, so that a token shows where a piece ends.
    let tokens = [
        "12", "123", "1234", " a", "'S", "'s", "\n\n", "eH", "HE", "he", "HEh",
    ];
    for (text, r50k, cl100k, o200k) in [
        // r50k keeps a number whole; the others cut it after three digits.
        ("1234", 1, 2, 2),
        ("b a", 2, 2, 2),
        // Only r50k leaves a capital ending to the letters: ' S.
        ("b'S", 3, 2, 2),
        ("b's", 2, 2, 2),
        ("b\n\nb", 4, 3, 3),
        ("HEh", 1, 1, 1),
        // o200k alone cuts before capitals, so that e and H are not joined.
        ("heHE", 3, 3, 2),
        ("日本", 6, 6, 6),
    ] {
        for (pattern, expected) in [
            (Pattern::R50k, r50k),
            (Pattern::Cl100k, cl100k),
            (Pattern::O200k, o200k),
        ] {
            let tokenizer = tiktoken(&tokens, pattern);
            assert_eq!(counts(&tokenizer, text), expected, "{text:?} {pattern:?}");
        }
    }
}

#[test]
fn the_pattern_follows_the_name_of_the_file() {
    for (name, pattern) in [
        ("o200k_base.tiktoken", Pattern::O200k),
        ("O200K_harmony.tiktoken", Pattern::O200k),
        ("cl100k_base.tiktoken", Pattern::Cl100k),
        ("p50k_base.tiktoken", Pattern::R50k),
        ("r50k_base.tiktoken", Pattern::R50k),
        ("tokenizer.model", Pattern::Cl100k),
    ] {
        assert_eq!(Pattern::of_file(name), pattern, "{name}");
    }
}

#[test]
fn a_wrong_line_is_named() {
    let good = ranks(&[]);
    for (added, message) in [
        ("YWI= 256\nYWI= 257", "line 258: a token that came before, "),
        ("YWI=", "line 257: `YWI=`, "),
        ("YWI= x", "line 257: the rank is `x`, "),
        ("YWI= -1", "line 257: the rank is `-1`, "),
        ("YWI 256", "line 257: `YWI` is no base64, "),
        ("Y!I= 256", "line 257: `Y!I=` is no base64, "),
        ("==== 256", "line 257: `====` is no base64, "),
        ("YWI= 256 7", "line 257: `YWI= 256 7`, "),
        (r#"{"model": 1}"#, "line 257: `{\"model\":` is no base64, "),
    ] {
        let file = format!("{good}{added}\n");
        let error = Tokenizer::tiktoken(file.as_bytes(), Pattern::Cl100k).expect_err("wrong");
        let wanted = "wanted a token in base64, a space and its rank";
        assert_eq!(error.to_string(), format!("{message}{wanted}"), "{added}");
    }
    let (_, short) = good.split_once('\n').expect("it has many lines");
    let error = Tokenizer::tiktoken(short.as_bytes(), Pattern::Cl100k).expect_err("wrong");
    assert_eq!(
        error.to_string(),
        "no rank for the byte 0x00, wanted one for each of the 256"
    );
}

#[test]
fn what_is_no_tokenizer_json_is_refused() {
    for bytes in [&b""[..], b"{}", b"[]", b"not JSON", b"\xff\xfe"] {
        let error = Tokenizer::json(bytes).expect_err("wrong");
        assert!(
            error.to_string().starts_with("no valid `tokenizer.json`: "),
            "{error}"
        );
    }
}
