//! Blocks in the order in which they were used last, at most so many: 16 bytes for each, and a
//! table of 8-byte entries, which have a part of the key so that a search stays in the table.

/// No node.
const NONE: u32 = u32::MAX;

/// Keys with the one used last in front.
#[derive(Debug)]
pub(super) struct Lru {
    nodes: Vec<Node>,
    /// A power of two, at most half full.
    table: Vec<Entry>,
    front: u32,
    back: u32,
    most: usize,
}

/// An entry of the table.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The lowest bits of the key, which say where it belongs.
    tag: u32,
    /// Place in the nodes plus one; 0 if the entry is empty.
    place: u32,
}

#[derive(Debug)]
struct Node {
    key: u64,
    before: u32,
    after: u32,
}

impl Lru {
    /// For at most `most` keys, 1 or more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            nodes: Vec::new(),
            table: vec![Entry::default(); 64],
            front: NONE,
            back: NONE,
            most: most.max(1),
        }
    }

    /// Moves `key` to the front, or puts it there; then the last makes room. `found` is where
    /// [`Lru::find`] found it before, which may have become the place of another key since.
    pub(super) fn touch(&mut self, key: u64, found: Option<u32>) {
        let is_there = |node: &u32| self.nodes[*node as usize].key == key;
        if let Some(node) = found.filter(is_there).or_else(|| self.find(key)) {
            self.move_to_front(node);
            return;
        }
        let node = if self.nodes.len() < self.most {
            self.nodes.push(Node {
                key,
                before: NONE,
                after: NONE,
            });
            u32::try_from(self.nodes.len() - 1).expect("the most is far below four billion")
        } else {
            let node = self.back;
            self.unlink(node);
            self.remove_from_table(self.nodes[node as usize].key);
            self.nodes[node as usize].key = key;
            node
        };
        self.link_front(node);
        if self.nodes.len() * 2 > self.table.len() {
            self.table = vec![Entry::default(); self.table.len() * 2];
            for node in 0..self.nodes.len() {
                self.add_to_table(u32::try_from(node).expect("as above"));
            }
        } else {
            self.add_to_table(node);
        }
    }

    fn home(&self, tag: u32) -> usize {
        // Keys are hashes already, and the table has far fewer than four billion entries.
        tag as usize & (self.table.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.table.len() - 1)
    }

    /// Where `key` is.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        self.entry_of(key).map(|at| self.table[at].place - 1)
    }

    fn entry_of(&self, key: u64) -> Option<usize> {
        let tag = tag(key);
        let mut at = self.home(tag);
        loop {
            let entry = self.table[at];
            let node = entry.place.checked_sub(1)?;
            if entry.tag == tag && self.nodes[node as usize].key == key {
                return Some(at);
            }
            at = self.next(at);
        }
    }

    fn add_to_table(&mut self, node: u32) {
        let tag = tag(self.nodes[node as usize].key);
        let mut at = self.home(tag);
        while self.table[at].place != 0 {
            at = self.next(at);
        }
        let place = node + 1;
        self.table[at] = Entry { tag, place };
    }

    /// Takes `key` out and moves up what stood behind it only because it was there.
    fn remove_from_table(&mut self, key: u64) {
        let Some(mut hole) = self.entry_of(key) else {
            return;
        };
        let mask = self.table.len() - 1;
        let mut at = self.next(hole);
        while self.table[at].place != 0 {
            let wanted = self.home(self.table[at].tag);
            // How far it stands from its home, and how far the hole does, along the probe.
            if at.wrapping_sub(wanted) & mask >= at.wrapping_sub(hole) & mask {
                self.table[hole] = self.table[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.table[hole] = Entry::default();
    }

    fn move_to_front(&mut self, node: u32) {
        if self.front != node {
            self.unlink(node);
            self.link_front(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        match before {
            NONE => self.front = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => self.back = before,
            after => self.nodes[after as usize].before = before,
        }
    }

    fn link_front(&mut self, node: u32) {
        let front = self.front;
        self.nodes[node as usize].before = NONE;
        self.nodes[node as usize].after = front;
        match front {
            NONE => self.back = node,
            front => self.nodes[front as usize].before = node,
        }
        self.front = node;
    }
}

/// The lowest half of the key.
#[expect(clippy::cast_possible_truncation, reason = "the lowest half is wanted")]
const fn tag(key: u64) -> u32 {
    key as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::trace::hash;

    /// Ids as they are would crowd a part of the table.
    fn key(id: u64) -> u64 {
        hash::near(id)
    }

    #[test]
    fn the_one_not_used_for_longest_goes() {
        let mut lru = Lru::new(2);
        lru.touch(key(1), None);
        lru.touch(key(2), None);
        lru.touch(key(1), None);
        lru.touch(key(3), None);
        assert!(lru.find(key(1)).is_some());
        assert!(lru.find(key(2)).is_none());
        assert!(lru.find(key(3)).is_some());
    }

    proptest! {
        // The model is a list with the one used last in front.
        #[test]
        fn it_behaves_as_a_list(most in 1_usize..40, ids in prop::collection::vec(0_u64..80, 0..400)) {
            let mut lru = Lru::new(most);
            let mut list: Vec<u64> = Vec::new();
            for id in ids {
                {
                    let found = lru.find(key(id));
                    lru.touch(key(id), found);
                };
                list.retain(|there| *there != id);
                list.insert(0, id);
                list.truncate(most);
                for id in 0..80 {
                    prop_assert_eq!(lru.find(key(id)).is_some(), list.contains(&id));
                }
            }
        }
    }
}
