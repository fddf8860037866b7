//! `drill`: a rehearsal of the alert, with a real Prometheus and a real Alertmanager.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;

use super::signals::with_signals;
use super::{Exit, Output, print, say};
use crate::app::drill::{DrillPlan, DrillReport, Unexpected, drill};
use crate::app::{Runtimes, draw_seed};
use crate::config::{
    Arrivals, Balance, BaseUrl, Config, DEFAULT_STALL, ExportConfig, GovernorConfig, Limits,
    NetworkConfig, PhaseConfig, ProbeConfig, RequestConfig, ServerMetrics, StartConfig,
    TargetConfig, WhenFull, WorkloadConfig,
};
use crate::measurement::{Api, CacheMode, ConnectionPolicy, Slo};

/// How often a probe of a production set-up asks.
const EVERY: Duration = Duration::from_secs(5);
/// Tokens of its prompts and answers: the first token comes after a third of a second.
const TOKENS: (u32, u32) = (2048, 8);

/// Names under which the programs are installed.
const PROMETHEUS: [&str; 1] = ["prometheus"];
const ALERTMANAGER: [&str; 2] = ["alertmanager", "prometheus-alertmanager"];

/// Arguments of `drill`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The program `prometheus`, 2.40 or later [default: the one in PATH].
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// The program `alertmanager`, 0.25 or later [default: the one in PATH].
    #[arg(long, value_name = "FILE")]
    alertmanager: Option<PathBuf>,
    /// Divide all times of a production set-up by this.
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u32).range(1..=30))]
    compress: u32,
    /// How many times as long prefills last in the regression.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.5, value_parser = factor)]
    factor: f64,
    /// End after the regression and its recovery.
    #[arg(long)]
    no_near_misses: bool,
    /// Keep configurations, rules, logs and data in this folder, which is new or empty.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seed of arrivals, prompts and the simulated server.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("wanted: a number from 1 to 100".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let prometheus = match program("--prometheus", args.prometheus.as_deref(), &PROMETHEUS) {
        Ok(program) => program,
        Err(message) => return Ok(refused(&message)),
    };
    let alertmanager = match program(
        "--alertmanager",
        args.alertmanager.as_deref(),
        &ALERTMANAGER,
    ) {
        Ok(program) => program,
        Err(message) => return Ok(refused(&message)),
    };
    let scratch = tempfile::Builder::new()
        .prefix("tokencanary-drill-")
        .tempdir()?;
    let dir = match &args.dir {
        None => scratch.path().to_owned(),
        Some(dir) => match empty(dir) {
            Ok(()) => dir.clone(),
            Err(why) => {
                let shown = dir.display();
                return Ok(refused(&format!(
                    "--dir: `{shown}`: {why}\n  wanted: a folder that is new or empty"
                )));
            }
        },
    };
    let seed = args.seed.unwrap_or_else(draw_seed);
    let plan = DrillPlan {
        prometheus,
        alertmanager,
        dir,
        compress: NonZeroU32::new(args.compress).unwrap_or(NonZeroU32::MIN),
        factor: args.factor,
        near_misses: !args.no_near_misses,
        seed,
    };
    let runtimes = Runtimes::start()?;
    let compress = args.compress;
    let (ended, signal) = runtimes.other.block_on(with_signals(async |stop| {
        tokio::select! {
            report = drill(&plan, &runtimes, |server| config((server, seed), compress), say) => report.map(Some),
            () = stop => Ok(None),
        }
    }))?;
    match (ended?, signal) {
        (Some(report), _) => {
            print(&shown(&report, args.output)?)?;
            Ok(if report.passed() {
                Exit::Fine
            } else {
                Exit::Failed
            })
        }
        (None, signal) => Ok(signal.unwrap_or(Exit::Internal)),
    }
}

fn refused(message: &str) -> Exit {
    say(message);
    Exit::Usage
}

/// The program that a flag names, or the first of `names` that there is.
fn program(flag: &str, given: Option<&Path>, names: &[&str]) -> Result<PathBuf, String> {
    let runs = |program: &Path| -> io::Result<()> {
        let mut command = std::process::Command::new(program);
        command
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("`--version` ended with {status}")))
        }
    };
    if let Some(given) = given {
        return match runs(given) {
            Ok(()) => Ok(given.to_owned()),
            Err(error) => Err(format!(
                "{flag}: `{}`: {error}\n  wanted: a program that can be run",
                given.display()
            )),
        };
    }
    names
        .iter()
        .map(PathBuf::from)
        .find(|name| runs(name).is_ok())
        .ok_or_else(|| {
            format!(
                "{flag}: `{}` is not in PATH\n  wanted: the program\n  hint: install it, or say where it is with `{flag} FILE`",
                names[0]
            )
        })
}

/// Makes the folder, or finds that it has nothing in it.
fn empty(dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    let mut entries = std::fs::read_dir(dir).map_err(|error| error.to_string())?;
    match entries.next() {
        None => Ok(()),
        Some(_) => Err("it is not empty".to_owned()),
    }
}

/// One probe of one server, `compress` times as often as in production.
fn config((server, seed): (SocketAddr, u64), compress: u32) -> anyhow::Result<Config> {
    let target = TargetConfig {
        name: "simulated".to_owned(),
        urls: vec![BaseUrl::parse(&format!("http://{server}"))?],
        balance: Balance::default(),
        network: NetworkConfig::default(),
        api: Api::Chat,
        request: RequestConfig::default(),
        tokenizer: None,
        model: None,
        api_key: None,
        headers: Vec::new(),
        server_metrics: ServerMetrics::Auto,
        server_metrics_every: Duration::from_secs(1),
        gpu: None,
        node: None,
        node_every: Duration::from_secs(15),
        pod_info: None,
        start: StartConfig::NONE,
    };
    let rate = f64::from(compress) / EVERY.as_secs_f64();
    let probe = ProbeConfig {
        name: "drill".to_owned(),
        targets: vec![target.name.clone()],
        streaming: true,
        when_full: WhenFull::Refuse,
        connection: ConnectionPolicy::Pooled,
        phases: vec![PhaseConfig::endless(Arrivals::Constant { rate })],
        workload: WorkloadConfig::synthetic(TOKENS.0, Some(TOKENS.1), CacheMode::Cold),
        limits: Limits::PROBE,
        stall: DEFAULT_STALL,
        slo: Slo::NONE,
    };
    Ok(Config {
        seed: Some(seed),
        drain: Duration::from_secs(1),
        targets: vec![target],
        probes: vec![probe],
        governor: GovernorConfig {
            requests_per_day: None,
            tokens_per_day: None,
            in_flight: 16,
        },
        export: ExportConfig::default(),
    })
}

/// The report as JSON, whose durations are seconds.
#[derive(Debug, Serialize)]
struct Printed<'r> {
    passed: bool,
    compress: u32,
    factor: f64,
    alert: &'r str,
    learned_s: f64,
    limit_s: f64,
    pending_s: Option<f64>,
    firing_s: Option<f64>,
    notified_s: Option<f64>,
    over_s: Option<f64>,
    summary: Option<&'r str>,
    unexpected: Vec<PrintedAlert<'r>>,
    near_misses: Vec<PrintedMiss<'r>>,
}

#[derive(Debug, Serialize)]
struct PrintedAlert<'r> {
    alert: &'r str,
    summary: &'r str,
    after_s: f64,
}

#[derive(Debug, Serialize)]
struct PrintedMiss<'r> {
    what: &'r str,
    unexpected: Vec<PrintedAlert<'r>>,
}

fn alerts(of: &[Unexpected]) -> Vec<PrintedAlert<'_>> {
    let each = of.iter().map(|one| PrintedAlert {
        alert: &one.alert,
        summary: &one.summary,
        after_s: one.after.as_secs_f64(),
    });
    each.collect()
}

fn shown(report: &DrillReport, output: Output) -> anyhow::Result<String> {
    let told = &report.told;
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    if output == Output::Json {
        let misses = report.near_misses.iter().map(|miss| PrintedMiss {
            what: miss.what,
            unexpected: alerts(&miss.alerts),
        });
        return Ok(serde_json::to_string_pretty(&Printed {
            passed: report.passed(),
            compress: report.compress,
            factor: report.factor,
            alert: &report.alert,
            learned_s: report.learned.as_secs_f64(),
            limit_s: report.limit().as_secs_f64(),
            pending_s: seconds(told.pending),
            firing_s: seconds(told.firing),
            notified_s: seconds(told.page),
            over_s: seconds(told.over),
            summary: told.summary.as_deref(),
            unexpected: alerts(&told.others),
            near_misses: misses.collect(),
        })?);
    }
    Ok(table(report))
}

fn table(report: &DrillReport) -> String {
    let told = &report.told;
    let row = |what: &str, after: Option<Duration>| {
        let (here, production) = match after {
            None => ("–".to_owned(), "–".to_owned()),
            Some(after) => (
                format!("{:.1} s", after.as_secs_f64()),
                format!("{:.1} min", (after * report.compress).as_secs_f64() / 60.0),
            ),
        };
        format!("{what:<34} {here:>10} {production:>14}\n")
    };
    let mut text = format!(
        "{:<34} {:>10} {:>14}\n",
        format!("prefills {} times as long", report.factor),
        "after",
        "in production"
    );
    text += &row("rule holds (pending)", told.pending);
    text += &row("has held long enough (firing)", told.firing);
    text += &row("notification arrived", told.page);
    text += &row("notification that it is over", told.over);
    if let Some(summary) = &told.summary {
        text.extend(["\n", &report.alert, ": ", summary, "\n"]);
    }
    let unexpected = |one: &Unexpected| {
        format!(
            "  NOT EXPECTED after {:.1} s: {}: {}\n",
            one.after.as_secs_f64(),
            one.alert,
            one.summary
        )
    };
    text.extend(told.others.iter().map(unexpected));
    for miss in &report.near_misses {
        let quiet = if miss.alerts.is_empty() {
            "quiet"
        } else {
            "NOT QUIET"
        };
        text.extend([miss.what, ": ", quiet, "\n"]);
        text.extend(miss.alerts.iter().map(unexpected));
    }
    let limit = report.limit().as_secs_f64();
    text += if report.passed() {
        "\npassed"
    } else if told.page.is_none() {
        "\nfailed: nobody was notified"
    } else {
        "\nfailed"
    };
    format!("{text} (a notification within {limit:.0} s, and no other)")
}
