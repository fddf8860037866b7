//! Small tasks whose answer is known: arithmetic, words backwards, counting.
//!
//! A model that worked yesterday and fails these today has changed. The answer is one word or
//! number, and the question says so; how an answer is judged is not known here.

use rand::Rng;
use rand::rngs::StdRng;

use super::Measure;
use super::draws::Draws;
use super::prompt::Prompt;
use super::size::{Writer, Written};
use super::words::WORDS;
use crate::config::{KnownAnswers, TextStyle};
use crate::measurement::{KnownKind, Wanted};

/// Words of a list that is counted.
const LIST: (u32, u32) = (3, 9);
/// Letters of a word that is written backwards, at most: longer ones are hard for small models.
const MOST_LETTERS: usize = 6;

/// A task and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What is asked.
    pub kind: KnownKind,
    /// The whole prompt.
    pub question: String,
    /// What the answer has to be, in small letters.
    pub answer: String,
}

impl Known {
    /// A task of one of `kinds`, at least one, that `seed` decides.
    #[must_use]
    pub fn among(kinds: &[KnownKind], seed: u64) -> Self {
        let mut draws = Draws::of(seed);
        let kind = draws.pick(kinds);
        Self::of(kind, draws.word())
    }

    /// A task of that kind that `seed` decides.
    #[must_use]
    pub fn of(kind: KnownKind, seed: u64) -> Self {
        let mut draws = Draws::of(seed);
        let (question, answer) = match kind {
            KnownKind::Arithmetic => arithmetic(&mut draws),
            KnownKind::Backwards => backwards(&mut draws),
            KnownKind::Counting => counting(&mut draws),
        };
        Self {
            kind,
            question,
            answer,
        }
    }

    /// What it wants to hear.
    fn wanted(&self) -> Wanted {
        Wanted {
            kind: self.kind,
            answer: self.answer.as_str().into(),
        }
    }
}

/// Makes prompts of tasks.
#[derive(Debug)]
pub(super) struct KnownMaker {
    config: KnownAnswers,
    counter: Writer,
    seeded: StdRng,
}

impl KnownMaker {
    /// Tasks as `config` says, whose tokens are counted by `measure`.
    pub(super) fn new(config: &KnownAnswers, measure: Measure, seeded: StdRng) -> Self {
        Self {
            config: config.clone(),
            counter: Writer::new(TextStyle::Words, measure),
            seeded,
        }
    }

    /// The next task.
    pub(super) fn next(&mut self) -> Prompt {
        let known = Known::among(&self.config.kinds, self.seeded.next_u64());
        let wanted = Some(known.wanted());
        let Written { text, tokens } = self.counter.given(known.question);
        Prompt {
            text,
            wanted,
            input_tokens: tokens,
            output_tokens: Some(self.config.output_tokens),
            ..Prompt::default()
        }
    }
}

fn arithmetic(draws: &mut Draws) -> (String, String) {
    let (sign, one, other, result) = match draws.below(3) {
        0 => {
            let (one, other) = (draws.within(2, 50), draws.within(2, 49));
            ("plus", one, other, one + other)
        }
        1 => {
            let (result, other) = (draws.within(1, 49), draws.within(2, 50));
            ("minus", result + other, other, result)
        }
        _ => {
            let (one, other) = (draws.within(2, 9), draws.within(2, 9));
            ("times", one, other, one * other)
        }
    };
    let question = format!("What is {one} {sign} {other}? Answer with the number in digits only.");
    (question, result.to_string())
}

fn backwards(draws: &mut Draws) -> (String, String) {
    let short: Vec<&str> = WORDS
        .into_iter()
        .filter(|word| word.len() <= MOST_LETTERS)
        .collect();
    let word = draws.pick(&short);
    let question =
        format!("Write the word \"{word}\" backwards. Answer with the letters only, no spaces.");
    (question, word.chars().rev().collect())
}

fn counting(draws: &mut Draws) -> (String, String) {
    let count = draws.within(LIST.0, LIST.1);
    let words: Vec<&str> = (0..count).map(|_| draws.pick(&WORDS)).collect();
    let question = format!(
        "How many words are in this list: {}? Answer with the number in digits only.",
        words.join(", ")
    );
    (question, count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_right() {
        for seed in 0..2_000 {
            for kind in KnownKind::ALL {
                let known = Known::of(kind, seed);
                assert_eq!(known.answer, solved(&known.question), "{}", known.question);
            }
        }
    }

    /// The answer, read from the question.
    fn solved(question: &str) -> String {
        if let Some((list, _)) = question
            .strip_prefix("How many words are in this list: ")
            .and_then(|rest| rest.split_once('?'))
        {
            return (list.matches(", ").count() + 1).to_string();
        }
        if let Some(word) = question.split('"').nth(1) {
            let mut letters = word.as_bytes().to_vec();
            letters.reverse();
            return String::from_utf8(letters).expect("it was text");
        }
        let words: Vec<&str> = question.split([' ', '?']).collect();
        let number = |index: usize| words[index].parse::<i64>().expect("a number");
        let result = match words[3] {
            "plus" => number(2) + number(4),
            "minus" => number(2) - number(4),
            "times" => number(2) * number(4),
            other => panic!("{other}"),
        };
        assert!((1..=99).contains(&result), "{question}");
        result.to_string()
    }

    fn any(seed: u64) -> Known {
        Known::among(&KnownKind::ALL, seed)
    }

    #[test]
    fn the_seed_decides_a_task_and_all_kinds_come() {
        assert_eq!(any(1), any(1));
        for kind in KnownKind::ALL {
            let count = (0..300).filter(|seed| any(*seed).kind == kind);
            assert!((70..130).contains(&count.count()), "{kind:?}");
        }
    }
}
