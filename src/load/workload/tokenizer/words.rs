//! An estimate of a text's tokens, for servers of which no tokenizer is at hand.
//!
//! The formula: a word of ASCII letters is one token for each eight letters begun; a word of
//! other letters one for each three begun; digits one for each three begun; a character of
//! Chinese, Japanese or Korean one; a run of punctuation one for each two characters begun; any
//! other symbol two; a run of white space that holds a line break one, one of several spaces
//! one; a single space none, since it belongs to the word after it. An apostrophe between
//! letters begins the next token, as in `don't`.
//!
//! It is meant for comparing one server with itself. How far it is off is in `docs/measuring.md`.

use std::iter::Peekable;
use std::str::Chars;

use super::told;

/// Most English words up to this length are one token of today's vocabularies.
const LETTERS: usize = 8;
/// Letters of a token in other scripts.
const OTHER_LETTERS: usize = 3;
/// Today's tokenizers split numbers into groups of three digits.
const DIGITS: usize = 3;
/// Characters of a token of punctuation.
const MARKS: usize = 2;

/// What a character counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    OtherLetter,
    Ideograph,
    Digit,
    Mark,
    Space,
    Symbol,
}

/// About how many tokens `text` has.
pub(super) fn count(text: &str) -> u32 {
    let mut chars = text.chars().peekable();
    let mut tokens = 0;
    while let Some(first) = chars.next() {
        let class = class(first);
        tokens += match class {
            Class::Ideograph => 1,
            Class::Symbol => 2,
            Class::Space => space(first, &mut chars),
            Class::Letter | Class::OtherLetter => word(class, &mut chars),
            Class::Digit => run(class, &mut chars).div_ceil(DIGITS),
            Class::Mark if first == '\'' && chars.peek().is_some_and(char::is_ascii_alphabetic) => {
                0
            }
            Class::Mark => run(class, &mut chars).div_ceil(MARKS),
        };
    }
    told(tokens)
}

/// The length of a run of `class`, its first character, already taken, included.
fn run(class_of_run: Class, chars: &mut Peekable<Chars<'_>>) -> usize {
    let mut length = 1;
    while chars.next_if(|next| class(*next) == class_of_run).is_some() {
        length += 1;
    }
    length
}

/// A word, which is of other letters if one of its letters is.
fn word(first: Class, chars: &mut Peekable<Chars<'_>>) -> usize {
    let mut length = 1_usize;
    let mut is_plain = first == Class::Letter;
    while let Some(next) =
        chars.next_if(|next| matches!(class(*next), Class::Letter | Class::OtherLetter))
    {
        length += 1;
        is_plain &= next.is_ascii();
    }
    length.div_ceil(if is_plain { LETTERS } else { OTHER_LETTERS })
}

fn space(first: char, chars: &mut Peekable<Chars<'_>>) -> usize {
    let mut length = 1;
    let mut breaks = first == '\n';
    while let Some(next) = chars.next_if(|next| next.is_whitespace()) {
        length += 1;
        breaks |= next == '\n';
    }
    usize::from(breaks || length > 1)
}

fn class(c: char) -> Class {
    match c {
        _ if c.is_ascii_alphabetic() => Class::Letter,
        _ if c.is_ascii_digit() => Class::Digit,
        _ if c.is_whitespace() => Class::Space,
        _ if c.is_ascii() => Class::Mark,
        // Kana, Hangul, ideographs and their punctuation.
        '\u{1100}'..='\u{11ff}'
        | '\u{3000}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}'
        | '\u{20000}'..='\u{3ffff}' => Class::Ideograph,
        // Dashes, quotation marks, dots.
        '\u{2010}'..='\u{2027}' => Class::Mark,
        _ if c.is_alphanumeric() => Class::OtherLetter,
        _ => Class::Symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn words_are_estimated_by_their_letters() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("hello world", 2),
            ("Hello, world!", 4),
            ("don't", 2),
            ("internationalisation", 3),
            ("1234567", 3),
            ("one\n\ntwo", 3),
            ("    indented", 2),
            ("größer", 2),
            ("Привет", 2),
            ("你好世界", 4),
            ("こんにちは", 5),
            ("안녕", 2),
            ("…", 1),
            ("👍", 2),
            ("x == y;", 4),
        ] {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }
}
