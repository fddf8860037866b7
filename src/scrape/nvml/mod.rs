//! The GPUs of this machine, as its NVIDIA driver tells them.
//!
//! The driver's library is loaded when the program runs; where there is none nothing happens but
//! one line in the log. Its calls block, so they are made on a thread of their own. What a GPU does
//! not support is absent.

mod driver;
#[cfg(feature = "nvml")]
mod library;
mod watch;

pub use driver::{DriverError, GpuDriver, open_driver};
pub use watch::{NvmlTarget, NvmlWatch};
