//! Two people who ask and answer, a line each.

use std::collections::VecDeque;

use super::super::draws::Draws;
use super::vocabulary::NAMES;
use super::{Unit, prose};

/// Beginnings of a question, before a thing.
const QUESTIONS: [&[&str]; 8] = [
    &["Where", "is"],
    &["Who", "took"],
    &["What", "do", "you", "think", "about"],
    &["Have", "you", "seen"],
    &["Did", "you", "find"],
    &["Why", "do", "we", "need"],
    &["How", "much", "was"],
    &["Can", "you", "show", "me"],
];
/// Beginnings of an answer, before a thing.
const ANSWERS: [&[&str]; 8] = [
    &["I", "saw"],
    &["You", "should", "ask", "about"],
    &["We", "will", "look", "for"],
    &["It", "was", "next", "to"],
    &["My", "brother", "has"],
    &["They", "sold"],
    &["I", "never", "liked"],
    &["Please", "bring", "me"],
];
/// What comes before an answer.
const REPLIES: [&str; 8] = [
    "Yes", "No", "Well", "Right", "Maybe", "True", "Sure", "Sorry",
];
/// Lines of a conversation.
const LINES: (u32, u32) = (4, 10);

/// A conversation, and the empty line after it.
pub(super) fn scene(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    let first = draws.pick(&NAMES);
    let second = loop {
        let name = draws.pick(&NAMES);
        if name != first {
            break name;
        }
    };
    let lines = draws.within(LINES.0, LINES.1);
    for line in 0..lines {
        let name = if line % 2 == 0 { first } else { second };
        // Only the first of a conversation may follow something on its line.
        out.push_back(if line == 0 {
            Unit::word(name)
        } else {
            Unit::mark(name)
        });
        out.push_back(Unit::mark(":"));
        let is_last = line + 1 == lines;
        let asks = line % 2 == 0 && !is_last;
        let beginning = if asks {
            draws.pick(&QUESTIONS)
        } else {
            if draws.one_in(2) {
                out.push_back(Unit::word(draws.pick(&REPLIES)));
                out.push_back(Unit::mark("."));
            }
            draws.pick(&ANSWERS)
        };
        out.extend(beginning.iter().map(|word| Unit::word(word)));
        prose::something(draws, out);
        out.push_back(Unit::mark(match (asks, is_last) {
            (true, _) => "?\n",
            (false, false) => ".\n",
            (false, true) => ".\n\n",
        }));
    }
}
