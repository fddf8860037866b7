//! `generate metrics-reference`: the table of all metrics.

use super::{Exit, print};
use crate::export::reference;

pub(super) fn run() -> anyhow::Result<Exit> {
    print(reference::table().trim_end())?;
    Ok(Exit::Fine)
}
