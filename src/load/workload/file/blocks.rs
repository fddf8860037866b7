//! The text of a block of a prompt, from its id alone.
//!
//! The same seed and id always give the same words, and a part of a block is the beginning of the
//! whole one, so that prompts with the same leading ids share exactly that much text. Blocks of
//! different ids differ from their first words on: the first three are chosen by 24 bits of the
//! hashed id, and so on for the rest.

use super::super::words::WORDS;

/// `tokens` words of the block `id`; a word counts as one token.
#[must_use]
pub fn block_text(seed: u64, id: u64, tokens: u32) -> String {
    let mut text = String::new();
    append_block(&mut text, (seed, id), tokens);
    text
}

/// Appends the first `tokens` words of the block `id` to `text`.
pub(super) fn append_block(text: &mut String, (seed, id): (u64, u64), tokens: u32) {
    let state = mix(mix(seed) ^ id);
    for place in 0..u64::from(tokens) {
        // Eight words of each hash.
        let hash = mix(state.wrapping_add(place / 8));
        let byte = hash.to_le_bytes()[usize::try_from(place % 8).expect("below eight")];
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(WORDS[usize::from(byte)]);
    }
}

/// Spreads the bits of `id` over the whole word (the finaliser of `splitmix64`).
const fn mix(id: u64) -> u64 {
    let id = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ (id >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_length_and_its_parts_begin_it() {
        let whole = block_text(7, 3, 512);
        assert_eq!(whole.split(' ').count(), 512);
        let part = block_text(7, 3, 100);
        assert_eq!(part.split(' ').count(), 100);
        assert!(whole.starts_with(&format!("{part} ")));
        assert_eq!(block_text(7, 3, 512), whole);
    }

    #[test]
    fn other_ids_and_other_seeds_give_other_words() {
        let first = |seed, id| block_text(seed, id, 8);
        let mut seen: Vec<String> = (0..2_000).map(|id| first(7, id)).collect();
        seen.extend((0..2_000).map(|id| first(8, id)));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4_000);
    }
}
