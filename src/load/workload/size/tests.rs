//! Texts have exactly the tokens asked for, by tokenizers that split words in different ways.

use base64::Engine as _;

use super::super::tokenizer::Pattern;
use super::*;

/// Some letters and `the`; what it does not know is no token at all.
const TINY: &[u8] = include_bytes!("../../../../tests/fixtures/tokenizer/tiny.json");

/// Every byte, and every `of`-th of our plain words after a space.
fn ranks(of: usize) -> Tokenizer {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let words = WORDS.iter().skip(of - 1).step_by(of);
    let words = words.map(|word| format!(" {word}").into_bytes());
    let lines = bytes.chain(words).enumerate().map(|(rank, token)| {
        let token = base64::engine::general_purpose::STANDARD.encode(token);
        format!("{token} {rank}\n")
    });
    let lines: String = lines.collect();
    Tokenizer::tiktoken(lines.as_bytes(), Pattern::Cl100k).expect("the ranks are valid")
}

fn tokenizers() -> [(&'static str, Arc<Tokenizer>); 4] {
    let tiny = Tokenizer::json(TINY).expect("the fixture is valid");
    [
        ("tiny", Arc::new(tiny)),
        ("every word", Arc::new(ranks(1))),
        ("a third", Arc::new(ranks(3))),
        ("estimate", Arc::new(Tokenizer::words())),
    ]
}

fn exact(style: TextStyle, tokenizer: &Arc<Tokenizer>) -> Writer {
    Writer::new(style, Measure::Exact(Arc::clone(tokenizer)))
}

fn by_units(style: TextStyle, tokens_per_unit: f64) -> Writer {
    Writer::new(style, Measure::Units { tokens_per_unit })
}

const fn seeds(text: u64) -> Seeds {
    Seeds { text, fresh: None }
}

const fn cold(text: u64, fresh: u64) -> Seeds {
    Seeds {
        text,
        fresh: Some(fresh),
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn texts_have_exactly_the_tokens_asked_for() {
    for (name, tokenizer) in tokenizers() {
        for style in TextStyle::ALL {
            let mut writer = exact(style, &tokenizer);
            for tokens in (1..16).chain([16, 128, 1_024, 8_192]) {
                let case = format!("{name} {style:?} {tokens}");
                for seeds in [seeds(u64::from(tokens)), cold(1, u64::from(tokens))] {
                    let written = writer.text(tokens, seeds);
                    assert_eq!(written.tokens, Some(tokens), "{case}");
                    assert_eq!(tokenizer.count(&written.text), Ok(tokens), "{case}");
                }
            }
        }
    }
}

#[test]
fn texts_of_plain_words_are_counted_once() {
    // Every word is a token but the first, which has no space before it.
    let written = exact(TextStyle::Words, &Arc::new(ranks(1))).text(1_024, seeds(3));
    let found = words(&written.text).len();
    assert!((1_015..=1_024).contains(&found), "{found}");
}

#[test]
fn cold_texts_differ_from_the_first_words_on() {
    for (name, tokenizer) in tokenizers() {
        for style in TextStyle::ALL {
            let mut writer = exact(style, &tokenizer);
            let beginnings: std::collections::HashSet<String> = (0..300)
                .map(|fresh| writer.text(128, cold(1, fresh)).text)
                .map(|text| words(&text)[..3].join(" "))
                .collect();
            assert_eq!(beginnings.len(), 300, "{name} {style:?}");
        }
    }
    let mut writer = by_units(TextStyle::Words, 1.0);
    let (one, other) = (writer.text(40, cold(1, 10)), writer.text(40, cold(1, 11)));
    assert_ne!(words(&one.text)[..6], words(&other.text)[..6]);
    assert_eq!(words(&one.text)[6..], words(&other.text)[6..], "the seed's");
}

#[test]
fn a_text_goes_on_where_another_ends() {
    for (name, tokenizer) in tokenizers() {
        for style in TextStyle::ALL {
            let mut writer = exact(style, &tokenizer);
            let before = writer.text(100, seeds(1));
            for tokens in [101, 116, 1_000] {
                let after = writer.continue_text(&before, tokens, cold(2, 3));
                assert_eq!(after.tokens, Some(tokens), "{name} {style:?}");
                let whole = format!("{}{}", before.text, after.text);
                assert_eq!(tokenizer.count(&whole), Ok(tokens), "{name} {style:?}");
            }
            let nothing = writer.continue_text(&before, 60, seeds(2));
            assert_eq!(nothing.text, "");
            assert_eq!(nothing.tokens, Some(100), "it is longer already");
        }
    }
}

#[test]
fn a_text_of_others_is_measured_and_gone_on_from() {
    let tokenizer = Arc::new(ranks(1));
    let mut writer = exact(TextStyle::Prose, &tokenizer);
    let given = writer.given("Be brief.\n".to_owned());
    assert_eq!(given.tokens, Some(10), "byte by byte");
    let after = writer.continue_text(&given, 200, seeds(1));
    let whole = format!("{}{}", given.text, after.text);
    assert_eq!(tokenizer.count(&whole), Ok(200));
    let guess = by_units(TextStyle::Prose, 1.0).given("Be brief.\n".to_owned());
    assert_eq!(guess.tokens, Some(4), "Be, brief, the dot, the line break");
}

#[test]
fn blocks_add_up_in_any_order() {
    for (name, tokenizer) in tokenizers() {
        for style in TextStyle::ALL {
            let mut writer = exact(style, &tokenizer);
            for tokens in [16, 512] {
                let blocks: Vec<Written> = (0..20)
                    .map(|id| writer.block((7, id * 3 % 20), tokens))
                    .collect();
                let case = format!("{name} {style:?} {tokens}");
                for block in &blocks {
                    assert_eq!(block.tokens, Some(tokens), "{case}");
                }
                let sum: u32 = blocks.iter().filter_map(|block| block.tokens).sum();
                let whole: String = blocks.iter().map(|block| block.text.as_str()).collect();
                assert_eq!(tokenizer.count(&whole), Ok(sum), "{case}");
                assert!(whole.starts_with(' '), "{case}");
            }
        }
    }
}

#[test]
fn a_block_is_the_same_whenever_it_is_asked_for() {
    let tokenizer = Arc::new(ranks(1));
    let block = |id| exact(TextStyle::Prose, &tokenizer).block(id, 16);
    let mut writer = exact(TextStyle::Prose, &tokenizer);
    let mut seen = std::collections::HashSet::new();
    for scope in 0..5 {
        for id in (0..400).rev() {
            let found = writer.block((scope, id), 16);
            assert!(seen.insert(found.text.clone()), "{scope} {id}");
            if id % 50 == 0 {
                assert_eq!(found, block((scope, id)));
            }
        }
    }
}

#[test]
fn what_cannot_be_reached_is_said() {
    // No word is one token, and a block takes nothing but words.
    let bytes = Arc::new(ranks(1_000));
    let mut writer = exact(TextStyle::Words, &bytes);
    let block = writer.block((1, 1), 2);
    assert_eq!((block.text.as_str(), block.tokens), ("", Some(0)));
    for tokens in [3, 16, 50] {
        let block = writer.block((1, 2), tokens);
        let found = bytes.count(&format!("the{}", block.text)).expect("bytes");
        assert_eq!(block.tokens, Some(found - 3), "what it is is said");
        assert!(found - 3 <= tokens);
    }
    // A text may end with single letters.
    assert_eq!(writer.text(50, seeds(1)).tokens, Some(50));
}

#[test]
fn without_a_tokenizer_units_are_counted() {
    for (tokens_per_unit, tokens, units, reached) in [
        (1.0, 128, 128, 128),
        (1.25, 128, 102, 128),
        (2.0, 5, 3, 6),
        (0.5, 8, 16, 8),
        (4.0, 1, 1, 4),
    ] {
        let mut writer = by_units(TextStyle::Words, tokens_per_unit);
        let written = writer.text(tokens, seeds(1));
        assert_eq!(words(&written.text).len(), units, "{tokens_per_unit}");
        assert_eq!(written.tokens, Some(reached), "{tokens_per_unit}");
    }
    let mut writer = by_units(TextStyle::Words, 1.0);
    let before = writer.text(30, seeds(1));
    let after = writer.continue_text(&before, 50, seeds(2));
    assert_eq!(after.tokens, Some(50));
    let both = format!("{}{}", before.text, after.text);
    assert_eq!(words(&both).len(), 50);
    for style in TextStyle::ALL {
        let block = by_units(style, 1.0).block((1, 2), 64);
        assert_eq!(block.tokens, Some(64));
        assert!(block.text.starts_with(' '), "{style:?}");
        assert!(
            block.text.ends_with(|c: char| c.is_ascii_lowercase()),
            "{style:?}"
        );
    }
}

#[test]
fn the_seed_decides_every_text_on_any_number_of_threads() {
    let tokenizer = Arc::new(ranks(2));
    let texts = |style| -> Vec<String> {
        let mut writer = exact(style, &tokenizer);
        (0..40)
            .map(|seed| writer.text(200, cold(seed, seed + 1)).text)
            .collect()
    };
    for style in TextStyle::ALL {
        let alone = texts(style);
        // Nor do the texts that were written before decide it.
        let last = exact(style, &tokenizer).text(200, cold(39, 40)).text;
        assert_eq!(alone[39], last, "{style:?}");
        for threads in [2, 7] {
            let found: Vec<Vec<String>> = std::thread::scope(|scope| {
                let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| texts(style))).collect();
                let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
                joined.map(|texts| texts.expect("no panic")).collect()
            });
            for texts in found {
                assert_eq!(texts, alone, "{style:?}");
            }
        }
    }
}
