//! The binary as its users meet it: commands, signals, exit codes, over loopback.

mod memory;
pub(crate) mod outage;
