//! `tokencanary simulate`: the simulated inference server on its own.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::app::simulate::{SimulatePlan, Speed, simulate};

/// Arguments of `simulate`.
#[derive(Debug, Clone, Args)]
pub(super) struct SimulateArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// How fast the simulated engine is; `fixed` takes --ttft and --itl
    #[arg(long, value_enum, default_value_t = ProfileName::Demo)]
    profile: ProfileName,
    /// Time to the first token with --profile fixed [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    ttft: Option<Duration>,
    /// Time between tokens with --profile fixed [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    itl: Option<Duration>,
    /// Sequences that run at once; others wait
    #[arg(long, value_name = "N")]
    max_running: Option<NonZeroUsize>,
    /// Name of the model served
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Seed of everything drawn
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// File that gets one JSON line with the clock before each write
    #[arg(long, value_name = "FILE")]
    log_times: Option<PathBuf>,
}

/// Names of the speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    /// A small model on one GPU
    Demo,
    /// No delay anywhere
    Instant,
    /// Always the same times
    Fixed,
}

impl SimulateArgs {
    /// What is to be run.
    ///
    /// # Errors
    ///
    /// If times are given that the profile does not use.
    fn plan(&self) -> anyhow::Result<SimulatePlan> {
        let fixed = self.profile == ProfileName::Fixed;
        if !fixed && (self.ttft.is_some() || self.itl.is_some()) {
            anyhow::bail!("`--ttft` and `--itl` need `--profile fixed`");
        }
        let speed = match self.profile {
            ProfileName::Demo => Speed::Demo,
            ProfileName::Instant => Speed::Instant,
            ProfileName::Fixed => Speed::Fixed {
                ttft: self.ttft.unwrap_or(Duration::from_millis(100)),
                itl: self.itl.unwrap_or(Duration::from_millis(10)),
            },
        };
        Ok(SimulatePlan {
            listen: self.listen,
            speed,
            max_running: self.max_running.map(NonZeroUsize::get),
            model: self.model.clone(),
            seed: self.seed,
            log_times: self.log_times.clone(),
        })
    }
}

/// Serves until `stop` is ready; says on stderr where.
///
/// # Errors
///
/// If the arguments do not fit, the address cannot be bound, or the log not written.
pub(super) async fn run(args: SimulateArgs, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    simulate(args.plan()?, announce, stop).await
}

#[expect(clippy::print_stderr, reason = "a command tells the user what it does")]
fn announce(address: SocketAddr) {
    eprintln!("listening on http://{address}");
}
