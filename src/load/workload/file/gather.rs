//! Rows of a trace, gathered to conversations.
//!
//! A row is joined to the one before it if both are of one session and it has no time of its own
//! to keep. Only rows that follow each other in the file are joined, so that one conversation at
//! a time is held.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::branches::Spans;
use super::{After, Carry, Script, Step};
use crate::config::Pauses;
use crate::load::trace::TraceRow;

/// Most bytes of one conversation.
const LONGEST_SCRIPT: usize = 64 << 20;

/// What is done with rows that have a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// Each is due at its time: only rows without one follow another.
    Untimed,
    /// Times only say how far apart the turns of a session are.
    All,
}

/// Gathers rows.
#[derive(Debug)]
pub struct Gather {
    joined: Joined,
    pauses: Pauses,
    open: Option<Open>,
}

/// A conversation that may go on.
#[derive(Debug)]
struct Open {
    session: Option<String>,
    script: Script,
    weight: usize,
    /// When its rows were at work.
    spans: Spans,
    /// When its last row came, and how long it took.
    last: (Option<Duration>, Option<Duration>),
}

impl Gather {
    /// Joins rows as `joined` says, with `pauses` between them.
    #[must_use]
    pub const fn new(joined: Joined, pauses: Pauses) -> Self {
        Self {
            joined,
            pauses,
            open: None,
        }
    }

    /// Takes `row`, which became `step`. The conversation that is complete by now, if one is.
    ///
    /// # Errors
    ///
    /// If nobody can say when it is due, in words; it is left out.
    pub fn push(&mut self, row: &TraceRow, step: Step) -> Result<Option<Script>, String> {
        let untimed = row.at.is_none() || self.joined == Joined::All;
        if untimed
            && row.session.is_some()
            && let Some(open) = &mut self.open
            && open.session == row.session
        {
            open.add(row, step, self.pauses)?;
            return Ok(None);
        }
        if row.at.is_none() && self.joined == Joined::Untimed {
            let wanted = if row.session.is_some() {
                "a time, or the row before it to be of the same session"
            } else {
                "a time, or a session"
            };
            return Err(format!("timestamp: `(nothing)`\n  wanted: {wanted}"));
        }
        Ok(self
            .open
            .replace(Open::new(row, step, self.joined))
            .map(|open| open.done(self.pauses)))
    }

    /// The last conversation: there are no more rows.
    pub fn finish(&mut self) -> Option<Script> {
        let pauses = self.pauses;
        self.open.take().map(|open| open.done(pauses))
    }
}

/// What the session of `row` is called; a sub-agent has one of its own.
fn named(row: &TraceRow) -> Option<Arc<str>> {
    let session = row.session.as_deref()?;
    Some(match &row.agent {
        Some(agent) => format!("{session}\n{agent}").into(),
        None => session.into(),
    })
}

impl Open {
    fn new(row: &TraceRow, step: Step, joined: Joined) -> Self {
        // What was sent is a text: then it is what was new, and the rest comes before it.
        let counted = row.input_tokens.is_some() || !row.blocks.is_empty();
        let says = !counted && step.prompt.verbatim.is_none();
        let mut spans = Spans::default();
        spans.push(row);
        Self {
            spans,
            session: row.session.clone(),
            weight: step.weight(),
            script: Script {
                at: row.at,
                again: false,
                session: named(row).filter(|_| joined == Joined::Untimed),
                steps: VecDeque::from([step]),
                carry: if says { Carry::History } else { Carry::Nothing },
            },
            last: (row.at, row.service),
        }
    }

    fn add(&mut self, row: &TraceRow, mut step: Step, pauses: Pauses) -> Result<(), String> {
        self.weight += step.weight();
        if self.weight > LONGEST_SCRIPT {
            return Err(format!(
                "session_id: more than {LONGEST_SCRIPT} bytes of one session\n  wanted: shorter sessions"
            ));
        }
        step.after = match (row.delay, row.at, self.last) {
            (Some(delay), ..) => After::End(pauses.of(delay)),
            (None, Some(at), (Some(before), Some(service))) => {
                After::End(pauses.of(at.saturating_sub(before + service)))
            }
            (None, Some(at), (Some(before), None)) => {
                After::Due(pauses.of(at.saturating_sub(before)))
            }
            _ => After::End(Duration::ZERO),
        };
        self.last = (row.at, row.service);
        self.spans.push(row);
        self.script.steps.push_back(step);
        Ok(())
    }

    fn done(self, pauses: Pauses) -> Script {
        let mut script = self.script;
        self.spans.apply(&mut script, pauses);
        script
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Prompt;
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn row(session: Option<&str>, at: Option<u64>, delay: Option<u64>) -> TraceRow {
        TraceRow {
            session: session.map(str::to_owned),
            at: at.map(ms),
            delay: delay.map(ms),
            input_tokens: Some(1),
            ..TraceRow::default()
        }
    }

    /// Per script: when it is due, and how its later turns follow.
    fn gathered(joined: Joined, rows: &[TraceRow]) -> Vec<(Option<u64>, Vec<After>)> {
        let mut gather = Gather::new(joined, Pauses::default());
        let mut scripts = Vec::new();
        for row in rows {
            let step = Step::first(Prompt::default());
            scripts.extend(gather.push(row, step).expect("good"));
        }
        scripts.extend(gather.finish());
        let told = |script: &Script| {
            let at = script
                .at
                .map(|at| u64::try_from(at.as_millis()).expect("small"));
            let later = script.steps.iter().skip(1).map(|step| step.after.clone());
            (at, later.collect())
        };
        scripts.iter().map(told).collect()
    }

    #[test]
    fn a_row_with_a_delay_only_follows_the_one_before() {
        let rows = [
            row(Some("a"), Some(0), None),
            row(Some("a"), None, Some(500)),
            row(Some("a"), None, None),
            row(Some("b"), Some(10), None),
            row(Some("b"), Some(20), None),
            row(None, Some(30), None),
        ];
        let end = |at| After::End(ms(at));
        assert_eq!(
            gathered(Joined::Untimed, &rows),
            [
                (Some(0), vec![end(500), end(0)]),
                (Some(10), vec![]),
                (Some(20), vec![]),
                (Some(30), vec![]),
            ]
        );
    }

    #[test]
    fn times_of_a_session_say_how_far_apart_its_turns_are() {
        let mut timed = [
            row(Some("a"), Some(0), None),
            row(Some("a"), Some(700), None),
            row(Some("a"), Some(900), None),
        ];
        timed[1].service = Some(ms(50));
        assert_eq!(
            gathered(Joined::All, &timed),
            [(Some(0), vec![After::Due(ms(700)), After::End(ms(150))])]
        );
    }

    #[test]
    fn a_row_of_which_nobody_knows_when_it_is_due_is_told() {
        let mut gather = Gather::new(Joined::Untimed, Pauses::default());
        let error = gather.push(&row(None, None, None), Step::first(Prompt::default()));
        assert_eq!(
            error.expect_err("no time").lines().nth(1),
            Some("  wanted: a time, or a session")
        );
    }
}
