//! What became of a file: rows that could not be used, passes over it, conversations that broke.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::UnusableFile;

/// Bad rows whose text is kept.
const LISTED: usize = 20;

/// Counts while a file is read and sent.
#[derive(Debug)]
pub(in crate::app) struct Tally {
    name: String,
    skips: bool,
    read: Mutex<Read>,
    cut: AtomicU64,
    unsent: AtomicU64,
    forgotten: AtomicU64,
    wraps: AtomicU64,
}

#[derive(Debug, Default)]
struct Read {
    bad: u64,
    listed: Vec<String>,
    broken: Option<String>,
    passes: u64,
    notes: BTreeMap<&'static str, u64>,
}

/// What became of a file that prompts came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub name: String,
    /// Whether rows that cannot be used were to be passed over.
    pub skips_bad_rows: bool,
    /// Rows that could not be used.
    pub bad_rows: u64,
    /// The first of them, in words.
    pub listed: Vec<String>,
    /// Why it could not be read to its end.
    pub broken: Option<String>,
    /// How often it was begun again.
    pub wraps: u64,
    /// What was odd in it and was put right or left out, and how often.
    pub notes: Vec<(&'static str, u64)>,
    /// Conversations that ended with a turn that failed or was refused.
    pub cut_sessions: u64,
    /// Turns that were never due since their conversation or the run ended before.
    pub unsent_turns: u64,
    /// Sessions of a recording that were forgotten while there were very many: what came of them
    /// later did not wait for what came before, nor carry it.
    pub forgotten_sessions: u64,
}

impl Tally {
    pub(in crate::app) fn new(name: String, skips: bool) -> Self {
        Self {
            name,
            skips,
            read: Mutex::default(),
            cut: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            wraps: AtomicU64::new(0),
        }
    }

    /// A row cannot be used.
    pub(super) fn bad(&self, why: String) {
        let read = &mut *self.read();
        read.bad += 1;
        if read.listed.len() < LISTED {
            read.listed.push(why);
        }
    }

    /// The rest of the file cannot be read.
    pub(super) fn broke(&self, why: String) {
        self.read().broken.get_or_insert(why);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.read().broken.is_some()
    }

    /// The file is read again from its beginning.
    pub(super) fn wrapped(&self) {
        self.read().passes += 1;
    }

    /// What was odd so far in this pass: in files `before` the one that is open, and in that. Of
    /// later passes it would be the same.
    pub(super) fn note(
        &self,
        before: &BTreeMap<&'static str, u64>,
        now: &BTreeMap<&'static str, u64>,
    ) {
        let read = &mut *self.read();
        if read.passes > 0 {
            return;
        }
        read.notes.clone_from(before);
        for (what, count) in now {
            *read.notes.entry(what).or_default() += count;
        }
    }

    /// A conversation ended with a turn that failed, `unsent` turns before its end.
    pub(in crate::app) fn cut(&self, unsent: usize) {
        self.cut.fetch_add(1, Relaxed);
        self.unsent(unsent);
    }

    /// The first conversation of a further pass is sent.
    pub(in crate::app) fn begun_again(&self) {
        self.wraps.fetch_add(1, Relaxed);
    }

    /// So many turns were never due.
    pub(in crate::app) fn unsent(&self, unsent: usize) {
        self.unsent.fetch_add(unsent as u64, Relaxed);
    }

    /// So many sessions of a recording were forgotten.
    pub(in crate::app) fn forgot(&self, sessions: usize) {
        self.forgotten.fetch_add(sessions as u64, Relaxed);
    }

    /// Whether the run may begin with what was read first.
    pub(super) fn check_first(&self, is_empty: bool) -> Result<(), UnusableFile> {
        let read = self.read();
        if let Some(bad) = read.listed.first().filter(|_| !self.skips) {
            return Err(UnusableFile(format!(
                "{bad}\n  (with `skip_bad_rows` such rows are passed over and counted)"
            )));
        }
        match &read.broken {
            Some(broken) => Err(UnusableFile(broken.clone())),
            None if is_empty => Err(UnusableFile(format!(
                "{}: nothing in it can be sent\n  wanted: at least one row that is",
                self.name
            ))),
            None => Ok(()),
        }
    }

    /// All of it.
    pub(in crate::app) fn report(&self) -> FileReport {
        let read = self.read();
        FileReport {
            name: self.name.clone(),
            skips_bad_rows: self.skips,
            bad_rows: read.bad,
            listed: read.listed.clone(),
            broken: read.broken.clone(),
            wraps: self.wraps.load(Relaxed),
            notes: read
                .notes
                .iter()
                .map(|(what, count)| (*what, *count))
                .collect(),
            cut_sessions: self.cut.load(Relaxed),
            unsent_turns: self.unsent.load(Relaxed),
            forgotten_sessions: self.forgotten.load(Relaxed),
        }
    }

    fn read(&self) -> std::sync::MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
