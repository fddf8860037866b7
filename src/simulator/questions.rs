//! Small questions that the simulated model can answer: a sum, a word backwards, a count.
//!
//! It reads them from the text, as a model does; who asks such questions is not known here. An
//! answer is one token.

/// A longer text is no small question.
const LONGEST: usize = 2048;

/// The answer to the question in `text`, if it is one that the model knows.
pub(super) fn answer(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return None;
    }
    result(text)
        .or_else(|| count(text))
        .or_else(|| backwards(text))
}

/// Another answer, which is wrong.
pub(super) fn wrong(answer: &str) -> String {
    match answer.parse::<i64>() {
        Ok(number) => (number + 1).to_string(),
        Err(_) => format!("{answer}s"),
    }
}

/// `What is 3 plus 4?`
fn result(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("What is ")?;
    let (asked, _) = rest.split_once('?')?;
    let mut parts = asked.split(' ');
    let one: i64 = parts.next()?.parse().ok()?;
    let sign = parts.next()?;
    let other: i64 = parts.next()?.parse().ok()?;
    let result = match sign {
        "plus" => one.checked_add(other),
        "minus" => one.checked_sub(other),
        "times" => one.checked_mul(other),
        _ => None,
    };
    result.map(|result| result.to_string())
}

/// `How many words are in this list: a, b?`
fn count(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("How many words are in this list: ")?;
    let (list, _) = rest.split_once('?')?;
    Some(list.split(',').count().to_string())
}

/// `Write the word "river" backwards.`
fn backwards(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Write the word \"")?;
    let (word, rest) = rest.split_once('"')?;
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_word && rest.starts_with(" backwards")).then(|| word.chars().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_questions_are_answered_and_nothing_else() {
        for (text, expected) in [
            ("What is 17 plus 25? Answer briefly.", Some("42")),
            ("Please: What is 7 minus 9?", Some("-2")),
            ("What is 6 times 7?", Some("42")),
            ("How many words are in this list: a, b, c?", Some("3")),
            ("Write the word \"river\" backwards.", Some("revir")),
            ("What is love?", None),
            ("What is 1 over 0?", None),
            ("Write the word \"a\\\"b\" backwards.", None),
            ("the river keeps its own time", None),
        ] {
            assert_eq!(answer(text).as_deref(), expected, "{text}");
        }
        let long = format!("{}What is 1 plus 1?", "the ".repeat(1000));
        assert_eq!(answer(&long), None);
    }

    #[test]
    fn a_wrong_answer_is_another_one() {
        assert_eq!(wrong("42"), "43");
        assert_eq!(wrong("noon"), "noons");
    }
}
