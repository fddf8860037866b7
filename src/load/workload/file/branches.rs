//! Sub-agents of a recorded session, which were at work beside the session itself and beside each
//! other: what each request has to wait for.
//!
//! A recording has when each request began and how long it took. What had ended when the session
//! asked next, or began a sub-agent, came before that, and it has to end before; what had not
//! was at work beside it. Within a sub-agent a request follows the one before it.

use std::time::Duration;

use super::{After, Script};
use crate::config::Pauses;
use crate::load::trace::TraceRow;

/// When the requests of one session were at work.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<Span>);

#[derive(Debug)]
struct Span {
    /// The sub-agent; `None`: the session itself.
    agent: Option<String>,
    begin: Duration,
    end: Duration,
}

impl Spans {
    /// That of `row`, if it says when it began and how long it took.
    pub(super) fn push(&mut self, row: &TraceRow) {
        self.0
            .extend(row.at.zip(row.service).map(|(begin, took)| Span {
                agent: row.agent.clone(),
                begin,
                end: begin + took,
            }));
    }

    /// Lets the turns of `script` wait for what they waited for, if there are sub-agents and all
    /// say when they were at work; else they stay one after the other.
    pub(super) fn apply(&self, script: &mut Script, pauses: Pauses) {
        let has_agents = self.0.iter().any(|span| span.agent.is_some());
        if !has_agents || self.0.len() != script.steps.len() {
            return;
        }
        for (at, step) in script.steps.iter_mut().enumerate().skip(1) {
            let (turns, free) = self.before(at);
            let pause = pauses.of(self.0[at].begin.saturating_sub(free));
            step.after = After::All {
                turns: turns.into(),
                pause,
            };
        }
    }

    /// The turns that the one at `at` waits for, and when the last of them had ended.
    fn before(&self, at: usize) -> (Vec<usize>, Duration) {
        let (now, earlier) = (&self.0[at], &self.0[..at]);
        let own = earlier.iter().rposition(|span| span.agent == now.agent);
        let mut turns: Vec<usize> = own.into_iter().collect();
        if now.agent.is_none() || own.is_none() {
            // Of each of the others the last that had ended.
            let mut seen = vec![&now.agent];
            for (place, span) in earlier.iter().enumerate().rev() {
                if span.end <= now.begin && !seen.contains(&&span.agent) {
                    seen.push(&span.agent);
                    turns.push(place);
                }
            }
        }
        if turns.is_empty() {
            turns.push(0);
        }
        let ends = turns.iter().map(|turn| earlier[*turn].end);
        let free = ends.max().unwrap_or_default();
        turns.sort_unstable();
        (turns, free)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Prompt;
    use super::super::Step;
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// What follows what, of requests `(agent, begin, end)`.
    fn follows(requests: &[(&str, u64, u64)]) -> Vec<After> {
        let mut spans = Spans::default();
        let mut script = Script::default();
        for (agent, begin, end) in requests {
            spans.push(&TraceRow {
                agent: (!agent.is_empty()).then(|| (*agent).to_owned()),
                at: Some(ms(*begin)),
                service: Some(ms(end - begin)),
                ..TraceRow::default()
            });
            script.steps.push_back(Step::first(Prompt::default()));
        }
        spans.apply(&mut script, Pauses::default());
        script
            .steps
            .into_iter()
            .skip(1)
            .map(|step| step.after)
            .collect()
    }

    fn all(turns: &[usize], pause: u64) -> After {
        After::All {
            turns: turns.into(),
            pause: ms(pause),
        }
    }

    #[test]
    fn sub_agents_are_at_work_beside_the_session_and_each_other() {
        let found = follows(&[
            ("", 0, 10),
            ("x", 20, 120),
            ("x", 130, 230),
            ("y", 20, 50),
            // Asked while both were at work, and after both had ended.
            ("", 40, 45),
            ("", 300, 310),
        ]);
        assert_eq!(
            found,
            [
                all(&[0], 10),
                all(&[1], 10),
                all(&[0], 10),
                all(&[0], 30),
                all(&[2, 3, 4], 70),
            ]
        );
    }

    #[test]
    fn without_sub_agents_nothing_changes() {
        let found = follows(&[("", 0, 10), ("", 20, 30)]);
        assert_eq!(found, [After::End(Duration::ZERO)]);
    }
}
