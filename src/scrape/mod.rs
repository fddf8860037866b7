//! Polls what a server says of itself.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `scrape` | `Scraper` | poll server `/metrics`, DCGM, NVML into `Sample`s | interpret them |

pub mod page;
mod poll;
pub mod roles;

pub use poll::Poll;
