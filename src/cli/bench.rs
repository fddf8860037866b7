//! `bench`: a one-shot benchmark of one server.

use std::convert::Infallible;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

use super::bench_files::{file_doubts, told_of};
use super::bench_plan::{Load, Plan};
use super::record_dir::RecordDir;
use super::signals::with_signals;
use super::{Exit, Output, print, say};
use crate::aggregate::{Live, StreamLive, Summary, Totals};
use crate::app::{
    App, DiscoverError, Outputs, RunReport, Runtimes, Setup, ask_model, check_files, draw_seed, tcp,
};
use crate::clock::TimeAnchor;
use crate::measurement::Outcome;
use crate::report::bench_table;

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(1);

/// One lagged request in so many is one too many: it could be the one behind a p95.
const LAGGED_SHARE: u64 = 20;

/// What becomes of exit code 3, numbers not to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Unsure {
    /// Exit with 0.
    Pass,
    /// Exit with 1.
    Fail,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Ui {
    /// A line that counts, on a terminal.
    Simple,
    /// Nothing.
    None,
}

/// What was run, for whoever reads `summary.json` later.
#[derive(Debug, serde::Serialize)]
struct RunFacts {
    url: String,
    /// All of them, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    urls: Option<Vec<String>>,
    api: &'static str,
    model: Option<String>,
    load: String,
    seed: Option<u64>,
}

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    load: Load,
    /// Where `requests.jsonl` and `summary.json` go; default `artifacts/<model>-<api>-<load>`.
    #[arg(long, visible_alias = "output-artifact-dir", value_name = "DIR")]
    artifact_dir: Option<PathBuf>,
    /// How progress is shown; nothing where standard error is not a terminal.
    #[arg(long, value_enum, default_value = "simple", visible_alias = "ui-type")]
    ui: Ui,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
    /// What to exit with, instead of 3, where the numbers are not to be trusted.
    #[arg(long, value_enum, value_name = "VERDICT")]
    unsure: Option<Unsure>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut plan = match args.load.plan() {
        Ok(plan) => plan,
        Err(message) => {
            say(&message);
            return Ok(Exit::Usage);
        }
    };
    plan.config.seed.get_or_insert_with(draw_seed);
    for note in &plan.notes {
        say(note);
    }
    let runtimes = Runtimes::start()?;
    runtimes.other.block_on(run_plan(args, plan, &runtimes))
}

async fn run_plan(args: &Args, mut plan: Plan, runtimes: &Runtimes) -> anyhow::Result<Exit> {
    if let Some(Err(message)) = args.artifact_dir.as_deref().map(prepare) {
        say(&message);
        return Ok(Exit::Usage);
    }
    let anchor = TimeAnchor::start();
    if let Some(message) = find_model(&mut plan, anchor).await {
        say(&message);
        return Ok(Exit::Usage);
    }
    let dir = args
        .artifact_dir
        .clone()
        .unwrap_or_else(|| default_dir(&plan));
    // Before the results of an earlier run are taken away.
    check_files(&plan.config)?;
    let held = match prepare(&dir).and_then(|held| clear(&dir).map(|()| held)) {
        Ok(held) => held,
        Err(message) => {
            say(&message);
            return Ok(Exit::Usage);
        }
    };
    if let Some(seed) = plan.config.seed {
        say(&format!("seed {seed}"));
    }
    let target = &plan.config.targets[0];
    let urls: Vec<String> = target.urls.iter().map(ToString::to_string).collect();
    let facts = RunFacts {
        url: urls[0].clone(),
        urls: (urls.len() > 1).then_some(urls),
        api: target.api.name(),
        model: target.model.clone(),
        load: plan.load.clone(),
        seed: plan.config.seed,
    };
    let setup = Setup {
        command: "bench",
        config: plan.config,
        anchor,
        connect: tcp(),
        extent: plan.extent,
        outputs: Outputs {
            summary: true,
            artifacts: Some(dir.clone()),
            listener: None,
        },
    };
    let app = App::build(setup, runtimes.handles())?;
    let shown = args.ui == Ui::Simple && std::io::stderr().is_terminal();
    let progress = tell_progress(app.live(), shown);
    let (report, signal) = with_signals(|stop| async {
        tokio::select! {
            report = Box::pin(app.run(stop)) => report,
            never = progress => match never {},
        }
    })
    .await?;
    if shown {
        say("");
    }
    let exit = finish(&report?, &facts, (&dir, args.output))?;
    drop(held);
    let exit = match (exit, args.unsure) {
        (Exit::Untrusted, Some(Unsure::Pass)) => Exit::Fine,
        (Exit::Untrusted, Some(Unsure::Fail)) => Exit::Failed,
        (exit, _) => exit,
    };
    Ok(signal.unwrap_or(exit))
}

/// Asks the server for its only model where none is given. A message if there are none or
/// several to choose from; a server that does not answer is met again by the run, which tells.
async fn find_model(plan: &mut Plan, anchor: TimeAnchor) -> Option<String> {
    let target = &mut plan.config.targets[0];
    if target.model.is_some() {
        return None;
    }
    match ask_model(target, anchor).await {
        Ok(model) => {
            target.model = model;
            None
        }
        Err(error @ DiscoverError::NotOne { .. }) => Some(format!(
            "--model: {error}
  wanted: the name of a model that the server serves"
        )),
        Err(_) => None,
    }
}

/// Takes the directory of the results, before anything is sent.
fn prepare(dir: &Path) -> Result<RecordDir, String> {
    RecordDir::take(dir).map_err(|error| unwritable(dir, &error))
}

/// Removes the result of an earlier run into the same directory, so that the files that are
/// there at the end belong together.
fn clear(dir: &Path) -> Result<(), String> {
    for name in ["requests.jsonl", "summary.json"] {
        let file = dir.join(name);
        // An empty one is what finding out whether it can be written has left.
        let holds_any = std::fs::metadata(&file).is_ok_and(|facts| facts.len() > 0);
        match std::fs::remove_file(&file) {
            Ok(()) if holds_any => {
                say(&format!("replacing `{}` of an earlier run", file.display()));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(unwritable(dir, &error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn unwritable(dir: &Path, error: &std::io::Error) -> String {
    format!(
        "--artifact-dir: `{}`: {error}\n  wanted: a directory that can be written\n  hint: choose another with `--artifact-dir`",
        dir.display()
    )
}

/// Writes and prints the result.
fn finish(
    report: &RunReport,
    header: &RunFacts,
    (dir, output): (&Path, Output),
) -> anyhow::Result<Exit> {
    let summary = report
        .summary
        .as_ref()
        .context("the run kept no statistics")?;
    let json = summary_json(summary, header)?;
    let path = dir.join("summary.json");
    std::fs::write(&path, &json).with_context(|| format!("`{}`", path.display()))?;
    match output {
        Output::Text => {
            print(&bench_table(summary))?;
            say(&format!("written to {}", dir.display()));
        }
        Output::Json => print(&json)?,
    }
    let doubts = doubts(report, summary);
    for file in &report.files {
        for told in told_of(file) {
            say(&told);
        }
    }
    for doubt in &doubts {
        say(&format!("{doubt}: the numbers are not to be trusted"));
    }
    Ok(if doubts.is_empty() {
        Exit::Fine
    } else {
        Exit::Untrusted
    })
}

/// Why the numbers are not to be trusted.
fn doubts(report: &RunReport, summary: &Summary) -> Vec<String> {
    let mut doubts = Vec::new();
    if !summary.outcomes.contains_key(Outcome::Ok.name()) {
        doubts.push("no request was answered".to_owned());
    }
    if summary.lagged * LAGGED_SHARE > summary.records {
        doubts.push(format!(
            "this machine was late for {} of {} requests",
            summary.lagged, summary.records
        ));
    }
    doubts.extend(report.files.iter().flat_map(file_doubts));
    for (exporter, account) in &report.exports {
        if account.sent < account.accepted {
            doubts.push(format!(
                "{} of {} records could not be written ({exporter}: {account})",
                account.accepted - account.sent,
                account.accepted
            ));
        }
    }
    doubts.extend(
        report
            .late
            .iter()
            .map(|stage| format!("`{stage}` did not end in time")),
    );
    doubts
}

fn summary_json(summary: &Summary, header: &RunFacts) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(summary)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        object.insert("run".to_owned(), serde_json::to_value(header)?);
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

fn default_dir(plan: &Plan) -> PathBuf {
    let target = &plan.config.targets[0];
    let model = target.model.as_deref().unwrap_or("unknown");
    let model: String = model
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    PathBuf::from("artifacts").join(format!("{model}-{}-{}", target.api.name(), plan.load))
}

/// Tells once a second how far the run is, if it is `shown`; for ever.
#[expect(clippy::print_stderr, reason = "a line that counts, on a terminal")]
async fn tell_progress(live: Arc<Mutex<Live>>, shown: bool) -> Infallible {
    loop {
        tokio::time::sleep(PROGRESS).await;
        if shown {
            let (ended, ok) = progress(&live);
            eprint!("\r{ended} ended, {ok} ok ");
        }
    }
}

/// Requests that ended, and those of them that were answered.
fn progress(live: &Mutex<Live>) -> (u64, u64) {
    let live = live.lock().unwrap_or_else(PoisonError::into_inner);
    let totals = || live.streams().iter().map(StreamLive::totals);
    (
        totals().map(Totals::arrivals).sum(),
        totals().map(|totals| totals.by_outcome(Outcome::Ok)).sum(),
    )
}
