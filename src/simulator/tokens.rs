//! How the simulated server turns text into tokens, and what it says itself.
//!
//! One token for each run of word characters and one for each run of other characters that are
//! not space, as the pre-tokenizer `Whitespace` of Hugging Face's `tokenizers` splits; what a
//! token is called is a hash of its text. So a text that begins alike has tokens that begin
//! alike, an answer that comes back as history has the tokens it was generated with, and nobody
//! needs a vocabulary. Not here: which texts make a prompt (that is `wire`).

use std::ops::Range;

/// What the model says, word by word.
const WORDS: [&str; 32] = [
    "the", "river", "keeps", "its", "own", "time", "and", "small", "birds", "wake", "before",
    "light", "when", "wind", "turns", "over", "quiet", "stones", "near", "old", "walls", "where",
    "rain", "once", "stood", "all", "night", "while", "lamps", "burned", "low", "again",
];

/// Puts the tokens of `text` behind those that are there.
pub(super) fn tokenize(text: &str, tokens: &mut Vec<u64>) {
    let mut rest = text;
    loop {
        rest = ascii(rest, tokens).trim_start();
        let Some(first) = rest.chars().next() else {
            return;
        };
        let kind = Kind::of(first);
        let end = rest.find(|c| Kind::of(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        tokens.push(token(run));
        rest = after;
    }
}

/// The same as far as runs end before the first character that is not ASCII, by bytes, since
/// prompts are long. What is left begins with a run, or with space.
fn ascii<'t>(text: &'t str, tokens: &mut Vec<u64>) -> &'t str {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let kind = KINDS[usize::from(first)];
        let more = bytes[at + 1..].iter();
        let same = more.take_while(|byte| KINDS[usize::from(**byte)] == kind);
        let end = at + 1 + same.count();
        match kind {
            Some(Kind::Space) => {}
            Some(_) if bytes.get(end).is_none_or(u8::is_ascii) => tokens.push(run(bytes, at..end)),
            _ => break,
        }
        at = end;
    }
    &text[at..]
}

/// The token that stands for the whole of `run`.
pub(super) fn token(run: &str) -> u64 {
    self::run(run.as_bytes(), 0..run.len())
}

/// The token that stands for `range` of `bytes`.
fn run(bytes: &[u8], range: Range<usize>) -> u64 {
    let mut hash = range.len() as u64;
    let mut at = range.start;
    while at < range.end {
        let left = range.end - at;
        // Eight bytes at once, also where fewer are left, if the text goes on.
        let eight = if let Some(eight) = bytes[at..].first_chunk::<8>() {
            u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * left.min(8)))
        } else {
            let mut eight = [0; 8];
            eight[..left].copy_from_slice(&bytes[at..range.end]);
            u64::from_le_bytes(eight)
        };
        hash = mix(hash ^ eight);
        at += 8;
    }
    hash
}

/// Puts `count` tokens that stand for `thing` behind those that are there: the marks of a chat
/// template, or a picture.
pub(super) fn stand_in(thing: &str, count: u32, tokens: &mut Vec<u64>) {
    let named = mix(token(thing));
    tokens.extend((0..count).map(|place| mix(named ^ u64::from(place))));
}

/// The word that is generated as token `index` of an answer.
pub(super) fn word(seed: u64, index: u32) -> &'static str {
    let choice = mix(seed ^ mix(u64::from(index))) % 32;
    WORDS[usize::try_from(choice).unwrap_or(0)]
}

/// What a character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        if c.is_whitespace() {
            Self::Space
        } else if c.is_alphanumeric() || c == '_' {
            Self::Word
        } else {
            Self::Other
        }
    }
}

/// What each ASCII byte belongs to; `None` for the others, which are parts of characters.
const KINDS: [Option<Kind>; 256] = {
    let mut kinds = [None; 256];
    let mut byte = 0;
    while byte < 128 {
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        let kind = match byte as u8 {
            b'\t'..=b'\r' | b' ' => Kind::Space,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => Kind::Word,
            _ => Kind::Other,
        };
        kinds[byte] = Some(kind);
        byte += 1;
    }
    kinds
};

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014): every input bit moves every output
/// bit. A stateful generator would make a draw depend on the order of events.
pub(super) const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<u64> {
        let mut tokens = Vec::new();
        tokenize(text, &mut tokens);
        tokens
    }

    #[test]
    fn words_and_runs_of_other_characters_are_tokens() {
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" \n\t ", &[]),
            ("one two  three\n", &["one", "two", "three"]),
            ("don't stop...", &["don", "'", "t", "stop", "..."]),
            ("a_1+=b2", &["a_1", "+=", "b2"]),
            ("!?x", &["!?", "x"]),
            ("Grüße, 世界。", &["Grüße", ",", "世界", "。"]),
            ("x\u{a0}y", &["x", "y"]),
        ];
        for (text, runs) in cases {
            let expected: Vec<u64> = runs.iter().map(|run| token(run)).collect();
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn bytes_are_of_the_kinds_that_characters_are() {
        for byte in 0..=127_u8 {
            assert_eq!(KINDS[usize::from(byte)], Some(Kind::of(char::from(byte))));
        }
        assert!(KINDS[128..].iter().all(Option::is_none));
    }

    #[test]
    fn a_run_is_the_same_token_wherever_it_stands() {
        for word in [
            "a",
            "seven77",
            "eight888",
            "nine99999",
            "sixteen161616161",
            "Größe",
            "aé",
        ] {
            for (before, after) in [("", ""), (" ", " "), ("", " and more of it"), ("é ", " é")] {
                let text = format!("{before}{word}{after}");
                let place = usize::from(before.len() > 1);
                assert_eq!(tokens(&text)[place], token(word), "{text:?}");
            }
        }
    }

    #[test]
    fn tokens_are_equal_where_their_texts_are_and_only_there() {
        let all = tokens("the The them th e t the\u{0} theory theorem theorems");
        let mut different = all.clone();
        different.sort_unstable();
        different.dedup();
        // Ten runs of word characters and one of a control character; `the` is there twice.
        assert_eq!((all.len(), different.len()), (11, 10));
        assert_eq!(
            tokens("the river keeps")[..2],
            tokens("the  river\nslept")[..2]
        );
    }

    #[test]
    fn an_answer_that_comes_back_has_the_tokens_it_was_generated_with() {
        let words: Vec<&str> = (0..40).map(|index| word(7, index)).collect();
        let generated: Vec<u64> = words.iter().map(|word| token(word)).collect();
        assert_eq!(tokens(&words.join(" ")), generated);
    }

    #[test]
    fn a_thing_that_stands_in_is_known_by_its_name() {
        let stands = |thing: &str, count| {
            let mut tokens = Vec::new();
            stand_in(thing, count, &mut tokens);
            tokens
        };
        let cat = stands("data:cat", 3);
        assert_eq!(cat.len(), 3);
        assert_ne!(cat[0], cat[1]);
        assert_eq!(stands("data:cat", 2), cat[..2]);
        assert_ne!(stands("data:dog", 3)[0], cat[0]);
        assert!(stands("user", 0).is_empty());
    }
}
