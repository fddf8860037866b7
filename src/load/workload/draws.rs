//! A small stream of choices that one number decides: `splitmix64`.
//!
//! One text, picture or task takes one number from the seeded source that was handed in, and
//! makes all its choices from it. So how long a text is, or how often it was trimmed, moves
//! nothing that is drawn after it, and the text of an id can be made again without its
//! predecessors. It is not for secrets, nor for lengths and times.

/// An endless stream of choices.
#[derive(Debug, Clone)]
pub(super) struct Draws(u64);

impl Draws {
    /// The choices that `seed` decides.
    pub(super) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The choices that two numbers decide; near numbers give streams that have nothing in
    /// common.
    pub(super) const fn of_both(scope: u64, id: u64) -> Self {
        Self(mixed(scope).wrapping_add(id).rotate_left(32) ^ mixed(id ^ scope.rotate_left(17)))
    }

    /// All of a word.
    pub(super) const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `end`, which is positive; uneven by less than one in 2^32.
    pub(super) const fn below(&mut self, end: u32) -> u32 {
        (((self.word() >> 32) * end as u64) >> 32) as u32
    }

    /// A number from `least` to `most`, both included.
    pub(super) const fn within(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// Whether it happens that happens in one of `of` cases.
    pub(super) const fn one_in(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }

    /// One of `things`, of which there is at least one.
    pub(super) fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        let count = u32::try_from(things.len()).unwrap_or(u32::MAX);
        things[self.below(count) as usize]
    }
}

/// Spreads the bits of a number over the whole word (the finaliser of `splitmix64`).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_splitmix64() {
        // Of the reference implementation with the state 0.
        let mut draws = Draws::of(0);
        assert_eq!(draws.word(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(draws.word(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn choices_are_even_and_within_their_bounds() {
        let mut draws = Draws::of(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[(draws.within(3, 9) - 3) as usize] += 1;
        }
        for count in counts {
            assert!((9_500..10_500).contains(&count), "{counts:?}");
        }
    }

    #[test]
    fn near_numbers_give_different_streams() {
        let mut seen = std::collections::HashSet::new();
        for scope in 0..100 {
            for id in 0..1_000 {
                assert!(
                    seen.insert(Draws::of_both(scope, id).word()),
                    "{scope} {id}"
                );
            }
        }
    }
}
