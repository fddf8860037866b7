//! The directory of the records, taken before anything is sent: it can be written, nothing in
//! the place of the records file would be waited for, and no other run writes there.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// Holds the place; it is free again when this is dropped, or the process ends.
#[derive(Debug)]
pub(super) struct RecordDir {
    _lock: File,
}

impl RecordDir {
    /// Makes `dir` and takes it.
    pub(super) fn take(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let records = dir.join("requests.jsonl");
        // Opening a pipe would wait for somebody who reads it.
        if fs::metadata(&records).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("`requests.jsonl` is there and is no file"));
        }
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true).open(records)?;
        // The records themselves are renamed and removed, so they cannot bear the lock.
        let path = dir.join("requests.lock");
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("`requests.lock` is there and is no file"));
        }
        let lock = options.open(path)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => Err(io::Error::other(
                "another run of tokencanary writes its records there",
            )),
            // A file system without locks has no better answer.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { _lock: lock }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_one_run_at_a_time() {
        let dir = std::env::temp_dir().join(format!("tokencanary-dir-{}", std::process::id()));
        let held = RecordDir::take(&dir).expect("it is ours");
        let refused = RecordDir::take(&dir).expect_err("it is taken").to_string();
        assert_eq!(
            refused,
            "another run of tokencanary writes its records there"
        );
        drop(held);
        assert!(RecordDir::take(&dir).is_ok());
        fs::remove_file(dir.join("requests.jsonl")).expect("ours");
        fs::create_dir(dir.join("requests.jsonl")).expect("ours");
        let refused = RecordDir::take(&dir).expect_err("no file").to_string();
        assert_eq!(refused, "`requests.jsonl` is there and is no file");
        fs::remove_dir_all(&dir).expect("ours");
    }
}
