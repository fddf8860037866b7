//! Opens a file of prompts and finds out what it is.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::parts::parts;
use crate::config::PromptFile;
use crate::load::trace::{
    Bodies, Detected, Entries, Format, Kind, LONGEST_LINE, ReadOptions, Rows, Source,
};

/// A quarter of a MB: fewer calls for the same bytes.
const BUFFER: usize = 256 << 10;

/// A file of prompts cannot be used, and why, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnusableFile(pub(super) String);

/// A reader of any file.
type Bytes = Box<dyn BufRead + Send>;

/// What is in an open file.
pub(super) enum Given {
    /// A trace.
    Rows(Box<Rows<Bytes>>),
    /// A data set.
    Entries(Box<Entries<Bytes>>),
}

/// A file that is open, and those that follow it.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) detected: Detected,
    pub(super) given: Given,
    /// The further files of a directory.
    pub(super) rest: VecDeque<PathBuf>,
}

/// Opens `file` at its beginning: the first one, if it is a directory.
///
/// # Errors
///
/// If it cannot be opened, or is of no format that is known.
pub(super) fn open(file: &PromptFile) -> Result<Opened, UnusableFile> {
    let mut rest = VecDeque::from(parts(&file.path).map_err(UnusableFile)?);
    let first = rest.pop_front().unwrap_or_else(|| file.path.clone());
    let (detected, given) = open_part(file, &first, None)?;
    Ok(Opened {
        name: first.display().to_string(),
        detected,
        given,
        rest,
    })
}

/// Opens `path`, one of the files that `file` stands for; the one before it was of the format
/// `before`.
///
/// # Errors
///
/// If it cannot be opened, is of no format that is known, or of another one.
pub(super) fn open_part(
    file: &PromptFile,
    path: &Path,
    before: Option<Format>,
) -> Result<(Detected, Given), UnusableFile> {
    let name = path.display().to_string();
    let unreadable = |error: io::Error| {
        UnusableFile(format!(
            "{name}: {error}\n  wanted: a data set or a trace that can be read"
        ))
    };
    let opened = File::open(path).map(|file| BufReader::with_capacity(BUFFER, file));
    let source = opened.and_then(Source::open).map_err(unreadable)?;
    let detected = detect(file, &name, &source)?;
    let format = detected.format;
    if let Some(before) = before.filter(|before| *before != format) {
        return Err(UnusableFile(format!(
            "{name}: `{}`: {}\n  wanted: `{}`, as the file before it\n  hint: name the format if it is the same",
            format.name(),
            detected.reason,
            before.name()
        )));
    }
    let not_its_kind = |error| UnusableFile(format!("{name}: {error}"));
    let given = match format.kind() {
        Kind::Prompts => {
            let reader: Bytes = Box::new(source.into_reader());
            let entries = Entries::open(format, LONGEST_LINE, reader, name.as_str());
            Given::Entries(Box::new(entries.map_err(not_its_kind)?))
        }
        Kind::Trace => {
            let mut options = ReadOptions::of(format);
            options.block_tokens = file.block_tokens.unwrap_or(options.block_tokens);
            options.bodies = Bodies::Keep;
            Given::Rows(Box::new(if format == Format::Baseten {
                parquet(path, (options, &name))?
            } else {
                let reader: Bytes = Box::new(source.into_reader());
                Rows::open(format, options, reader, name.as_str()).map_err(not_its_kind)?
            }))
        }
    };
    Ok((detected, given))
}

fn detect(file: &PromptFile, name: &str, source: &Source) -> Result<Detected, UnusableFile> {
    let names = || Format::ALL.map(Format::name).join(", ");
    let Some(given) = &file.format else {
        return Format::detect(source.head()).map_err(|found| {
            UnusableFile(format!(
                "{name}: {found}\n  wanted: one of {}\n  hint: name the format if it is one of these",
                names()
            ))
        });
    };
    let format = Format::named(given)
        .ok_or_else(|| UnusableFile(format!("format: `{given}`\n  wanted: one of {}", names())))?;
    Ok(Detected {
        format,
        reason: "as it is named".to_owned(),
    })
}

/// A Parquet file is read from its end, so it is opened as a file and not as a stream.
#[cfg(feature = "parquet")]
fn parquet(path: &Path, (options, name): (ReadOptions, &str)) -> Result<Rows<Bytes>, UnusableFile> {
    let opened = File::open(path)
        .map_err(|error| UnusableFile(format!("{name}: {error}\n  wanted: a Parquet file")))?;
    Rows::parquet(options, opened, name).map_err(|error| {
        UnusableFile(format!(
            "{name}: {error}\n  hint: Parquet is read in Baseten's layout"
        ))
    })
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Path, (_, name): (ReadOptions, &str)) -> Result<Rows<Bytes>, UnusableFile> {
    Err(UnusableFile(format!(
        "{name}: Parquet\n  wanted: another format; this program was built without the feature `parquet`"
    )))
}
