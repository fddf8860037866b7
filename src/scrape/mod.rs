//! Polls what a server says of itself.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `scrape` | `Scraper` | poll server `/metrics`, DCGM, NVML into `Sample`s | interpret them |

mod beside;
mod detect;
mod engine;
mod gpu;
mod identity;
mod node;
mod nvml;
mod page;
mod pod;
mod poll;
mod process;
mod read;

pub use detect::{Detected, Said, detect, version_path};
pub use engine::publishes;
pub use gpu::{GpuPage, GpuPoll, read_gpus};
pub use identity::{IdentityPoll, VERSION_PATHS, VersionPlace};
pub use node::{NodeHere, NodePoll, read_node};
pub use nvml::{DriverError, GpuDriver, NvmlTarget, NvmlWatch, open_driver};
pub use page::{Exemplar, Item, Labels, Line, Lines, MAX_LINE, MAX_LINES, Type};
pub use pod::PodPoll;
pub use poll::{PATHS, Poll};
pub use process::Listening;
pub use read::{PageRead, read_page};
