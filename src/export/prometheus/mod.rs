//! The page that Prometheus scrapes, in the format it asks for.
//!
//! One walk over the live state, one writer for both kinds of text and one for protobuf. Names, types and help come from the catalog;
//! nothing is computed here. What the page shows of ourselves comes from the registry of the
//! `prometheus` crate and is written again by our own writers.

pub(super) mod family;
pub mod message;
mod negotiate;
mod pack;
mod protobuf;
#[cfg(test)]
mod tests;
mod text;

use prometheus::proto::MetricFamily;

use super::catalog::Metric;
use crate::aggregate::Live;

pub use family::labels_of;
pub use negotiate::{Encoding, Format, content_type, negotiate, negotiate_encoding};
pub use pack::pack;
use text::Dialect;

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
    /// When all counters were at 0, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
}

/// The page in `format`.
#[must_use]
pub fn render(format: Format, view: &View<'_>) -> Vec<u8> {
    match format {
        Format::Text => text::write(view, Dialect::Plain).into_bytes(),
        Format::OpenMetrics => text::write(view, Dialect::OpenMetrics).into_bytes(),
        Format::Protobuf => protobuf::write(view),
    }
}
