//! What the GPUs of a target were at one moment, in units that mean the same for every source.
//!
//! Shares from 0 to 1, bytes, hertz, watts, joules, degrees Celsius. What a source does not say is
//! `None`, never zero. Not here: where it comes from (that is `scrape`).

mod field;
mod state;

use std::sync::Arc;

pub use field::{GpuField, GpuFields, THROTTLING};
pub use state::{GpuAt, GpuState, GpuStates};

use crate::clock::MonoTime;

/// One GPU, or one instance of a GPU that is cut into several.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Its number on its host, and that of its instance behind a `/`: `0`, `3/1`. Where a page
    /// has several hosts, the host stands before it.
    pub name: Box<str>,
    /// What its maker calls it, for labels; empty if it is not known.
    pub uuid: Box<str>,
    /// Its model; empty if it is not known.
    pub model: Box<str>,
    /// What is known of it.
    pub fields: GpuFields,
}

/// One good reading of the GPUs of one target.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuSample {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// When the last byte of the page was read.
    pub at: MonoTime,
    /// Each of them, at least one.
    pub gpus: Arc<[Gpu]>,
    /// The pods that they serve, in order; empty where nothing tells.
    pub pods: Vec<Box<str>>,
}
