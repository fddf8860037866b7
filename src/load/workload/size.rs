//! Texts of a given number of tokens.
//!
//! With a tokenizer the number is exact: units of known cost are written until they add up, the
//! whole is counted once, and where the sum was wrong the end is trimmed or added to and counted
//! again, at most ten times. What was reached is said; it is never assumed. Without one, a unit
//! is taken to be so many tokens.
//!
//! A text is decided by its seeds, its length and what stands before it, not by the texts that
//! the same writer wrote earlier. Who keeps texts to send them again is not known here.

use std::collections::HashMap;
use std::sync::Arc;

use super::Tokenizer;
use super::draws::Draws;
use super::text::{Unit, Units, plain};
use super::words::WORDS;
use crate::config::TextStyle;

/// Counts of the whole text.
const ROUNDS: u32 = 10;
/// Plain words at the start that make a text unlike any other: 2^48 beginnings.
const NONCE_UNITS: usize = 6;
/// What blocks are measured after, since they rarely come first.
const ANCHOR: &str = "the";
/// What is one token more right after a word, if no plain word is one token.
const LETTERS: [Unit; 4] = [
    Unit::mark("t"),
    Unit::mark("e"),
    Unit::mark("x"),
    Unit::mark(","),
];

/// How tokens are counted.
#[derive(Debug, Clone)]
pub enum Measure {
    /// By the words and marks of a text.
    Units {
        /// Mean tokens of one, finite and positive: 1, or what the server's own counts say.
        tokens_per_unit: f64,
    },
    /// By the model's tokenizer.
    Exact(Arc<Tokenizer>),
}

impl Default for Measure {
    /// A word or a mark is a token.
    fn default() -> Self {
        Self::Units {
            tokens_per_unit: 1.0,
        }
    }
}

/// What decides a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// The text.
    pub text: u64,
    /// Its first six words, for a beginning that never occurred before; `None`: the text's own.
    pub fresh: Option<u64>,
}

/// A text that was written, and how many tokens it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Its tokens by the measure, which are those asked for unless the tokenizer has no text of
    /// that length; `None`: it cannot be counted.
    pub tokens: Option<u32>,
}

/// Writes texts of one style by one measure.
#[derive(Debug)]
pub struct Writer {
    style: TextStyle,
    measure: Measure,
    /// Tokens of each unit by the tokenizer; units are of finite lists.
    costs: HashMap<Unit, u32>,
}

impl Writer {
    /// Texts in `style`, measured by `measure`.
    #[must_use]
    pub fn new(style: TextStyle, measure: Measure) -> Self {
        Self {
            style,
            measure,
            costs: HashMap::new(),
        }
    }

    /// A text of `tokens`.
    pub fn text(&mut self, tokens: u32, seeds: Seeds) -> Written {
        let nothing = Written {
            text: String::new(),
            tokens: Some(0),
        };
        self.continue_text(&nothing, tokens, seeds)
    }

    /// What comes after `before` so that both together have `tokens`: nothing, if that has as
    /// many. The text is only what comes after; the tokens are those of both.
    pub fn continue_text(&mut self, before: &Written, tokens: u32, seeds: Seeds) -> Written {
        let draft = Draft {
            whole: before.text.clone(),
            units: Vec::new(),
            source: Units::new(self.style, Draws::of(seeds.text)),
            nonce: seeds.fresh.map(Draws::of),
            is_closed: false,
        };
        let known = match &self.measure {
            Measure::Units { .. } => before.tokens,
            Measure::Exact(_) => None,
        };
        let before = known.or_else(|| self.count(&before.text));
        self.written(draft, (before, tokens))
    }

    /// The text of the block `id` of `scope`, always the same: `tokens` tokens, also between
    /// other blocks. It begins with a space and a word and ends with a word, so that tokens end
    /// where blocks end.
    pub fn block(&mut self, block: (u64, u64), tokens: u32) -> Written {
        let anchor = self.given(ANCHOR.to_owned());
        let before = anchor.tokens.unwrap_or(1);
        let written = self.end_with_block(&anchor, block, before.saturating_add(tokens));
        Written {
            tokens: written.tokens.map(|tokens| tokens.saturating_sub(before)),
            ..written
        }
    }

    /// The block `id` of `scope` after `before`, as much of it as brings both to `tokens` tokens:
    /// a block that begins a text, or the beginning of one that a text ends with. The text is
    /// only that of the block; the tokens are those of both.
    pub fn end_with_block(
        &mut self,
        before: &Written,
        (scope, id): (u64, u64),
        tokens: u32,
    ) -> Written {
        let mut own = Draws::of_both(scope, id);
        let draft = Draft {
            whole: before.text.clone(),
            units: Vec::new(),
            source: Units::new(self.style, Draws::of(own.word())),
            nonce: Some(own),
            is_closed: true,
        };
        let counted = before.tokens.or_else(|| self.count(&before.text));
        self.written(draft, (counted, tokens))
    }

    /// A text of others, measured.
    #[must_use]
    pub fn given(&self, text: String) -> Written {
        let tokens = self.count(&text);
        Written { text, tokens }
    }

    fn written(&mut self, mut draft: Draft, (before, tokens): (Option<u32>, u32)) -> Written {
        let start = draft.whole.len();
        let reached = before.and_then(|before| match &self.measure {
            Measure::Units { tokens_per_unit } => {
                Some(draft.estimate((before, tokens), *tokens_per_unit))
            }
            Measure::Exact(_) => self.fit(&mut draft, (before, tokens)),
        });
        Written {
            text: draft.whole.split_off(start),
            tokens: reached,
        }
    }

    /// Brings the draft from `before` tokens to `wanted`; what it came to.
    fn fit(&mut self, draft: &mut Draft, (before, wanted): (u32, u32)) -> Option<u32> {
        if wanted <= before {
            return Some(before);
        }
        self.grow(draft, wanted - before);
        for round in 0..ROUNDS {
            let found = self.count(&draft.whole)?;
            if found < wanted {
                self.grow(draft, wanted - found);
            } else if found > wanted {
                // Later rounds take back more, so as not to try the same again.
                let extra = usize::try_from(round.saturating_sub(2)).unwrap_or(0);
                self.shrink(draft, (found - wanted, extra));
            } else if draft.is_closed && !draft.ends_with_word() {
                draft.pop();
            } else {
                return Some(found);
            }
        }
        self.count(&draft.whole)
    }

    /// Adds units of `need` tokens in all.
    fn grow(&mut self, draft: &mut Draft, need: u32) {
        let mut left = need;
        // Units may be no tokens, but not nearly all of them.
        for _ in 0..need.saturating_mul(4).saturating_add(64) {
            let unit = draft.next();
            let cost = self.cost(unit);
            if cost > left || (cost == left && draft.is_closed && !unit.is_word()) {
                break;
            }
            draft.push(unit);
            left -= cost;
            if left == 0 {
                return;
            }
        }
        while left > 0 {
            let Some(unit) = self.filler(draft, left) else {
                return;
            };
            draft.push(unit);
            left -= self.cost(unit);
        }
    }

    /// Takes units back, of `excess` tokens at least, and `extra` ones.
    fn shrink(&mut self, draft: &mut Draft, (excess, extra): (u32, usize)) {
        let mut taken = 0;
        while taken < excess {
            let Some(unit) = draft.pop() else {
                return;
            };
            taken += self.cost(unit);
        }
        for _ in 0..extra {
            draft.pop();
        }
        while draft.is_closed && !draft.ends_with_word() && draft.pop().is_some() {}
    }

    /// A unit of one token, or else one of at most `left`; `None`: there is none.
    fn filler(&mut self, draft: &mut Draft, left: u32) -> Option<Unit> {
        let drawn = draft.source.filler();
        let drawn = draft.here(drawn);
        if self.cost(drawn) == 1 {
            return Some(drawn);
        }
        let words = WORDS.map(|word| draft.here(Unit::word(word)));
        let letters: &[Unit] = if draft.is_closed { &[] } else { &LETTERS };
        let all = || words.iter().chain(letters).copied();
        all()
            .find(|unit| self.cost(*unit) == 1)
            .or_else(|| all().find(|unit| (1..=left).contains(&self.cost(*unit))))
    }

    /// Tokens that a unit adds to a text.
    fn cost(&mut self, unit: Unit) -> u32 {
        if let Some(cost) = self.costs.get(&unit) {
            return *cost;
        }
        let begins_line = unit.before.is_empty() && !unit.is_mark();
        let context = if begins_line { "\n" } else { ANCHOR };
        let alone = self.count(context).unwrap_or(0);
        let both = self.count(&format!("{context}{}{}", unit.before, unit.text));
        let cost = both.map_or(1, |both| both.saturating_sub(alone));
        self.costs.insert(unit, cost);
        cost
    }

    /// Tokens of a whole text.
    fn count(&self, text: &str) -> Option<u32> {
        match &self.measure {
            Measure::Exact(tokenizer) => tokenizer.count(text).ok(),
            Measure::Units { .. } => Tokenizer::words().count(text).ok(),
        }
    }
}

/// A text in the making.
struct Draft {
    /// What stands before it, and what was written.
    whole: String,
    /// What was written, and where each begins.
    units: Vec<(usize, Unit)>,
    source: Units,
    /// Where the first six come from instead.
    nonce: Option<Draws>,
    /// Whether it has to end with a word.
    is_closed: bool,
}

impl Draft {
    fn next(&mut self) -> Unit {
        let unit = match &mut self.nonce {
            Some(draws) if self.units.len() < NONCE_UNITS => plain(draws),
            _ => self.source.next(),
        };
        self.here(unit)
    }

    /// The unit as it is written at the end: nothing stands before the first.
    fn here(&self, unit: Unit) -> Unit {
        let before = if self.whole.is_empty() {
            ""
        } else {
            unit.before
        };
        Unit { before, ..unit }
    }

    fn push(&mut self, unit: Unit) {
        self.units.push((self.whole.len(), unit));
        self.whole.push_str(unit.before);
        self.whole.push_str(unit.text);
    }

    fn pop(&mut self) -> Option<Unit> {
        let (start, unit) = self.units.pop()?;
        self.whole.truncate(start);
        Some(unit)
    }

    fn ends_with_word(&self) -> bool {
        self.units.last().is_some_and(|(_, unit)| unit.is_word())
    }

    /// Adds units for what is missing between two numbers of tokens; what that comes to.
    fn estimate(&mut self, (before, wanted): (u32, u32), tokens_per_unit: f64) -> u32 {
        let missing = f64::from(wanted.saturating_sub(before));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast saturates, and nothing here is negative"
        )]
        let whole = |number: f64| number.round() as u32;
        let count = match whole(missing / tokens_per_unit) {
            0 if wanted > before => 1,
            count => count,
        };
        for number in 1..=count {
            let unit = self.next();
            let is_open = self.is_closed && number == count && !unit.is_word();
            let unit = if is_open { self.source.filler() } else { unit };
            self.push(unit);
        }
        before.saturating_add(whole(f64::from(count) * tokens_per_unit))
    }
}

#[cfg(test)]
mod tests;
