//! Not written yet.

use super::{Ask, Said, chat};
use crate::client::framing::Event;

pub(super) fn path(_ask: &Ask<'_>) -> String {
    chat::PATH.to_owned()
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    chat::body(ask)
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    chat::read(event, said)
}
