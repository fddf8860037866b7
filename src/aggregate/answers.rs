//! How many questions of known answer were answered rightly.

use serde::Serialize;

use super::rank;
use crate::measurement::{AnswerResult, RequestRecord};

/// Counts of one stream, or of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTotals([u64; AnswerResult::ALL.len()]);

/// The questions of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Answers {
    /// Answered rightly.
    pub right: u64,
    /// Answered otherwise, or not at all outside the reasoning.
    pub wrong: u64,
    /// Whose request did not end well.
    pub unjudged: u64,
    /// Right ones as a share of those that were judged; `None` if none was.
    pub right_share: Option<f64>,
}

impl AnswerTotals {
    /// Adds one record; one that asks nothing is not counted.
    pub fn observe(&mut self, record: &RequestRecord) {
        if let Some(answer) = &record.answer {
            self.0[answer.result as usize] += 1;
        }
    }

    /// Questions by what their answers were worth: their sum is all of them.
    pub fn results(&self) -> impl Iterator<Item = (AnswerResult, u64)> + '_ {
        AnswerResult::ALL.into_iter().zip(self.0)
    }

    /// All of it; `None` if nothing was asked.
    #[must_use]
    pub fn summary(&self) -> Option<Answers> {
        let [right, wrong, unjudged] = self.0;
        let judged = right + wrong;
        (judged + unjudged > 0).then(|| Answers {
            right,
            wrong,
            unjudged,
            right_share: (judged > 0).then(|| rank::count(right) / rank::count(judged)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{ok, stream};
    use crate::measurement::{KnownKind, Wanted};

    #[test]
    fn the_share_is_of_those_that_were_judged() {
        let mut totals = AnswerTotals::default();
        let mut record = ok(&stream(0), 0, &[1]).record;
        totals.observe(&record);
        assert_eq!(totals.summary(), None, "nothing was asked");
        for (result, times) in AnswerResult::ALL.into_iter().zip([3, 1, 2]) {
            let wanted = Wanted {
                kind: KnownKind::Counting,
                answer: "7".into(),
            };
            let mut answer = wanted.unjudged();
            answer.result = result;
            record.answer = Some(answer);
            (0..times).for_each(|_| totals.observe(&record));
        }
        let expected = Answers {
            right: 3,
            wrong: 1,
            unjudged: 2,
            right_share: Some(0.75),
        };
        assert_eq!(totals.summary(), Some(expected));
    }
}
