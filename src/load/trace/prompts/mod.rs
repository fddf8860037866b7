//! Sets of prompts: what was or is to be sent, without times and numbers of tokens for the most
//! part. Texts and JSON stay as the file has them; what they become on the wire is decided
//! elsewhere.

mod mend;
mod sharegpt;
mod turns;

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::time::Duration;

use serde_json::value::RawValue;

use self::sharegpt::conversation;
use self::turns::{messages, multi_turn, payload, session, single_turn};
use super::error::{Fault, RowError};
use super::format::Format;
use super::lines::{Line, Lines};
use super::rows::NotARowFormat;
use super::traces::Bad;
use super::values::{Place, Value, Values};

/// One conversation, which may have one turn only.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// What the file calls it.
    pub session: Option<String>,
    /// Instructions before the first turn.
    pub system: Option<String>,
    /// What is sent, turn by turn; at least one.
    pub turns: Vec<Turn>,
}

/// One request of a conversation.
#[derive(Debug, Clone)]
pub struct Turn {
    /// What is sent.
    pub content: Content,
    /// What was answered when it was recorded.
    pub reply: Option<String>,
    /// How long the answer is to be, in tokens.
    pub output_tokens: Option<u32>,
    /// When it is due, from the start.
    pub at: Option<Duration>,
    /// Pause before it.
    pub delay: Option<Duration>,
}

/// What is sent.
#[derive(Debug, Clone)]
pub enum Content {
    /// The text of a user's message.
    Text(String),
    /// An object with texts, images, audio or video, as `AIPerf` describes them.
    Media(Box<RawValue>),
    /// All messages so far, and the tools that the model may call.
    Messages {
        /// A JSON array.
        messages: Box<RawValue>,
        /// A JSON array.
        tools: Option<Box<RawValue>>,
    },
    /// A whole request body.
    Payload(Box<RawValue>),
}

/// What was odd about a set and was put right or left out, and how often.
pub type Notes = BTreeMap<&'static str, u64>;

/// The entries of one set.
pub struct Entries<R> {
    name: String,
    format: Format,
    longest: usize,
    feed: Feed<R>,
    notes: Notes,
    ended: bool,
}

enum Feed<R> {
    Lines(Lines<R>),
    Values(Values<R>),
}

/// What a feed gives.
enum Fed {
    Entry(Option<Entry>),
    Bad(Bad),
    End,
    Failed(io::Error),
}

impl<R: BufRead> Entries<R> {
    /// Entries of `reader`, which gives the unpacked file; `name` is what errors call it, and
    /// `longest` the most bytes of one entry.
    ///
    /// # Errors
    /// If the format is no set of prompts.
    pub fn open(
        format: Format,
        longest: usize,
        reader: R,
        name: impl Into<String>,
    ) -> Result<Self, NotARowFormat> {
        let feed = match format {
            Format::ShareGpt => Feed::Values(Values::new(reader, Place::Top, longest)),
            Format::Inputs => Feed::Values(Values::new(reader, Place::Under("data"), longest)),
            Format::Messages
            | Format::SingleTurn
            | Format::MultiTurn
            | Format::RandomPool
            | Format::RawPayload => Feed::Lines(Lines::new(reader, longest)),
            _ => return Err(NotARowFormat(format)),
        };
        Ok(Self {
            name: name.into(),
            format,
            longest,
            feed,
            notes: Notes::new(),
            ended: false,
        })
    }

    /// What was put right or left out so far.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    fn feed(&mut self) -> Fed {
        let (format, notes) = (self.format, &mut self.notes);
        let read = match &mut self.feed {
            Feed::Lines(lines) => match lines.next() {
                Ok(Some(Line::Whole(text))) => entry(format, text, notes),
                Ok(Some(Line::TooLong)) => Err(too_long(self.longest)),
                Ok(None) => return Fed::End,
                Err(error) => return Fed::Failed(error),
            },
            Feed::Values(values) => match values.next() {
                Ok(Some(Value::Whole(text))) => entry(format, text, notes),
                Ok(Some(Value::TooLong)) => Err(too_long(self.longest)),
                Ok(Some(Value::Cut)) => Err(Fault::new(
                    "row",
                    "the end of the file",
                    "the end of the entry that begins here",
                )),
                Ok(None) => return Fed::End,
                Err(error) => return Fed::Failed(error),
            },
        };
        match read {
            Ok(entry) => Fed::Entry(entry),
            Err(fault) => Fed::Bad(fault),
        }
    }

    /// The line of the last entry, from 1.
    pub fn line(&self) -> u64 {
        match &self.feed {
            Feed::Lines(lines) => lines.number(),
            Feed::Values(values) => values.began_on(),
        }
    }
}

fn too_long(longest: usize) -> Bad {
    let length = format!("longer than {longest} bytes");
    Fault::new("row", &length, "a shorter entry")
}

/// One entry; `None` if there is nothing to send in it, which is noted.
fn entry(format: Format, text: &[u8], notes: &mut Notes) -> Result<Option<Entry>, Bad> {
    match mend::surrogates(text) {
        Some(mended) => {
            note(
                notes,
                "entries with half a surrogate pair, which was replaced",
            );
            mended_entry(format, &mended, notes)
        }
        None => mended_entry(format, text, notes),
    }
}

fn mended_entry(format: Format, text: &[u8], notes: &mut Notes) -> Result<Option<Entry>, Bad> {
    match format {
        Format::ShareGpt => conversation(text, notes),
        Format::Inputs => session(text).map(Some),
        Format::Messages => messages(text).map(Some),
        Format::MultiTurn => multi_turn(text).map(Some),
        Format::RawPayload => payload(text).map(Some),
        _ => single_turn(text, format).map(Some),
    }
}

fn note(notes: &mut Notes, what: &'static str) {
    *notes.entry(what).or_default() += 1;
}

impl<R: BufRead> Iterator for Entries<R> {
    type Item = Result<Entry, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.feed() {
                Fed::Entry(Some(entry)) => return Some(Ok(entry)),
                Fed::Entry(None) => {}
                Fed::Bad(fault) => {
                    return Some(Err(RowError::Row {
                        name: self.name.clone(),
                        line: self.line(),
                        fault,
                    }));
                }
                Fed::End => self.ended = true,
                Fed::Failed(error) => {
                    self.ended = true;
                    return Some(Err(RowError::File {
                        name: self.name.clone(),
                        line: self.line().saturating_sub(1),
                        error,
                    }));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
