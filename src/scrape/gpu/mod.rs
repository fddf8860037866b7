//! The GPUs of a target, from the page of an exporter on their host.
//!
//! A page has the GPUs of everybody on that host; a selection says which serve the target. What is
//! blank, out of range or not understood is left out and counted, never zero.

mod amd;
mod dcgm;
mod page;
mod poll;
mod select;

pub use page::{GpuPage, read_gpus};
pub use poll::GpuPoll;
