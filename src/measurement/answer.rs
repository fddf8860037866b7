//! Whether the answer to a question of known answer is right.
//!
//! What counts is what the server said outside its reasoning. Capitals, punctuation and the text
//! around are no matter: a number is right if it is the last one that was said, a word if it was
//! said as a word of its own. Only answers of requests that ended well are judged.

use std::sync::Arc;

use super::{Outcome, RequestRecord};

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownKind {
    /// A sum, a difference or a product of small numbers; never negative.
    Arithmetic,
    /// A short word backwards.
    Backwards,
    /// How many words there are.
    Counting,
}

impl KnownKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Arithmetic, Self::Backwards, Self::Counting];

    /// The name in configuration, records and spans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Backwards => "backwards",
            Self::Counting => "counting",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a question wants to hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The kind of question.
    pub kind: KnownKind,
    /// The answer: a whole number, or a word in small letters.
    pub answer: Arc<str>,
}

/// What an answer was worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerResult {
    /// It is the one that was wanted.
    Right,
    /// It is another one, or there is none outside the reasoning.
    Wrong,
    /// The request did not end well.
    Unjudged,
}

impl AnswerResult {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Right, Self::Wrong, Self::Unjudged];

    /// The name in records, spans and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Unjudged => "unjudged",
        }
    }
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it wants to hear.
    pub wanted: Wanted,
    /// What the answer was worth.
    pub result: AnswerResult,
}

impl Wanted {
    /// A question that nobody has answered.
    #[must_use]
    pub const fn unjudged(self) -> Answer {
        Answer {
            wanted: self,
            result: AnswerResult::Unjudged,
        }
    }

    /// Whether it is the answer in `said`.
    #[must_use]
    pub fn is_in(&self, said: &str) -> bool {
        match self.kind {
            KnownKind::Arithmetic | KnownKind::Counting => {
                last_number(said).is_some_and(|number| number == *self.answer)
            }
            KnownKind::Backwards => said
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word.to_lowercase() == *self.answer),
        }
    }
}

impl Answer {
    /// What `reply` is worth, by a request of that outcome; `None`: nothing was kept of it.
    fn judge(&mut self, outcome: Outcome, reply: Option<&str>) {
        if let (Outcome::Ok, Some(reply)) = (outcome, reply) {
            self.result = if self.wanted.is_in(reply) {
                AnswerResult::Right
            } else {
                AnswerResult::Wrong
            };
        }
    }
}

impl RequestRecord {
    /// Judges the answer, if there is a question and the request ended well: the reply is the one
    /// that is kept in the record.
    pub fn judge(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.judge(self.outcome, self.reply.as_deref());
        }
    }
}

/// The last number of `said` in its plain form: `-7`, `1024`, `0.5`; `None` if there is none.
/// Digits beside a letter are a name, as in `x7` or `7B`.
fn last_number(said: &str) -> Option<String> {
    let chars: Vec<char> = said.chars().collect();
    let mut end = chars.len();
    loop {
        let last = chars[..end].iter().rposition(char::is_ascii_digit)?;
        let first = first_of(&chars, last);
        let is_letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
        if !is_letter(last + 1) && !first.checked_sub(1).is_some_and(is_letter) {
            return Some(plain_number(&chars, (first, last)));
        }
        end = first;
    }
}

/// Where the number begins that ends at `last`: marks between digits are part of it.
fn first_of(chars: &[char], last: usize) -> usize {
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_inside = |at: &usize| {
        let is_mark = matches!(chars[*at], '.' | ',') && is_digit(at + 1);
        is_digit(*at) || is_mark && at.checked_sub(1).is_some_and(is_digit)
    };
    let inside = (0..=last).rev().take_while(is_inside);
    inside.last().unwrap_or(last)
}

fn plain_number(chars: &[char], (first, last): (usize, usize)) -> String {
    let before = |back: usize| first.checked_sub(back).map(|at| chars[at]);
    let is_minus = matches!(before(1), Some('-' | '−'));
    let is_negative = is_minus && !before(2).is_some_and(char::is_alphanumeric);
    let digits: String = chars[first..=last].iter().filter(|c| **c != ',').collect();
    let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let part = part.trim_end_matches('0');
    let sign = if is_negative { "-" } else { "" };
    if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(kind: KnownKind, answer: &str, said: &str) -> bool {
        let wanted = Wanted {
            kind,
            answer: answer.into(),
        };
        wanted.is_in(said)
    }

    #[test]
    fn a_number_is_right_if_it_is_the_last_one() {
        for said in [
            "42",
            " 42.\n",
            "**42**",
            "$\\boxed{42}$",
            "The answer is 42!",
            "17 plus 25 is 42.",
            "17 + 25 = 42",
            "42 words",
            "42.0",
            "042",
            "20-42",
            "a list - 42",
            "Zweiundvierzig (42)",
            "42 (by Qwen3, 7B)",
        ] {
            assert!(is_right(KnownKind::Arithmetic, "42", said), "{said}");
        }
        for said in [
            "",
            "forty-two",
            "42 or 43",
            "-42",
            "is −42",
            "4 2",
            "420",
            "142",
            "42.5",
            "4,200",
            "x42",
            "42B",
            "half of 42 is 21",
        ] {
            assert!(!is_right(KnownKind::Arithmetic, "42", said), "{said}");
        }
        assert!(is_right(KnownKind::Counting, "1024", "1,024"));
        assert!(is_right(KnownKind::Counting, "0", "00"));
    }

    #[test]
    fn a_word_is_right_wherever_it_stands_alone() {
        for said in [
            "revir",
            "Revir.",
            "\"REVIR\"",
            "river backwards is **revir**",
        ] {
            assert!(is_right(KnownKind::Backwards, "revir", said), "{said}");
        }
        for said in ["", "river", "revirs", "r e v i r", "revir7"] {
            assert!(!is_right(KnownKind::Backwards, "revir", said), "{said}");
        }
    }

    #[test]
    fn only_what_ended_well_is_judged() {
        let judged = |outcome, reply: Option<&str>| {
            let wanted = Wanted {
                kind: KnownKind::Counting,
                answer: "7".into(),
            };
            let mut answer = wanted.unjudged();
            answer.judge(outcome, reply);
            answer.result
        };
        for (outcome, reply, expected) in [
            (Outcome::Ok, Some("7"), AnswerResult::Right),
            (Outcome::Ok, Some("8"), AnswerResult::Wrong),
            (Outcome::Ok, Some(""), AnswerResult::Wrong),
            (Outcome::Ok, None, AnswerResult::Unjudged),
            (Outcome::StreamCut, Some("7"), AnswerResult::Unjudged),
            (Outcome::Refused, None, AnswerResult::Unjudged),
        ] {
            assert_eq!(judged(outcome, reply), expected, "{outcome:?} {reply:?}");
        }
    }
}
