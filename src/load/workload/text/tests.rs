//! What the units of every style are like, and that tokenizers split texts where units end.

use std::collections::HashSet;

use super::super::tokenizer::{Pattern, Tokenizer};
use super::*;

fn units(style: TextStyle, seed: u64, count: usize) -> Vec<Unit> {
    let mut units = Units::new(style, Draws::of(seed));
    (0..count).map(|_| units.next()).collect()
}

fn text(units: &[Unit]) -> String {
    let parts = units.iter().flat_map(|unit| [unit.before, unit.text]);
    parts.collect()
}

#[test]
fn every_style_is_a_style_of_its_own() {
    for (style, marks) in [
        (TextStyle::Words, &[][..]),
        (TextStyle::Prose, &[". The ", ".\n\n", ", and "][..]),
        (
            TextStyle::Code,
            &["function ", ";\n    let ", " {\n        ", "}\n\n#"][..],
        ),
        (TextStyle::Dialogue, &[":", "?\n", ".\n\n"][..]),
    ] {
        let text = text(&units(style, 1, 20_000));
        for mark in marks {
            assert!(text.contains(mark), "{style:?}: {mark:?}");
        }
        let vowels = ["a a", "a e", "a i", "a o", "a u"];
        for vowel in vowels {
            assert!(
                !text.contains(&format!(" {vowel}")) || style == TextStyle::Words,
                "{vowel}"
            );
        }
        assert!(
            !text.contains("  .") && !text.contains("\n The"),
            "{style:?}"
        );
    }
}

#[test]
fn texts_begin_with_a_word_and_the_seed_decides_them() {
    for style in TextStyle::ALL {
        let one = units(style, 1, 3_000);
        assert_eq!(one[0].before, " ", "{style:?}");
        assert_eq!(one, units(style, 1, 3_000));
        assert_ne!(one, units(style, 2, 3_000));
    }
}

/// A tokenizer to which each of these is a token, beside all bytes.
fn knowing(units: &[Unit], pattern: Pattern) -> Tokenizer {
    use base64::Engine as _;
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let known: HashSet<Vec<u8>> = units
        .iter()
        .map(|unit| text(&[*unit]).into_bytes())
        .collect();
    let long = known.into_iter().filter(|token| token.len() > 1);
    let lines = bytes.chain(long).enumerate().map(|(rank, token)| {
        let token = base64::engine::general_purpose::STANDARD.encode(token);
        format!("{token} {rank}\n")
    });
    Tokenizer::tiktoken(lines.collect::<String>().as_bytes(), pattern).expect("they are valid")
}

#[test]
fn tokenizers_split_a_text_where_its_units_end() {
    for style in TextStyle::ALL {
        let units = units(style, 7, 20_000);
        for pattern in [Pattern::Cl100k, Pattern::O200k] {
            let found = knowing(&units, pattern).count(&text(&units));
            assert_eq!(found, Ok(20_000), "{style:?} {pattern:?}");
        }
    }
}
