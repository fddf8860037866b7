//! The set of blocks seen: 8 bytes for each slot, nothing else.
//!
//! Open addressing in 256 parts that grow one by one, so that growing never needs the whole set
//! twice. Above its limit it keeps half of all hashes (fixed-size SHARDS: Waldspurger and others,
//! FAST '15), and half of those, as often as it takes.

use crate::load::trace::hash::Sampling;

const PARTS: usize = 256;

/// Hashes that were seen.
#[derive(Debug)]
pub(in crate::load::trace) struct BlockSet {
    parts: Vec<Part>,
    /// An empty slot is 0, so the hash 0 has a place of its own.
    has_zero: bool,
    count: usize,
    most: usize,
    sampling: Sampling,
}

#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    used: usize,
}

impl BlockSet {
    /// A set of at most `most` hashes.
    pub(in crate::load::trace) fn new(most: usize) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Part::default()).collect(),
            has_zero: false,
            count: 0,
            most,
            sampling: Sampling::default(),
        }
    }

    pub(in crate::load::trace) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// What stands where `hash` would stand first. Reading several of these in a row lets the
    /// processor wait for them all at once.
    pub(super) fn first_slot(&self, hash: u64) -> u64 {
        let slots = &self.parts[part_of(hash)].slots;
        match slots.len() {
            0 => 0,
            length => slots[place(hash, length)],
        }
    }

    pub(in crate::load::trace) fn contains(&self, hash: u64) -> bool {
        let slots = &self.parts[part_of(hash)].slots;
        if hash == 0 {
            return self.has_zero;
        }
        if slots.is_empty() {
            return false;
        }
        let mut at = place(hash, slots.len());
        while slots[at] != 0 {
            if slots[at] == hash {
                return true;
            }
            at = (at + 1) & (slots.len() - 1);
        }
        false
    }

    /// Adds `hash`, which the sampling keeps; true if it was not there.
    pub(in crate::load::trace) fn insert(&mut self, hash: u64) -> bool {
        let new = if hash == 0 {
            !std::mem::replace(&mut self.has_zero, true)
        } else {
            self.parts[part_of(hash)].insert(hash)
        };
        self.count += usize::from(new);
        if self.count > self.most && self.sampling.halvings < Sampling::MOST {
            self.halve();
        }
        new
    }

    /// Forgets every other hash.
    fn halve(&mut self) {
        self.sampling.halvings += 1;
        let sampling = self.sampling;
        self.has_zero &= sampling.keeps(0);
        self.count = usize::from(self.has_zero);
        for part in &mut self.parts {
            let length = part.slots.len();
            part.rebuild(length, sampling);
            self.count += part.used;
        }
    }
}

/// The uppermost eight bits.
fn part_of(hash: u64) -> usize {
    (hash >> 56) as usize
}

/// The lowest bits; `length` is a power of two.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the mask is smaller than a usize"
)]
fn place(hash: u64, length: usize) -> usize {
    hash as usize & (length - 1)
}

impl Part {
    fn insert(&mut self, hash: u64) -> bool {
        // Three quarters full is the most at which linear probing is still short.
        if self.used * 4 >= self.slots.len() * 3 {
            let length = (self.slots.len() * 2).max(64);
            self.rebuild(length, Sampling::default());
        }
        let new = put(&mut self.slots, hash);
        self.used += usize::from(new);
        new
    }

    /// The same hashes, less those not kept, in a table of `length`.
    fn rebuild(&mut self, length: usize, sampling: Sampling) {
        let old = std::mem::replace(&mut self.slots, vec![0; length]);
        self.used = 0;
        for hash in old {
            if hash != 0 && sampling.keeps(hash) {
                self.used += usize::from(put(&mut self.slots, hash));
            }
        }
    }
}

fn put(slots: &mut [u64], hash: u64) -> bool {
    let mut at = place(hash, slots.len());
    loop {
        match slots[at] {
            0 => {
                slots[at] = hash;
                return true;
            }
            there if there == hash => return false,
            _ => at = (at + 1) & (slots.len() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::trace::hash::near;

    #[test]
    fn it_is_a_set() {
        let mut set = BlockSet::new(usize::MAX);
        assert!(set.insert(0));
        assert!(!set.insert(0));
        for id in 1..=50_000 {
            assert!(set.insert(near(id)));
        }
        for id in 1..=50_000 {
            assert!(!set.insert(near(id)));
        }
        assert_eq!(set.len(), 50_001);
        assert_eq!(set.sampling(), Sampling { halvings: 0 });
    }

    #[test]
    fn above_its_limit_it_keeps_a_sample() {
        let mut set = BlockSet::new(1_000);
        for id in 0..100_000 {
            let hash = near(id);
            if set.sampling().keeps(hash) {
                set.insert(hash);
            }
        }
        // 100,000 are brought below 1,000 by seven halvings: 781 are left to expect.
        assert_eq!(set.sampling(), Sampling { halvings: 7 });
        assert!((690..870).contains(&set.len()), "{}", set.len());
        let kept = (0..100_000)
            .filter(|id| set.sampling().keeps(near(*id)))
            .collect::<Vec<_>>();
        assert_eq!(kept.len(), set.len());
        for id in kept {
            assert!(!set.insert(near(id)));
        }
    }
}
