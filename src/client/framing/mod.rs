//! Bytes in, events out: the three ways in which a response is cut into events. No I/O.

mod array;
#[cfg(test)]
mod cutting;
mod lines;
mod sse;

pub(super) use array::ArrayDecoder;
pub(super) use lines::LineDecoder;
pub(super) use sse::SseDecoder;

/// An event, or the unfinished part of one, may not be larger.
pub(super) const MAX_EVENT: usize = 4 * 1024 * 1024;

/// One event: its name, empty if it has none, and its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) name: &'a [u8],
    pub(super) data: &'a [u8],
}

/// An event grew beyond [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {MAX_EVENT} bytes")]
pub(super) struct EventTooLarge;

/// How a stream of events is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value per line.
    Lines,
    /// The elements of one JSON array.
    Array,
}
