//! `generate schema`: the configuration as a JSON Schema.

use super::{Exit, print};
use crate::config;

pub(super) fn run() -> anyhow::Result<Exit> {
    print(&serde_json::to_string_pretty(&config::schema())?)?;
    Ok(Exit::Fine)
}
