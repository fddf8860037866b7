//! What is wrong with a row, and where: file, line, field, value, and what was wanted.

use std::fmt;
use std::io;

/// Longest piece of a foreign file that a message shows, in characters.
const SHOWN: usize = 60;

/// What is wrong, without the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field, or what stands for it: `row` if it is the whole row.
    pub field: String,
    /// What stands there.
    pub value: String,
    /// What was wanted.
    pub wanted: String,
    /// What may help.
    pub hint: Option<String>,
}

impl Fault {
    /// `field` has `value`, which is not what was `wanted`.
    pub(super) fn new(
        field: impl Into<String>,
        value: &str,
        wanted: impl Into<String>,
    ) -> Box<Self> {
        Box::new(Self {
            field: field.into(),
            value: shown(value),
            wanted: wanted.into(),
            hint: None,
        })
    }

    /// `field` is not there.
    pub(super) fn missing(field: &str, wanted: impl Into<String>) -> Box<Self> {
        Self::new(field, "(nothing)", wanted)
    }

    /// The same with something that may help.
    pub(super) fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }
}

/// The beginning of a foreign text, without control characters.
fn shown(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// Why a row cannot be read.
#[derive(Debug)]
pub enum RowError {
    /// This row is bad; the next may be good.
    Row {
        /// The file.
        name: String,
        /// Its line, from 1; for Parquet the row.
        line: u64,
        /// What is wrong.
        fault: Box<Fault>,
    },
    /// Nothing more can be read from the file.
    File {
        /// The file.
        name: String,
        /// The last line that could be read, from 1; 0 before the first.
        line: u64,
        /// What is wrong.
        error: io::Error,
    },
}

impl RowError {
    /// Whether reading can go on with the next row.
    #[must_use]
    pub fn can_go_on(&self) -> bool {
        matches!(self, Self::Row { .. })
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { name, line, fault } => {
                let Fault {
                    field,
                    value,
                    wanted,
                    hint,
                } = fault.as_ref();
                write!(f, "{name}:{line}: {field}: `{value}`\n  wanted: {wanted}")?;
                match hint {
                    Some(hint) => write!(f, "\n  hint: {hint}"),
                    None => Ok(()),
                }
            }
            Self::File { name, line, error } => {
                write!(f, "{name}: after line {line}: {error}")?;
                if error.kind() == io::ErrorKind::UnexpectedEof {
                    write!(
                        f,
                        "\n  wanted: a whole file\n  hint: the compressed data ends too early, as after a broken download"
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for RowError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_row_is_told_with_place_value_and_wish() {
        let error = RowError::Row {
            name: "a.jsonl".to_owned(),
            line: 7,
            fault: Fault::new("timestamp", "-5", "milliseconds of 0 or more").hint("look again"),
        };
        assert_eq!(
            error.to_string(),
            "a.jsonl:7: timestamp: `-5`\n  wanted: milliseconds of 0 or more\n  hint: look again"
        );
        assert!(error.can_go_on());
    }

    #[test]
    fn foreign_text_is_cut_and_cannot_steer_a_terminal() {
        assert_eq!(shown("a\u{1b}[31m"), "a [31m");
        let long = "x".repeat(61);
        assert_eq!(shown(&long), format!("{}…", "x".repeat(60)));
        assert_eq!(shown(&"x".repeat(60)), "x".repeat(60));
    }
}
