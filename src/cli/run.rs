//! `run`: the daemon.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpListener;

use super::bench_files::{file_doubts, told_of};
use super::record_dir::RecordDir;
use super::signals::with_signals;
use super::{Exit, say, usage};
use crate::app::{App, Extent, Outputs, Runtimes, Setup, draw_seed, tcp};
use crate::clock::TimeAnchor;
use crate::config::{self, Config, FlagOverride};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Configuration file, YAML or TOML.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Address of the page, the API and `/metrics`; overrides `export.http.listen`.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Seed of arrivals and prompts; overrides `seed`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Args {
    /// The configuration file.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut flags = Vec::new();
    let mut set = |path: &str, value: Option<String>, flag: &str| {
        flags.extend(value.map(|value| FlagOverride {
            path: path.to_owned(),
            value,
            flag: flag.to_owned(),
        }));
    };
    set("export.http.listen", args.listen.clone(), "--listen");
    set("seed", args.seed.map(|seed| seed.to_string()), "--seed");
    match config::load(&args.config, config::environment(), &flags) {
        Ok(config) => serve(config),
        Err(diagnostics) => Ok(usage(&diagnostics)),
    }
}

fn serve(mut config: Config) -> anyhow::Result<Exit> {
    let files = config.export.files.as_ref();
    let held = match files.map(|files| RecordDir::take(&files.dir)).transpose() {
        Ok(held) => held,
        Err(error) => {
            let dir = files.map_or(Path::new(""), |files| &files.dir);
            say(&format!(
                "export.files.dir: `{}`: {error}\n  wanted: a directory that can be written, and is this run's own\n  hint: make it, or let this user write there",
                dir.display()
            ));
            return Ok(Exit::Usage);
        }
    };
    let runtimes = Runtimes::start()?;
    let seed = *config.seed.get_or_insert_with(draw_seed);
    let exit = runtimes.other.block_on(async {
        let listener = match config.export.http {
            None => None,
            Some(http) => match listen(http.listen).await {
                Ok(listener) => Some(listener),
                Err(message) => {
                    say(&message);
                    return Ok(Exit::Usage);
                }
            },
        };
        if let Some(listener) = &listener {
            say(&format!(
                "page and metrics on http://{}/",
                listener.local_addr()?
            ));
        }
        say(&format!("seed {seed}"));
        let setup = Setup {
            command: "run",
            config,
            anchor: TimeAnchor::start(),
            connect: tcp(),
            extent: Extent {
                spread: Some(host_name()),
                ..Extent::default()
            },
            outputs: Outputs {
                listener,
                ..Outputs::default()
            },
        };
        drive(setup, &runtimes).await
    });
    drop(held);
    exit
}

/// The name of this machine or pod, as the kernel has it; empty where that is not known.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim_end().to_owned()
}

/// Binds the surface, or says why not in the form of a configuration problem.
async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!(
            "export.http.listen: `{address}` cannot be listened on: {error}\n  wanted: a free address of this machine\n  hint: another program may use the port; choose another with `--listen`"
        )
    })
}

/// Runs `setup` until a signal comes; a second one ends the process.
pub(super) async fn drive(setup: Setup, runtimes: &Runtimes) -> anyhow::Result<Exit> {
    let app = App::build(setup, runtimes.handles())?;
    let (report, signal) = with_signals(|stop| app.run(stop)).await?;
    let report = report?;
    for stage in &report.late {
        say(&format!("`{stage}` did not end in time"));
    }
    let mut exit = Exit::Fine;
    for file in &report.files {
        for told in told_of(file) {
            say(&told);
        }
        for doubt in file_doubts(file) {
            say(&doubt);
            exit = Exit::Untrusted;
        }
    }
    for (exporter, account) in &report.exports {
        say(&format!("{exporter}: {account}"));
    }
    Ok(signal.unwrap_or(exit))
}
