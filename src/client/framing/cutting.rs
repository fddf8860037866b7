//! What the tests of the framings share: cuts at given places, and events as texts.

use super::Event;

/// `bytes` in pieces, cut at `cuts`; those beyond the end cut nothing off.
pub(super) fn cut_at(bytes: &[u8], cuts: Vec<usize>) -> Vec<&[u8]> {
    let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces.push(&bytes[from..]);
    pieces
}

/// The data of the events that `decode` pushes.
pub(super) fn texts(decode: impl FnOnce(&mut dyn FnMut(Event<'_>))) -> Vec<String> {
    let mut events = Vec::new();
    decode(&mut |event| {
        assert!(event.name.is_empty(), "these framings know no names");
        events.push(String::from_utf8_lossy(event.data).into_owned());
    });
    events
}
