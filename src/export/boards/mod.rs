//! Boards for Grafana 11 and later, as JSON.
//!
//! Text only: a panel is a title, a sentence, and queries over metrics of the catalog or over
//! what the rules record. Every quantile comes in two forms, for classic and for native
//! histograms; the variable `histograms` says which one is drawn. Data sources are variables;
//! the ids of the boards are fixed, so that links from alerts and from one board to another hold.

mod board;
mod health;
mod overview;
mod panel;
mod query;
mod slo;
mod stream;
mod why;

use serde_json::Value;

/// A board.
#[derive(Debug, Clone, PartialEq)]
pub struct Board {
    /// Its file is called so, with `.json` at the end.
    pub name: &'static str,
    /// What Grafana reads.
    pub json: Value,
}

/// All boards.
#[must_use]
pub fn boards() -> [Board; 4] {
    [
        overview::board(),
        stream::board(),
        why::board(),
        health::board(),
    ]
}

#[cfg(test)]
mod tests;
