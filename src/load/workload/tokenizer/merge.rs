//! Byte-pair merging: how many tokens one piece of text becomes.
//!
//! Again and again the two neighbours are joined whose union has the lowest rank, the leftmost
//! first, until no union is a token. With a heap of candidates, so that one long piece (a
//! thousand dashes, a text without spaces) costs n log n and not n².

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Tokens by their bytes.
pub(super) type Ranks = HashMap<Box<[u8]>, u32>;

/// No such part.
const NONE: usize = usize::MAX;

/// A part of the piece: from where it stands in the list to `end`.
#[derive(Clone, Copy)]
struct Part {
    end: usize,
    /// Start of the part before it, or [`NONE`].
    before: usize,
    /// It was joined to the part before it.
    gone: bool,
}

/// The number of tokens of `piece`, of which every byte is a token.
pub(super) fn count(piece: &[u8], ranks: &Ranks) -> usize {
    if piece.len() < 2 || ranks.contains_key(piece) {
        return piece.len().min(1);
    }
    let mut parts: Vec<Part> = (0..piece.len())
        .map(|start| Part {
            end: start + 1,
            before: start.checked_sub(1).unwrap_or(NONE),
            gone: false,
        })
        .collect();
    // Rank, start and end of a union. One that has changed since is passed over.
    let mut unions = BinaryHeap::new();
    let offer = |unions: &mut BinaryHeap<_>, start: usize, end: usize| {
        if let Some(rank) = ranks.get(&piece[start..end]) {
            unions.push(Reverse((*rank, start, end)));
        }
    };
    for start in 0..piece.len() - 1 {
        offer(&mut unions, start, start + 2);
    }
    let mut left = piece.len();
    while let Some(Reverse((_, start, end))) = unions.pop() {
        let (first, middle) = (parts[start], parts[start].end);
        if first.gone || middle >= end || parts[middle].gone || parts[middle].end != end {
            continue;
        }
        parts[start].end = end;
        parts[middle].gone = true;
        left -= 1;
        if end < piece.len() {
            parts[end].before = start;
            offer(&mut unions, start, parts[end].end);
        }
        if first.before != NONE {
            offer(&mut unions, first.before, end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(tokens: &[&str]) -> Ranks {
        (0..)
            .zip(tokens)
            .map(|(rank, token)| (token.as_bytes().into(), rank))
            .collect()
    }

    #[test]
    fn the_lowest_rank_is_joined_first() {
        // "ab" before "bc": a b c → ab c, though "bc" and "abc" are tokens.
        let first = ranks(&["a", "b", "c", "ab", "bc"]);
        assert_eq!(count(b"abc", &first), 2);
        assert_eq!(count(b"abcbc", &first), 3, "ab c bc");
        let whole = ranks(&["a", "b", "c", "ab", "bc", "abc"]);
        assert_eq!(count(b"abc", &whole), 1);
        assert_eq!(count(b"abcabcc", &whole), 3, "abc abc c");
    }

    #[test]
    fn equal_ranks_are_joined_from_the_left() {
        let pairs = ranks(&["a", "aa", "aaaa"]);
        for (length, tokens) in [
            (0, 0),
            (1, 1),
            (2, 1),
            (3, 2),
            (4, 1),
            (5, 2),
            (7, 3),
            (8, 2),
        ] {
            let piece = vec![b'a'; length];
            assert_eq!(count(&piece, &pairs), tokens, "{length} letters");
        }
    }

    #[test]
    fn a_long_piece_takes_no_square_of_its_length() {
        let pairs = ranks(&["a", "aa", "aaaa", "b"]);
        assert_eq!(count(&vec![b'a'; 400_000], &pairs), 100_000);
        assert_eq!(count(&b"ab".repeat(200_000), &pairs), 400_000);
    }
}
