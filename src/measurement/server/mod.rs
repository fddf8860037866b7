//! What servers say of themselves, in roles that mean the same for every engine.
//!
//! Seconds, bytes and shares from 0 to 1. What a server does not say is `None`, never zero.

mod engine;
mod missing;
mod page;
mod roles;
mod scrape;

pub use engine::Engine;
pub use missing::missing;
pub use page::{Rank, ServerHistogram, ServerInfo, ServerPage, ServerTotals};
pub use roles::{CounterRole, GaugeRole, HistogramRole};
pub use scrape::{Scrape, ScrapeResult};
