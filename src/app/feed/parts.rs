//! The files of a directory: parts of one data set or recording, in the order of their names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The files that `path` stands for: itself, or what is in it. Names that begin with `.` or `_`
/// are not for readers, and what is empty has nothing to say.
///
/// # Errors
///
/// If it cannot be looked at, has another directory in it, or nothing to read; in words.
pub fn parts(path: &Path) -> Result<Vec<PathBuf>, String> {
    let wanted = "wanted: a data set or a trace that can be read, or a directory of such files";
    let unreadable =
        |at: &Path, error: std::io::Error| format!("{}: {error}\n  {wanted}", at.display());
    let meta = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !meta.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut parts = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        let entry = entry.map_err(|error| unreadable(path, error))?;
        let is_hidden = |byte: &u8| matches!(byte, b'.' | b'_');
        let name = entry.file_name();
        if name.as_encoded_bytes().first().is_some_and(is_hidden) {
            continue;
        }
        let part = entry.path();
        let meta = fs::metadata(&part).map_err(|error| unreadable(&part, error))?;
        if meta.is_dir() {
            return Err(format!(
                "{}: is a directory\n  wanted: only files in `{}`",
                part.display(),
                path.display()
            ));
        }
        // What is no plain file has no length, and may have much to say.
        if !meta.is_file() || meta.len() > 0 {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return Err(format!(
            "{}: a directory without a file that is not empty\n  {wanted}",
            path.display()
        ));
    }
    parts.sort();
    Ok(parts)
}

/// That the file `name`, whose first row is at `at`, does not go on where the one before ended,
/// at `last`; in words.
#[must_use]
pub fn not_a_part(name: &str, (at, last): (Duration, Duration)) -> String {
    format!(
        "{name}: its first row is at {} s, and the file before it ends at {} s\n  wanted: parts of one recording, whose times go on in the order of their names",
        at.as_secs_f64(),
        last.as_secs_f64()
    )
}
