//! The page, the API and the metrics over HTTP.
//!
//! [`router`] turns a [`SurfaceState`] into routes, [`serve`] puts them on a listener. Every
//! answer is built whole under a short lock and sent without it, so a slow client delays no
//! one. Beyond loopback only the metrics and the two health checks answer.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `web` | `Surface` | HTTP: page, API, probes, tap, metrics | compute a statistic |

mod answer;
mod api;
mod findings;
mod hook;
mod marks;
mod page;
mod rows;
mod serve;
mod server;
mod surface;

#[cfg(test)]
mod tests;

pub use hook::{HOOK_PATH, Take, hook};
pub use serve::serve;
pub use surface::{Exposure, RunInfo, SurfaceState, router};
