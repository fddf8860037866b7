//! Sentences and paragraphs: people and things that did something somewhere.
//!
//! Everything lies in the past, so that verbs do not change with who acts; no noun, and nothing
//! that may stand before one, begins with a vowel where `a` could come before it.

use std::collections::VecDeque;

use super::super::draws::Draws;
use super::Unit;
use super::vocabulary::{
    ADJECTIVES, DID, FIRST, HOW, LINKS, NAMES, NOUNS, PLACED, PLURALS, WENT, WHICH, WHICH_FIRST,
    WHO, WHO_FIRST,
};

/// Sentences of a paragraph.
const SENTENCES: (u32, u32) = (3, 7);

/// A paragraph, and the break after it.
pub(super) fn paragraph(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    let sentences = draws.within(SENTENCES.0, SENTENCES.1);
    for number in 1..=sentences {
        sentence(draws, out);
        out.push_back(Unit::mark(if number == sentences { ".\n\n" } else { "." }));
    }
}

/// A sentence, without its end.
pub(super) fn sentence(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    match draws.below(8) {
        0 => {
            word(out, draws.pick(&FIRST));
            out.push_back(Unit::mark(","));
            someone(draws, out);
        }
        1 => word(out, draws.pick(&WHO_FIRST)),
        2 => word(out, draws.pick(&NAMES)),
        3 => {
            word(out, "The");
            word(out, draws.pick(&ADJECTIVES));
            word(out, draws.pick(&PLURALS));
        }
        _ => {
            word(out, draws.pick(&WHICH_FIRST));
            thing(draws, out);
        }
    }
    deed(draws, out);
    if draws.one_in(3) {
        out.push_back(Unit::mark(","));
        word(out, draws.pick(&LINKS));
        someone(draws, out);
        deed(draws, out);
    }
}

/// Who did it, inside of a sentence.
fn someone(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    match draws.below(4) {
        0 => word(out, draws.pick(&WHO)),
        1 => word(out, draws.pick(&NAMES)),
        _ => something(draws, out),
    }
}

/// What was done.
fn deed(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(3) {
        word(out, draws.pick(&WENT));
        if draws.one_in(2) {
            word(out, draws.pick(&HOW));
        }
    } else {
        word(out, draws.pick(&DID));
        something(draws, out);
    }
    if draws.one_in(2) {
        word(out, draws.pick(&PLACED));
        something(draws, out);
    }
}

/// One thing, or several.
pub(super) fn something(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(5) {
        word(out, "the");
        word(out, draws.pick(&PLURALS));
        return;
    }
    word(
        out,
        if draws.one_in(3) {
            "a"
        } else {
            draws.pick(&WHICH)
        },
    );
    thing(draws, out);
}

/// A noun, often with what it is like.
fn thing(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(2) {
        word(out, draws.pick(&ADJECTIVES));
    }
    word(out, draws.pick(&NOUNS));
}

fn word(out: &mut VecDeque<Unit>, text: &'static str) {
    out.push_back(Unit::word(text));
}
