//! The binary as its users meet it: commands, signals, exit codes, over loopback.

mod bench;
mod check;
mod config_errors;
mod demo;
mod drill;
mod files;
mod gpus;
mod help;
mod init;
mod loopback;
mod memory;
pub(crate) mod outage;
mod pages;
mod pods;
mod run;
pub(crate) mod scrape;
#[cfg(target_os = "linux")]
mod server_process;
pub(crate) mod setting;
mod stdout;
mod targets;
mod trace;
