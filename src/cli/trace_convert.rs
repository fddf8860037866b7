//! `trace convert`: a trace in another format.

use super::trace::{Input, Target, Unwritten, written};
use super::{Exit, say};
use crate::load::trace::{Clock, Format, Losses, TraceWriter, WriteError};

/// Arguments of `trace convert`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    target: Target,
    /// Format to write: `mooncake`, `bailian`, `burst_gpt`, `azure` or `minimal`.
    #[arg(long, value_name = "NAME")]
    to: String,
    /// Tokens of a block in the new file [default: as its format has them, or as in FILE if the
    /// format is the same].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    to_block_size: Option<u32>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Unwritten> {
    let to = written(&args.to)?;
    let mut trace = args.input.open()?;
    let from = trace.detected.format;
    say(&format!(
        "{}: {}: {}",
        trace.name,
        from.name(),
        trace.detected.reason
    ));
    let block_tokens = block_tokens(args.to_block_size, (from, trace.block_tokens), to);
    let out = args.target.create(&args.input)?;
    let mut writer = TraceWriter::new(to, from.clock(), block_tokens, out)
        .expect("the format is one of those that are written");
    trace.each_in_order(one_clock(from, to), |row| {
        writer
            .write(row)
            .map_err(|error| refused(&args.target, error))
    })?;
    let (rows, losses) = writer.finish().map_err(|error| args.target.failed(error))?;
    say(&format!("{rows} rows written as {}", to.name()));
    if trace.bad_rows > 0 {
        say(&format!("{} rows were passed over", trace.bad_rows));
    }
    say_losses(&losses);
    Ok(Exit::Fine)
}

/// Tokens of a block in the new file.
pub(super) fn block_tokens(asked: Option<u32>, (from, given): (Format, u32), to: Format) -> u32 {
    let of_format = if from == to { given } else { to.block_tokens() };
    asked.unwrap_or(of_format)
}

/// Whether sessions with clocks of their own have to be put on one: only Mooncake has pauses.
pub(super) fn one_clock(from: Format, to: Format) -> bool {
    from.clock() == Clock::Session && to != Format::Mooncake
}

pub(super) fn refused(target: &Target, error: WriteError) -> Unwritten {
    match error {
        WriteError::Row(fault) => Unwritten::Unusable(format!(
            "{}: `{}`\n  wanted: {}\n  hint: another format may do without",
            fault.field, fault.value, fault.wanted
        )),
        WriteError::File(error) => target.failed(error),
    }
}

pub(super) fn say_losses(losses: &Losses) {
    for (what, rows) in losses {
        say(&format!("not carried over: {what} ({rows} rows)"));
    }
}
