//! The same prompts in blocks of another size.
//!
//! An id stands for its block and everything before it. So larger blocks take the id of the last
//! smaller one in them, and smaller ones get ids derived from the larger: which prompts share how
//! much stays as exact as the larger blocks can say it.

use super::hash::mix;
use super::row::TraceRow;

/// Changes the blocks of `row` to `to` tokens; false if one size does not go into the other, and
/// the blocks are gone.
pub(super) fn reblock(row: &mut TraceRow, to: u32) -> bool {
    let from = row.block_tokens;
    row.block_tokens = to;
    if from == to || row.blocks.is_empty() || from == 0 {
        return true;
    }
    if to.is_multiple_of(from) {
        let each = (to / from) as usize;
        let larger = row.blocks.chunks(each).filter_map(<[u64]>::last);
        row.blocks = larger.copied().collect();
        return true;
    }
    if from.is_multiple_of(to) {
        let each = from / to;
        let covered = row.blocks.len() as u64 * u64::from(from);
        let tokens = row
            .input_tokens
            .map_or(covered, |input| covered.min(u64::from(input)));
        let count = usize::try_from(tokens.div_ceil(u64::from(to))).unwrap_or(usize::MAX);
        let smaller = row
            .blocks
            .iter()
            .flat_map(|id| (0..each).map(|part| derived(*id, each, part)));
        row.blocks = smaller.take(count).collect();
        return true;
    }
    row.blocks.clear();
    false
}

/// The id of a part of a block, or of one of its copies; different for different blocks and
/// parts as long as `each` is the same.
pub(super) fn derived(id: u64, each: u32, part: u32) -> u64 {
    id.checked_mul(u64::from(each))
        .and_then(|base| base.checked_add(u64::from(part)))
        .unwrap_or_else(|| mix(mix(id).wrapping_add(u64::from(part))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(input: u32, from: u32, ids: &[u64], to: u32) -> Option<Vec<u64>> {
        let mut row = TraceRow {
            input_tokens: Some(input),
            block_tokens: from,
            blocks: ids.to_vec(),
            ..TraceRow::default()
        };
        let kept = reblock(&mut row, to);
        assert_eq!(row.block_tokens, to);
        kept.then_some(row.blocks)
    }

    #[test]
    fn larger_blocks_take_the_last_id_in_them() {
        // 9 tokens in blocks of 2: the last is a part.
        assert_eq!(changed(9, 2, &[1, 2, 3, 4, 5], 4), Some(vec![2, 4, 5]));
        assert_eq!(changed(8, 2, &[1, 2, 3, 4], 8), Some(vec![4]));
        assert_eq!(changed(8, 2, &[1, 2, 3, 4], 2), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn smaller_blocks_get_ids_of_their_own() {
        // 9 tokens in blocks of 8: a whole block and a part of one token.
        assert_eq!(changed(9, 8, &[10, 11], 4), Some(vec![20, 21, 22]));
        assert_eq!(changed(16, 8, &[10, 11], 4), Some(vec![20, 21, 22, 23]));
        // The list covers the head of the prompt only.
        assert_eq!(changed(99, 8, &[10], 4), Some(vec![20, 21]));
        let large = changed(16, 8, &[u64::MAX, u64::MAX - 1], 4).expect("goes into it");
        assert_eq!(large.len(), 4);
        assert_ne!(large[0], large[1]);
        assert_ne!(large[1], large[2]);
    }

    #[test]
    fn sizes_that_do_not_go_into_each_other_lose_the_blocks() {
        assert_eq!(changed(9, 3, &[1, 2, 3], 2), None);
    }
}
