//! Endless texts of our own, made of units: words and marks with what stands before them.
//!
//! Each unit is one token of `cl100k_base` and `o200k_base`, and nearly each one of GPT-2's, and
//! splits from its neighbours as those tokenizers split texts; so the tokens of a text are the
//! sum of those of its units, as good as always. A text is decided by the number that its choices
//! come from. How long it gets is not known here.

mod code;
mod dialogue;
mod prose;
mod vocabulary;

use std::collections::VecDeque;

use super::draws::Draws;
use super::words::WORDS;
use crate::config::TextStyle;

/// A word or a mark, with what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Unit {
    /// A space, or nothing.
    pub(super) before: &'static str,
    /// The word or mark; line breaks belong to the mark they follow.
    pub(super) text: &'static str,
}

impl Unit {
    /// After a space.
    pub(super) const fn word(text: &'static str) -> Self {
        Self { before: " ", text }
    }

    /// Right after what came before.
    pub(super) const fn mark(text: &'static str) -> Self {
        Self { before: "", text }
    }

    /// Whether it ends with a mark or a line break, or is white space.
    pub(super) fn is_mark(self) -> bool {
        !self.text.bytes().all(|byte| byte.is_ascii_alphabetic())
    }

    /// Whether it is a word after a space, which stays the same tokens whatever comes before it.
    pub(super) fn is_word(self) -> bool {
        self.before == " " && !self.is_mark()
    }
}

/// The units of one text, in order. The first is a word.
#[derive(Debug)]
pub(super) struct Units {
    style: TextStyle,
    draws: Draws,
    /// What was composed and not yet given: at most one sentence, function or conversation.
    ready: VecDeque<Unit>,
    /// The last unit ended a line.
    is_at_start: bool,
}

impl Units {
    pub(super) fn new(style: TextStyle, draws: Draws) -> Self {
        Self {
            style,
            draws,
            ready: VecDeque::new(),
            is_at_start: false,
        }
    }

    /// A plain word, whatever the style.
    pub(super) fn filler(&mut self) -> Unit {
        plain(&mut self.draws)
    }

    /// The next unit.
    pub(super) fn next(&mut self) -> Unit {
        loop {
            if let Some(unit) = self.ready.pop_front() {
                let starts = std::mem::replace(&mut self.is_at_start, unit.text.ends_with('\n'));
                let before = if starts { "" } else { unit.before };
                return Unit { before, ..unit };
            }
            match self.style {
                TextStyle::Words => return plain(&mut self.draws),
                TextStyle::Prose => prose::paragraph(&mut self.draws, &mut self.ready),
                TextStyle::Code => code::function(&mut self.draws, &mut self.ready),
                TextStyle::Dialogue => dialogue::scene(&mut self.draws, &mut self.ready),
            }
        }
    }
}

/// A plain word.
pub(super) fn plain(draws: &mut Draws) -> Unit {
    Unit::word(draws.pick(&WORDS))
}

#[cfg(test)]
mod tests;
