//! Not written yet.

use super::{Ask, Said, chat};
use crate::client::framing::Event;
use crate::measurement::Api;

pub(super) fn path(_api: Api, _ask: &Ask<'_>) -> String {
    chat::PATH.to_owned()
}

pub(super) fn body(_api: Api, ask: &Ask<'_>) -> Vec<u8> {
    chat::body(ask)
}

pub(super) fn read<'a>(
    _api: Api,
    event: Event<'a>,
    said: &mut Said<'a>,
) -> Result<(), serde_json::Error> {
    chat::read(event, said)
}
