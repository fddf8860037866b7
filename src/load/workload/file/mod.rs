//! What the rows of a file become: conversations whose turns are prompts.
//!
//! A file is streamed: one row becomes one script, and nothing of it is kept here but what a
//! sampling by chance needs, which is bounded. Opening and reading files is for the caller.

mod blocks;
mod branches;
mod counted;
mod draw;
mod entry;
mod gather;
mod media;
mod row;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Media, Message, Prompt, Verbatim};

pub use self::blocks::block_text;
pub use self::draw::Pool;
pub use self::entry::Entries;
pub use self::gather::{Gather, Joined};
pub use self::row::RowTexts;

/// One conversation to send, which may have one turn only.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// When its first turn is due, from the start of the recording.
    pub at: Option<Duration>,
    /// The session of the recording that it is a part of, where later parts are due at times of
    /// their own.
    pub session: Option<Arc<str>>,
    /// The file was begun again with it.
    pub again: bool,
    /// Its turns, at least one.
    pub steps: VecDeque<Step>,
    /// What later turns are sent with.
    pub carry: Carry,
}

/// One turn of a conversation.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is sent; turns before it are put in when it is due.
    pub prompt: Prompt,
    /// When it is due, if it is not the first.
    pub after: After,
    /// What was answered when it was recorded.
    pub reply: Option<Arc<str>>,
}

/// When a turn is due that is not the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// So long after the end of the turn before.
    End(Duration),
    /// So long after the turn before was due; it is not sent before that has ended.
    Due(Duration),
    /// So long after all these turns, by their places, have ended: the turns of a session and of
    /// its sub-agents, of which several are at work at a time.
    All {
        /// At least one.
        turns: Box<[usize]>,
        /// From the end of the last of them.
        pause: Duration,
    },
}

/// What later turns of a conversation are sent with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Carry {
    /// Nothing: each turn is whole by itself.
    #[default]
    Nothing,
    /// The turns before and their answers.
    History,
}

impl Script {
    /// One turn.
    #[must_use]
    pub fn single(prompt: Prompt) -> Self {
        Self {
            steps: VecDeque::from([Step::first(prompt)]),
            ..Self::default()
        }
    }

    /// About how much memory it takes, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.steps.iter().map(Step::weight).sum()
    }
}

impl Step {
    /// The first turn of a conversation.
    #[must_use]
    pub const fn first(prompt: Prompt) -> Self {
        Self {
            prompt,
            after: After::End(Duration::ZERO),
            reply: None,
        }
    }

    fn weight(&self) -> usize {
        let Prompt {
            text,
            system,
            history,
            media,
            verbatim,
            written,
            ..
        } = &self.prompt;
        let history = history.iter().map(|Message { text, .. }| text.len());
        let media = media.iter().map(|media| match media {
            Media::Image(url) | Media::Video(url) => url.len(),
            Media::Audio { data, .. } => data.len(),
        });
        let verbatim = match verbatim {
            Some(Verbatim::Messages(json) | Verbatim::Body(json)) => json.get().len(),
            None => 0,
        };
        let reply = self.reply.as_ref().map_or(0, |reply| reply.len());
        let system = system.as_ref().map_or(0, |system| system.len());
        size_of::<Self>()
            + text.len()
            + system
            + verbatim
            + written.as_ref().map_or(0, |written| written.bytes.len())
            + reply
            + history.chain(media).sum::<usize>()
    }
}
