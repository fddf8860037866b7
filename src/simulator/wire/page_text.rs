//! Writes families of a page in text format 0.0.4, row by row.

use std::fmt::{Display, Write as _};

const NEVER: &str = "writing to a `String` cannot fail";

/// A page that grows.
#[derive(Debug, Default)]
pub(super) struct PageText {
    out: String,
}

impl PageText {
    /// What a family is; its rows follow.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect(NEVER);
    }

    /// One row; `labels` are escaped, without braces, and may be empty.
    pub(super) fn row(&mut self, name: &str, labels: &str, value: impl Display) {
        let done = if labels.is_empty() {
            writeln!(self.out, "{name} {value}")
        } else {
            writeln!(self.out, "{name}{{{labels}}} {value}")
        };
        done.expect(NEVER);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}
