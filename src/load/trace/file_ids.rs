//! Ids of blocks that are those of a session, as ids of the whole file: each session gets a range
//! of its own. Sessions come one after the other.

use super::hash::mix;
use super::row::{BlockScope, TraceRow};

/// Turns ids of sessions into ids of the file.
#[derive(Debug, Default)]
pub struct FileIds {
    session: Option<String>,
    index: u64,
}

/// Ids of one session; those seen are counts of blocks.
const SPACE: u64 = 1 << 32;

impl FileIds {
    /// Gives the blocks of `row` ids of the file, if they are those of its session.
    pub fn widen(&mut self, row: &mut TraceRow) {
        if row.scope == BlockScope::File {
            return;
        }
        if self.session != row.session {
            self.session.clone_from(&row.session);
            self.index += 1;
        }
        for id in &mut row.blocks {
            let wide = self.index.checked_mul(SPACE).filter(|_| *id < SPACE);
            *id = wide.map_or_else(|| mix(mix(*id) ^ self.index), |base| base + *id);
        }
        row.scope = BlockScope::File;
    }
}
