//! `trace synthesize`: another trace made from one.

use super::trace::{Input, Target, Unusable, Unwritten, written};
use super::trace_convert::{block_tokens, one_clock, refused, say_losses};
use super::{Exit, say};
use crate::load::trace::{
    Format, MOST_BLOCKS, SharedBlocks, Synthesis, Synthesizer, TraceWriter, is_multiplier,
    is_speedup,
};

/// Arguments of `trace synthesize`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    target: Target,
    /// Format to write [default: that of FILE if it can be written, else `mooncake`].
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Tokens of a block in the new file [default: as its format has them, or as in FILE if the
    /// format is the same].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    to_block_size: Option<u32>,
    /// Times and pauses are divided by this.
    #[arg(
        long,
        alias = "synthesis-speedup-ratio",
        value_name = "FACTOR",
        default_value_t = 1.0
    )]
    speedup: f64,
    /// Multiplies the length of shared prefixes.
    #[arg(
        long,
        alias = "synthesis-prefix-len-multiplier",
        value_name = "FACTOR",
        default_value_t = 1.0
    )]
    prefix_len_multiplier: f64,
    /// Spreads rows over so many independent trees of prefixes; a session stays in one.
    #[arg(long, alias = "synthesis-prefix-root-multiplier", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    prefix_root_multiplier: u32,
    /// Multiplies the length of what is not prefix.
    #[arg(
        long,
        alias = "synthesis-prompt-len-multiplier",
        value_name = "FACTOR",
        default_value_t = 1.0
    )]
    prompt_len_multiplier: f64,
    /// Multiplies the length of answers.
    #[arg(
        long,
        alias = "synthesis-output-len-multiplier",
        value_name = "FACTOR",
        default_value_t = 1.0
    )]
    output_len_multiplier: f64,
    /// Leaves out rows whose prompt has become longer than this.
    #[arg(long, alias = "synthesis-max-isl", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    max_isl: Option<u32>,
    /// Cuts answers to this length.
    #[arg(long, alias = "synthesis-max-osl", value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    max_osl: Option<u32>,
    /// Decides which row goes to which tree.
    #[arg(long, alias = "random-seed", value_name = "N", default_value_t = 0)]
    seed: u64,
}

pub(super) fn run(args: &Args) -> Result<Exit, Unwritten> {
    let how = args.synthesis()?;
    if !args.input.is_file() {
        let unusable = "-: standard input\n  wanted: a file, since it is read twice".to_owned();
        return Err(unusable.into());
    }
    let to = args.to.as_deref().map(written).transpose()?;
    // First: which blocks are shared.
    let mut trace = args.input.open()?;
    let from = trace.detected.format;
    say(&format!(
        "{}: {}: {}",
        trace.name,
        from.name(),
        trace.detected.reason
    ));
    let to = to.unwrap_or(if Format::WRITTEN.contains(&from) {
        from
    } else {
        Format::Mooncake
    });
    let mut shared = SharedBlocks::default();
    let sorted = one_clock(from, to);
    trace.each_in_order(sorted, |row| {
        if shared.add(row) {
            return Ok(());
        }
        Err(format!(
            "the trace has more than {MOST_BLOCKS} different blocks\n  wanted: fewer, so that they can be told apart in memory\n  hint: take a part of the file, or `trace convert --to-block-size` to larger blocks first"
        ))
    })?;
    // Second: rows as they become.
    let mut trace = args.input.open()?.quietly();
    let block_tokens = block_tokens(args.to_block_size, (from, trace.block_tokens), to);
    let out = args.target.create(&args.input)?;
    let mut writer = TraceWriter::new(to, from.clock(), block_tokens, out)
        .expect("the format is one of those that are written");
    let mut synthesizer = Synthesizer::new(how, shared, from.clock());
    let mut left_out = 0_u64;
    trace.each_in_order(sorted, |row| {
        if synthesizer.change(row) {
            return writer
                .write(row)
                .map_err(|error| refused(&args.target, error));
        }
        left_out += 1;
        Ok(())
    })?;
    let (rows, losses) = writer.finish().map_err(|error| args.target.failed(error))?;
    say(&format!("{rows} rows written as {}", to.name()));
    for (count, why) in [
        (trace.bad_rows, "were passed over"),
        (
            left_out,
            "were left out: their prompts are longer than `--max-isl`",
        ),
    ] {
        if count > 0 {
            say(&format!("{count} rows {why}"));
        }
    }
    say_losses(&losses);
    Ok(Exit::Fine)
}

impl Args {
    fn synthesis(&self) -> Result<Synthesis, Unusable> {
        if !is_speedup(self.speedup) {
            return Err(format!(
                "--speedup: `{}`\n  wanted: a factor from 0.000001 to 1000000000",
                self.speedup
            ));
        }
        for (flag, value) in [
            ("--prefix-len-multiplier", self.prefix_len_multiplier),
            ("--prompt-len-multiplier", self.prompt_len_multiplier),
            ("--output-len-multiplier", self.output_len_multiplier),
        ] {
            if !is_multiplier(value) {
                return Err(format!(
                    "{flag}: `{value}`\n  wanted: a factor from 0 to 1000"
                ));
            }
        }
        Ok(Synthesis {
            speedup: self.speedup,
            prefix_len: self.prefix_len_multiplier,
            prefix_roots: self.prefix_root_multiplier,
            prompt_len: self.prompt_len_multiplier,
            output_len: self.output_len_multiplier,
            max_input: self.max_isl,
            max_output: self.max_osl,
            seed: self.seed,
        })
    }
}
