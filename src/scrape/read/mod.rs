//! From a metrics page to the canonical roles.
//!
//! Series of several engines, models and ranks are kept apart until all are known, and then
//! added up: requests and counts as sums, shares as means. A family that is not on the page, or
//! whose value is no usable number, is `None`, never zero.

mod parts;
mod resolve;

use super::page::Lines;
use crate::measurement::ServerState;
use crate::measurement::server::{Engine, ServerPage};

/// What a page said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageRead {
    /// Its gauges.
    pub state: ServerState,
    /// All else; its engine is `None` if the page is no known engine's, and then nothing is
    /// known.
    pub page: ServerPage,
    /// Samples on it, whatever they are.
    pub samples: u64,
    /// Whether the page was longer, or of more parts, than what is read of one: nothing is known
    /// then, since a sum over some of the series would be wrong, and nobody would notice.
    pub cut: bool,
    /// Whether it ended in `# EOF`.
    pub ended: bool,
}

impl PageRead {
    /// Whose page it is.
    #[must_use]
    pub const fn engine(&self) -> Option<Engine> {
        self.page.engine
    }
}

/// Reads the roles from `page`. Where it tells models apart and `model` is one of them, only that
/// model counts.
#[must_use]
pub fn read_page(page: &str, model: Option<&str>) -> PageRead {
    let mut lines = Lines::new(page);
    let mut parts = parts::Parts::default();
    let mut samples = 0;
    for line in lines.by_ref() {
        samples += 1;
        parts.add(&line);
    }
    let cut = lines.is_cut() || parts.is_cut();
    let mut read = PageRead {
        samples,
        cut,
        ended: lines.has_ended(),
        ..PageRead::default()
    };
    let engine = parts.engine(model);
    if !cut && let Some(dialect) = engine {
        (read.state, read.page) = resolve::resolve(parts, dialect, model);
    }
    read.page.engine = engine.map(|at| super::engine::DIALECTS[at].engine);
    read.page.bad_lines = lines.bad();
    read
}

#[cfg(test)]
mod tests;
