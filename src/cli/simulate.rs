//! `tokencanary simulate`: the simulated inference server on its own.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::signals::with_signals;
use super::{Exit, say};
use crate::app::simulate::{SimulatePlan, Speed, Unusable, simulate};

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
    /// GPUs of the server on the page `/dcgm/metrics`; speeds are the profile's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus: u32,
    /// Sequences that run at once; others wait
    #[arg(long, value_name = "N")]
    max_running: Option<NonZeroUsize>,
    /// Blocks of the KV cache; requests wait or give way when none is free
    #[arg(long, value_name = "N")]
    kv_blocks: Option<NonZeroU32>,
    /// Tokens of a block of the KV cache [default: 16]
    #[arg(long, value_name = "TOKENS")]
    block_size: Option<NonZeroU32>,
    /// Compute every prompt as a whole, whatever is in the KV cache
    #[arg(long)]
    no_prefix_caching: bool,
    /// Name of the model served
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Tokens that the chat template puts before each message
    #[arg(long, value_name = "N", default_value_t = 0)]
    template_tokens: u32,
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
    /// A middling model on one GPU
    Demo,
    /// A model of 0.6 billion parameters on one GPU
    Small,
    /// A model of 70 billion parameters on four GPUs
    Large,
    /// No delay anywhere
    Instant,
    /// Always the same times
    Fixed,
}

impl SimulateArgs {
    /// What is to be run, or why times do not go with the profile.
    fn plan(&self) -> Result<SimulatePlan, String> {
        let fixed = self.profile == ProfileName::Fixed;
        let given = [("--ttft", self.ttft), ("--itl", self.itl)];
        if let Some((flag, _)) = given.iter().find(|(_, time)| !fixed && time.is_some()) {
            return Err(format!(
                "{flag}: not used by this profile\n  wanted: `--profile fixed` beside it\n  hint: the other profiles have times of their own"
            ));
        }
        let speed = match self.profile {
            ProfileName::Demo => Speed::Demo,
            ProfileName::Small => Speed::Small,
            ProfileName::Large => Speed::Large,
            ProfileName::Instant => Speed::Instant,
            ProfileName::Fixed => Speed::Fixed {
                ttft: self.ttft.unwrap_or(Duration::from_millis(100)),
                itl: self.itl.unwrap_or(Duration::from_millis(10)),
            },
        };
        Ok(SimulatePlan {
            listen: self.listen,
            speed,
            gpus: self.gpus,
            max_running: self.max_running.map(NonZeroUsize::get),
            kv_blocks: self.kv_blocks.map(NonZeroU32::get),
            block_tokens: self.block_size.map(NonZeroU32::get),
            prefix_caching: !self.no_prefix_caching,
            model: self.model.clone(),
            template_tokens: self.template_tokens,
            seed: self.seed,
            log_times: self.log_times.clone(),
        })
    }
}

/// Serves until a signal comes; says on stderr where.
pub(super) fn run(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(message) => {
            say(&message);
            return Ok(Exit::Usage);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let announce = |address| say(&format!("listening on http://{address}"));
        let (served, signal) = with_signals(|stop| simulate(plan, announce, stop)).await?;
        match served {
            Ok(()) => Ok(signal.unwrap_or(Exit::Fine)),
            Err(error) => match error.downcast_ref::<Unusable>() {
                Some(unusable) => {
                    say(&refusal(*unusable, &error));
                    Ok(Exit::Usage)
                }
                None => Err(error),
            },
        }
    })
}

/// A flag that cannot be followed, in the form of a configuration problem.
fn refusal(unusable: Unusable, error: &anyhow::Error) -> String {
    let (flag, wanted, hint) = match unusable {
        Unusable::Address(_) => (
            "--listen",
            "a free address of this machine",
            "another program may use the port; port 0 picks a free one",
        ),
        Unusable::Log => (
            "--log-times",
            "a file that can be written",
            "its folder must be there",
        ),
    };
    format!("{flag}: {error:#}\n  wanted: {wanted}\n  hint: {hint}")
}
