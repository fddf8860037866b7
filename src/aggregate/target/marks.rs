//! The last marks, and the newest of each kind.

use std::collections::{BTreeMap, VecDeque};

use crate::measurement::{Mark, MarkKind};

/// Marks kept.
const KEPT: usize = 256;

/// All marks of a run, as far as they are kept.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    last: VecDeque<Mark>,
    /// By target and kind: no more than there are of both.
    newest: BTreeMap<(Option<Box<str>>, MarkKind), u64>,
}

impl Marks {
    /// Takes one, of a target of the run or of all.
    pub fn add(&mut self, mark: Mark) {
        let key = (mark.target.clone(), mark.kind);
        let newest = self.newest.entry(key).or_default();
        *newest = mark.unix_ns.max(*newest);
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(mark);
    }

    /// Those that are kept, the one that was told last first.
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.last.iter().rev()
    }

    /// The newest of each kind of each target: target, kind, nanoseconds since the Unix epoch.
    pub fn newest(&self) -> impl Iterator<Item = (Option<&str>, MarkKind, u64)> {
        self.newest
            .iter()
            .map(|((target, kind), unix_ns)| (target.as_deref(), *kind, *unix_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_kept_and_the_newest_of_each_kind_stays() {
        let mut marks = Marks::default();
        let mark = |unix_ns| Mark::new(unix_ns, Some("a"), (MarkKind::Restart, "x"));
        marks.add(Mark::new(7, None, (MarkKind::Posted, "first\nline")));
        for unix_ns in 0..300 {
            marks.add(mark(1_000 - unix_ns));
        }
        assert_eq!(marks.iter().count(), 256);
        assert_eq!(marks.iter().next(), Some(&mark(701)));
        let newest: Vec<_> = marks.newest().collect();
        let wanted = [
            (None, MarkKind::Posted, 7),
            (Some("a"), MarkKind::Restart, 1_000),
        ];
        assert_eq!(newest, wanted);
    }
}
