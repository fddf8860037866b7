//! What a server was over a window of time, from the pages it wrote and from our own requests.
//!
//! Pure: pages and records come in as they end, a window is asked for by its two instants.

mod buckets;
mod counts;
mod gauges;
mod history;
mod marks;
mod outside;
mod window;

pub use buckets::{BucketQuantile, HistogramWindow};
pub use counts::CounterWindow;
pub(in crate::aggregate) use counts::JITTER;
pub use gauges::GaugeWindow;
pub use history::ServerHistory;
pub use marks::{ServerMark, ServerMarks};
pub use outside::Outside;
pub use window::{OwnTraffic, ServerWindow};

#[cfg(test)]
mod tests;
