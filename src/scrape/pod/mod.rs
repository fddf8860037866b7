//! The pod of a target, from a volume of Kubernetes' downward API: `name`, `uid`, `labels` and
//! `annotations`.
//!
//! The kubelet puts a new set of files in place at once, by turning the link `..data`: all files
//! are read through where it leads, so that they are of one set.

mod format;
mod poll;

pub use poll::PodPoll;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use self::format::read_pairs;
use crate::config::PodInfoConfig;
use crate::measurement::{NamedImages, PodInfo};

/// Longest part of a file that is read. Annotations have 256 KiB at most; quoted they are longer.
const LONGEST: u64 = 1 << 20;
/// Longest text that is kept: a name has 253 letters, an image with its digest some more.
const LONGEST_TEXT: usize = 1_024;
/// Readings after which it is taken as it is, though the files were changed meanwhile.
const TRIES: usize = 3;

/// What came of one reading.
#[derive(Debug, Default, PartialEq, Eq)]
struct PodReading {
    info: PodInfo,
    /// What was wrong first, in a word.
    trouble: Option<&'static str>,
}

/// Reads the files of `config` as they are now. They lie in memory: nobody waits for a disk.
fn read_pod(config: &PodInfoConfig) -> PodReading {
    let mut reading = PodReading::default();
    for _ in 0..TRIES {
        let set = set_of(&config.dir);
        reading = read_set(&set, config);
        if set_of(&config.dir) == set {
            break;
        }
    }
    reading
}

/// Where the newest set of files lies: behind the link, if there is one.
fn set_of(dir: &Path) -> PathBuf {
    fs::canonicalize(dir.join("..data")).unwrap_or_else(|_| dir.to_owned())
}

fn read_set(set: &Path, config: &PodInfoConfig) -> PodReading {
    let mut reading = PodReading::default();
    let files = ["name", "uid", "labels", "annotations"];
    let [name, uid, labels, annotations] = files.map(|name| reading.text(&set.join(name)));
    let mut images = |text: Option<String>| {
        let text = text?;
        let pairs = read_pairs(&text, |key| config.names_image(key));
        if pairs.bad_lines > 0 {
            reading.trouble.get_or_insert("malformed");
        }
        let kept = pairs.pairs.into_iter();
        let images: NamedImages = kept
            .map(|(key, value)| (key.into(), bounded(&value)))
            .collect();
        Some(images)
    };
    let (labels, annotations) = (images(labels), images(annotations));
    reading.info = PodInfo {
        name: name.and_then(|text| line(&text)),
        uid: uid.and_then(|text| line(&text)),
        labels,
        annotations,
    };
    reading
}

impl PodReading {
    /// The text of the file at `path`, as far as it is read: whole lines, if it is longer.
    fn text(&mut self, path: &Path) -> Option<String> {
        let mut bytes = match head(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => {
                self.trouble.get_or_insert("unreadable");
                return None;
            }
        };
        if bytes.len() as u64 > LONGEST {
            self.trouble.get_or_insert("too_large");
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(end.unwrap_or(0));
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The file at `path` up to a byte more than is read of it.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would be waited for.
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The one line that `text` is; `None` if there is nothing on it.
fn line(text: &str) -> Option<Box<str>> {
    let text = text.trim();
    (!text.is_empty()).then(|| bounded(text))
}

fn bounded(text: &str) -> Box<str> {
    let end = text.floor_char_boundary(LONGEST_TEXT);
    text[..end].into()
}

#[cfg(test)]
mod tests;
