//! The conversation of an entry of a data set.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Prompt, Tokenizer, Verbatim};
use super::media::shown;
use super::{After, Carry, Script, Step};
use crate::config::Pauses;
use crate::load::trace::{Content, Entry, Turn};

/// Makes conversations of entries.
pub struct Entries {
    output_tokens: Option<u32>,
    pauses: Pauses,
    words: Tokenizer,
}

impl Entries {
    /// `output_tokens` are asked for where an entry does not say; else as many as its recorded
    /// answer has, estimated from its words.
    #[must_use]
    pub fn new(output_tokens: Option<u32>, pauses: Pauses) -> Self {
        Self {
            output_tokens,
            pauses,
            words: Tokenizer::words(),
        }
    }

    /// The conversation of `entry`.
    ///
    /// # Errors
    ///
    /// If it holds what cannot be sent, in words.
    pub fn script(&self, entry: Entry) -> Result<Script, String> {
        let Entry { system, turns, .. } = entry;
        let system: Option<Arc<str>> = system.map(Arc::from);
        let mut script = Script {
            at: turns.first().and_then(|turn| turn.at),
            ..Script::default()
        };
        let mut steps: VecDeque<Step> = VecDeque::with_capacity(turns.len());
        let mut before = None;
        for turn in turns {
            if matches!(turn.content, Content::Text(_) | Content::Media(_)) {
                script.carry = Carry::History;
            }
            let at = turn.at;
            steps.push_back(self.step(turn, (before, system.clone()))?);
            before = at;
        }
        script.steps = steps;
        Ok(script)
    }

    fn step(
        &self,
        turn: Turn,
        (before, system): (Option<Duration>, Option<Arc<str>>),
    ) -> Result<Step, String> {
        let after = match (turn.delay, turn.at, before) {
            (None, Some(at), Some(before)) => After::Due(self.pauses.of(at.saturating_sub(before))),
            (delay, ..) => After::End(self.pauses.of(delay.unwrap_or_default())),
        };
        let estimated = || {
            let count = self.words.count(turn.reply.as_deref()?).ok()?;
            (count > 0).then_some(count)
        };
        let mut prompt = Prompt {
            output_tokens: turn.output_tokens.or(self.output_tokens).or_else(estimated),
            system,
            ..Prompt::default()
        };
        match turn.content {
            Content::Text(text) => prompt.text = text,
            Content::Media(json) => (prompt.text, prompt.media) = shown(json.get())?,
            Content::Messages { messages, tools } => {
                prompt.verbatim = Some(Verbatim::Messages(Arc::from(messages)));
                prompt.tools = tools.map(Arc::from);
            }
            Content::Payload(json) => prompt.verbatim = Some(Verbatim::Body(Arc::from(json))),
        }
        Ok(Step {
            prompt,
            after,
            reply: turn.reply.map(Arc::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::trace::Format;

    fn scripts(format: Format, text: &str) -> Vec<Script> {
        let entries = Entries::new(None, Pauses::default());
        let read = crate::load::trace::Entries::open(format, 1 << 20, text.as_bytes(), "t");
        read.expect("a set of prompts")
            .map(|entry| entries.script(entry.expect("good")).expect("good"))
            .collect()
    }

    #[test]
    fn a_conversation_asks_for_as_much_as_was_answered() {
        let [script] = &scripts(
            Format::ShareGpt,
            r#"[{"conversations":[{"from":"system","value":"be brief"},
                {"from":"human","value":"hi"},{"from":"gpt","value":"well hello there you"},
                {"from":"human","value":"bye"},{"from":"gpt","value":"so long"}]}]"#,
        )[..] else {
            panic!("one conversation");
        };
        assert_eq!(script.carry, Carry::History);
        let told: Vec<_> = script
            .steps
            .iter()
            .map(|step| (&*step.prompt.text, step.reply.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                ("hi", Some("well hello there you")),
                ("bye", Some("so long"))
            ]
        );
        let first = &script.steps[0].prompt;
        assert_eq!(first.system.as_deref(), Some("be brief"));
        assert!(first.output_tokens >= Some(4), "{:?}", first.output_tokens);
    }

    #[test]
    fn turns_have_their_pauses_and_times() {
        let [script] = &scripts(
            Format::MultiTurn,
            r#"{"session_id":"s","turns":[{"text":"a","timestamp":100},{"text":"b","delay":50},{"text":"c","timestamp":900},{"text":"d","timestamp":950}]}"#,
        )[..] else {
            panic!("one conversation");
        };
        assert_eq!(script.at, Some(Duration::from_millis(100)));
        let after: Vec<After> = script.steps.iter().map(|step| step.after.clone()).collect();
        assert_eq!(
            after[1..],
            [
                After::End(Duration::from_millis(50)),
                After::End(Duration::ZERO),
                After::Due(Duration::from_millis(50)),
            ]
        );
    }
}
