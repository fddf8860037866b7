//! `generate dashboards`: boards for Grafana.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;

use super::{Exit, print, say};
use crate::export::boards::{Board, boards};

/// Arguments of `generate dashboards`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The board to print.
    #[arg(value_enum, required_unless_present = "dir", conflicts_with = "dir")]
    board: Option<Name>,
    /// Folder to write all boards to, one file for each.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Names of the boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// All targets.
    Overview,
    /// One stream.
    Stream,
    /// The canary itself.
    Health,
}

impl Name {
    const fn text(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Stream => "stream",
            Self::Health => "health",
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let boards = boards();
    if let Some(name) = args.board {
        let wanted = boards.iter().filter(|board| board.name == name.text());
        for board in wanted {
            print(&text(board)?)?;
        }
    }
    if let Some(dir) = &args.dir {
        fs::create_dir_all(dir).with_context(|| format!("`{}` cannot be made", dir.display()))?;
        for board in &boards {
            let file = dir.join(format!("{}.json", board.name));
            fs::write(&file, text(board)? + "\n")
                .with_context(|| format!("`{}` cannot be written", file.display()))?;
            say(&format!("wrote {}", file.display()));
        }
    }
    Ok(Exit::Fine)
}

fn text(board: &Board) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&board.json)?)
}
