//! One request of a trace, whatever the file it came from.
//!
//! What a file does not say is `None`, never 0. Instants are on the file's own clock
//! ([`super::Format::clock`]), so that a conversion gives them back exactly; whoever replays rows
//! subtracts the first.

use std::time::Duration;

use serde_json::value::RawValue;

/// One request of a trace.
#[derive(Debug, Clone, Default)]
pub struct TraceRow {
    /// When it came, on the clock of the file. Absent for turns that follow the one before.
    pub at: Option<Duration>,
    /// Length of the prompt in tokens.
    pub input_tokens: Option<u32>,
    /// Length of the answer in tokens; absent if the request failed or the file does not say.
    pub output_tokens: Option<u32>,
    /// Identity of each block of the prompt, from its beginning. Equal ids mean equal text up to
    /// and including that block. The last block may be a part of one.
    pub blocks: Vec<u64>,
    /// Tokens of one whole block; 0 where there are no blocks.
    pub block_tokens: u32,
    /// Where equal ids mean equal blocks.
    pub scope: BlockScope,
    /// The conversation it belongs to, as the file names it.
    pub session: Option<String>,
    /// The sub-agent of the session that sent it; absent if the session itself did.
    pub agent: Option<String>,
    /// Place in its conversation, from 0, where the file says so.
    pub turn: Option<u32>,
    /// Pause between the end of the turn before and this one.
    pub delay: Option<Duration>,
    /// How long the recorded server took for it.
    pub service: Option<Duration>,
    /// When the first token came on the recorded server, from the start of the request.
    pub first_token: Option<Duration>,
    /// The model that was asked.
    pub model: Option<String>,
    /// Images of the prompt, where the file says.
    pub images: Option<u32>,
    /// The recorded request failed or was cancelled.
    pub failed: bool,
    /// What was sent, where the file keeps it and the reader was asked for it.
    pub body: Option<Body>,
}

/// How far the ids of blocks reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockScope {
    /// The whole file: equal ids are equal blocks.
    #[default]
    File,
    /// One session: the same id in another session is another block.
    Session,
}

/// What was sent, as the file has it.
#[derive(Debug, Clone)]
pub enum Body {
    /// The prompt as text.
    Text(String),
    /// A JSON array of chat messages.
    Messages(Box<RawValue>),
    /// A whole request body.
    Payload(Box<RawValue>),
}

impl TraceRow {
    /// Forgets everything, and keeps the memory of `blocks` for the next row.
    pub(super) fn clear(&mut self) {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.clear();
        *self = Self {
            blocks,
            ..Self::default()
        };
    }

    /// Blocks of the prompt that a server can have cached when it arrives: whole ones, and never
    /// the whole prompt, since the last token has to be computed to get the first of the answer.
    #[must_use]
    pub fn cacheable_blocks(&self) -> usize {
        if self.block_tokens == 0 {
            return 0;
        }
        let whole = self.input_tokens.map_or(self.blocks.len(), |tokens| {
            (tokens.saturating_sub(1) / self.block_tokens) as usize
        });
        whole.min(self.blocks.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cacheable(input_tokens: u32, blocks: usize) -> usize {
        TraceRow {
            input_tokens: Some(input_tokens),
            blocks: vec![7; blocks],
            block_tokens: 512,
            ..TraceRow::default()
        }
        .cacheable_blocks()
    }

    #[test]
    fn the_last_token_is_never_served_from_a_cache() {
        assert_eq!(cacheable(1_025, 3), 2);
        assert_eq!(cacheable(1_024, 2), 1);
        assert_eq!(cacheable(1_023, 2), 1);
        assert_eq!(cacheable(1, 1), 0);
        // A list that covers the head of the prompt only.
        assert_eq!(cacheable(5_000, 2), 2);
    }
}
