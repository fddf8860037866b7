//! The page that Prometheus scrapes, in the format it asks for.
//!
//! One walk over the live state, two writers. Names, types and help come from the catalog;
//! nothing is computed here. What the page shows of ourselves comes from the registry of the
//! `prometheus` crate and is written again by our own writers.

pub(super) mod family;
pub mod message;
mod negotiate;
mod protobuf;
#[cfg(test)]
mod tests;
mod text;

use prometheus::proto::MetricFamily;

use super::catalog::Metric;
use crate::aggregate::Live;

pub use negotiate::{Format, content_type, negotiate};

/// A value that is known when the page is made: a catalog entry, its labels, its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// The catalog entry.
    pub metric: &'static Metric,
    /// All labels of the series.
    pub labels: Vec<(&'static str, String)>,
    /// The value, in the metric's unit.
    pub value: f64,
}

/// All that a page shows.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Totals per stream.
    pub live: &'a Live,
    /// What others know at this moment.
    pub gauges: &'a [Gauge],
    /// Our own health, as gathered.
    pub own: &'a [MetricFamily],
}

/// The page in `format`.
#[must_use]
pub fn render(format: Format, view: &View<'_>) -> Vec<u8> {
    match format {
        Format::Text => text::write(view).into_bytes(),
        Format::Protobuf => protobuf::write(view),
    }
}
