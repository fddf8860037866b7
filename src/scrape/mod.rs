//! Polls what a server says of itself.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `scrape` | `Scraper` | poll server `/metrics`, DCGM, NVML into `Sample`s | interpret them |

mod gpu;
mod node;
mod nvml;
mod page;
mod poll;
mod roles;

pub use gpu::{GpuPage, GpuPoll, read_gpus};
pub use node::{NodePoll, read_node};
pub use nvml::{DriverError, GpuDriver, NvmlTarget, NvmlWatch, open_driver};
pub use page::{Labels, Line, Lines, MAX_LINE, MAX_LINES};
pub use poll::Poll;
pub use roles::{Engine, PageState, read_state};
