//! When requests are due, and what is sent.

pub mod schedule;
pub mod trace;
pub mod workload;
