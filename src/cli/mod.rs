//! One file per command: parse, call, print.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 fine; 1 a check failed; 2
//! usage or configuration; 3 the run finished but its numbers are not to be trusted; 4 an
//! internal failure, or a standard output that cannot be written; 130 and 143 on signals after an orderly drain.
//!
//! | room | known for | does | never does |
//! |---|---|---|---|
//! | `cli` | `Cli` | one file per command: parse, call `app` or a pure room, print | domain logic |

mod bench;
mod bench_files;
mod bench_goodput;
mod bench_input;
mod bench_load;
mod bench_plan;
mod bench_prompt;
mod bench_warm_up;
mod check;
mod demo;
mod drill;
mod generate;
mod generate_dashboards;
mod generate_kubernetes;
mod generate_metrics_reference;
mod generate_rules;
mod generate_schema;
mod init;
mod plan;
mod record_dir;
mod run;
mod signals;
mod simulate;
mod trace;
mod trace_analyze;
mod trace_convert;
mod trace_synthesize;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

pub use self::bench_plan::benchmark;
use crate::app::{UnusableFile, UnusableTarget};
use crate::config::{self, Diagnostics};
use crate::measurement::{plain_lines, screen};

/// A canary for LLM inference servers.
#[derive(Debug, Parser)]
#[command(name = "tokencanary", version, about, disable_help_subcommand = true)]
pub struct Cli {
    /// Log level of the program itself, as `warn` or `tokencanary=debug`; goes to stderr.
    #[arg(long, global = true, default_value = "info", value_name = "FILTER")]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything at once on this machine: simulated server, probes, page, metrics.
    Demo(demo::Args),
    /// The daemon: probes targets until it is stopped.
    Run(run::Args),
    /// Validate a configuration and send one request to each target.
    Check(check::Args),
    /// Look at a server and write a commented configuration for it.
    Init(init::Args),
    /// One-shot benchmark of one server.
    Bench(Box<bench::Args>),
    /// Rehearse: make a simulated server slower and follow it to the alert, through a real
    /// Prometheus and a real Alertmanager.
    Drill(drill::Args),
    /// The simulated inference server on its own.
    Simulate(simulate::SimulateArgs),
    /// Look at trace files, and make others of them.
    Trace(trace::Args),
    /// Files for other programs: rules, boards, Kubernetes objects, the table of metrics.
    Generate(generate::Args),
}

impl Command {
    /// The configuration file, if the command has one.
    fn config(&self) -> Option<&Path> {
        match self {
            Self::Run(args) => Some(args.config()),
            Self::Check(args) => args.config(),
            Self::Generate(args) => args.config(),
            Self::Demo(_)
            | Self::Init(_)
            | Self::Bench(_)
            | Self::Drill(_)
            | Self::Simulate(_)
            | Self::Trace(_) => None,
        }
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For a person.
    Text,
    /// For a program.
    Json,
}

/// How a command ended, as its exit code tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Fine,
    Failed,
    Usage,
    Untrusted,
    Internal,
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Untrusted => 3,
            Exit::Internal => 4,
            Exit::Signal(signal) => 128 + signal,
        })
    }
}

/// Parses the program's arguments, runs the command, and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Fine
            };
            return match error.print() {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    say(&format!("error: {UNWRITTEN}: {error}"));
                    Exit::Internal.into()
                }
                _ => code.into(),
            };
        }
    };
    if let Err(message) = crate::telemetry::init_log(&cli.log) {
        say(&message);
        return Exit::Usage.into();
    }
    let file = cli.command.config().map(Path::to_owned);
    let ended = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Drill(args) => drill::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Generate(args) => generate::run(&args),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            // What the operator wrote is told as every other problem with it.
            if let Some(unusable) = error.downcast_ref::<UnusableTarget>() {
                say(&told(unusable, file.as_deref()));
                return Exit::Usage.into();
            }
            if let Some(unusable) = error.downcast_ref::<UnusableFile>() {
                say(&unusable.to_string());
                return Exit::Usage.into();
            }
            say(&format!("error: {error:#}"));
            Exit::Internal.into()
        }
    }
}

/// A problem with a target, with its place in the configuration `file`.
fn told(unusable: &UnusableTarget, file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("{}: {unusable}", config::place(file, &unusable.path())),
        None => unusable.to_string(),
    }
}

/// A line for the person at the terminal. It may quote others: no control characters.
fn say(text: &str) {
    // A closed standard error leaves nobody to tell; it must not end the command.
    drop(writeln!(io::stderr(), "{}", plain_lines(text)));
}

/// What is said, with exit code 4, where a result finds no place.
const UNWRITTEN: &str = "standard output cannot be written";

/// A result for whoever reads standard output.
///
/// A reader that has seen enough, as `head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{}", screen(text)).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context(UNWRITTEN),
    }
}

/// Configuration problems as the operator sees them.
fn usage(diagnostics: &Diagnostics) -> Exit {
    say(&diagnostics.to_string());
    Exit::Usage
}
