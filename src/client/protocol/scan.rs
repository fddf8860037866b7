//! The short way of reading an event that differs from an earlier one in its text only.
//!
//! A stream repeats itself: between two tokens nothing changes but the text. So the bytes before
//! and after the text of an event that was read in full are kept, and an event with the same
//! bytes around another text is read by comparing them. That holds for every protocol and every
//! server, and cannot disagree with the full reading: if what lies between is the inside of a
//! JSON text without escapes, the event is the same JSON but for that text, and no protocol
//! reads a piece of text otherwise for what it says.
//!
//! Servers whose events differ in more (a number on each, padding) are read in full; after a few
//! vain attempts nothing is kept any more.

use std::borrow::Cow;

use super::{Channel, Said};
use crate::client::framing::Event;

/// Larger events are not worth keeping: several in-flight requests share the memory.
const MAX_FRAME: usize = 2048;
/// Kept events in a row that matched nothing before we stop keeping.
const MAX_VAIN: u8 = 8;

/// What surrounds the text of the events of one stream.
#[derive(Debug, Default)]
pub(in crate::client) struct Shape {
    name: Vec<u8>,
    /// All before the text, and all after it.
    frame: Vec<u8>,
    text_at: usize,
    said: Option<(u32, Channel)>,
    vain: u8,
}

impl Shape {
    /// Reads `event` the short way, if it has this shape.
    pub(in crate::client) fn read<'a>(&mut self, event: Event<'a>, said: &mut Said<'a>) -> bool {
        let Some((choice, channel)) = self.said else {
            return false;
        };
        let (before, after) = self.frame.split_at(self.text_at);
        let text = event
            .data
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        match text.and_then(plain_text) {
            Some(text) if event.name == self.name => {
                self.vain = 0;
                said.say(choice, channel, text);
                true
            }
            _ => false,
        }
    }

    /// Keeps the shape of `event`, of which the full reading said `said`, if it is one.
    pub(in crate::client) fn learn(&mut self, event: Event<'_>, said: &Said<'_>) {
        if self.vain >= MAX_VAIN || event.data.len() > MAX_FRAME || !said.is_one_piece() {
            return;
        }
        let Some(piece) = said.pieces().next() else {
            return;
        };
        let Cow::Borrowed(text) = &piece.text else {
            return;
        };
        let Some(text_at) = place_of(text, event.data) else {
            return;
        };
        self.vain += 1;
        self.said = Some((piece.choice, piece.channel));
        self.text_at = text_at;
        self.name.clear();
        self.name.extend_from_slice(event.name);
        self.frame.clear();
        self.frame.extend_from_slice(&event.data[..text_at]);
        self.frame
            .extend_from_slice(&event.data[text_at + text.len()..]);
    }
}

/// Where in `data` the text lies that was borrowed from it, as the whole of a JSON text.
fn place_of(text: &str, data: &[u8]) -> Option<usize> {
    let at = text.as_ptr().addr().checked_sub(data.as_ptr().addr())?;
    let quoted = data.get(at.checked_sub(1)?..=at.checked_add(text.len())?)?;
    (quoted.first() == Some(&b'"') && quoted.last() == Some(&b'"')).then_some(at)
}

/// `bytes` as the inside of a JSON text, if it is not empty and needs no decoding.
fn plain_text(bytes: &[u8]) -> Option<&str> {
    let coded = |byte: &u8| matches!(byte, b'"' | b'\\' | ..=0x1f);
    if bytes.is_empty() || bytes.iter().any(coded) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
