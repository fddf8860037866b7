//! `check`: validates a configuration, prints the plan of a day, and sends one request to each
//! target.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};

use super::{Exit, Output, print, say, usage};
use crate::app::{Checked, CheckedRequest, check_target, tcp};
use crate::clock::TimeAnchor;
use crate::config::{self, Config};
use crate::measurement::Outcome;
use crate::report::{
    Budget, Colour, ObjectiveRow, PlanRow, hint, objectives_line, objectives_table, plan_table,
    waterfall,
};

/// Targets that are asked at once: few enough not to be in each other's way.
const AT_ONCE: usize = 4;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Configuration file, YAML or TOML.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// How results are printed.
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
}

impl Args {
    /// The configuration file.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let config = match config::load(&args.config, config::environment(), &[]) {
        Ok(config) => config,
        Err(diagnostics) => return Ok(usage(&diagnostics)),
    };
    if args.output == Output::Text {
        print(&plan(&config))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(check_all(&config, args.output))
}

async fn check_all(config: &Config, output: Output) -> anyhow::Result<Exit> {
    let anchor = TimeAnchor::start();
    let mut exit = Exit::Fine;
    let indices = stream::iter(0..config.targets.len());
    // In their order; one that is silent does not hold up all others.
    let mut all = indices
        .map(|index| check_target(config, index, tcp(), anchor))
        .buffered(AT_ONCE)
        .enumerate();
    while let Some((index, checked)) = all.next().await {
        let target = &config.targets[index];
        let Some(checked) = checked? else {
            say(&format!(
                "targets[{index}]: `{}` is used by no probe and was not tried",
                target.name
            ));
            continue;
        };
        for request in &checked.requests {
            match output {
                Output::Text => {
                    let mut shown = waterfall(&request.observed, request.stall, colour());
                    if let Some(line) = objectives_line(&request.observed.record, &request.slo) {
                        shown.push_str(&line);
                    }
                    print(&shown)?;
                }
                Output::Json => print(&request.json_line(anchor))?,
            }
        }
        for problem in problems(config, index, &checked) {
            say(&problem);
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Colours on a terminal, unless `NO_COLOR` is set.
fn colour() -> Colour {
    let unwanted =
        config::environment().any(|(name, value)| name == "NO_COLOR" && !value.is_empty());
    if std::io::stdout().is_terminal() && !unwanted {
        Colour::Ansi
    } else {
        Colour::Off
    }
}

/// What is wrong with a target, in the form of configuration problems.
fn problems(config: &Config, index: usize, checked: &Checked) -> Vec<String> {
    let target = &config.targets[index];
    let mut problems = Vec::new();
    for (position, (url, request)) in target.urls.iter().zip(&checked.requests).enumerate() {
        let key = match target.urls.len() {
            1 => "url".to_owned(),
            _ => format!("urls[{position}]"),
        };
        let at = format!("targets[{index}].{key}: `{url}`");
        if request.refuses_length {
            problems.push(format!(
                "targets[{index}].request.exact_length: `true`: the server refuses a request that asks for an answer of exactly so many tokens, and takes the same one without\n  wanted: `false`\n  hint: answers may then be shorter than asked; their streams are marked `length: advisory`"
            ));
        } else {
            problems.extend(failure(&at, &target.name, request));
        }
    }
    let answered = |one: &CheckedRequest| one.observed.record.outcome == Outcome::Ok;
    if let Some(error) = &checked.model
        && (checked.requests.iter().any(answered) || target.model.is_none())
    {
        let given = target.model.as_deref().unwrap_or("(not set)");
        problems.push(format!(
            "targets[{index}].model: `{given}`: {error}\n  wanted: the name of a model that the server serves\n  hint: `model` may be left out where there is only one"
        ));
    }
    problems
}

/// What is wrong with the answer from the address that `at` names; `None` if nothing is.
fn failure(at: &str, target: &str, request: &CheckedRequest) -> Option<String> {
    let record = &request.observed.record;
    if record.outcome == Outcome::Ok {
        return None;
    }
    let what = record.error.as_ref().map_or_else(
        || record.outcome.name().to_owned(),
        |error| format!("{}: {}", record.outcome.name(), error.message),
    );
    Some(format!(
        "{at}: {what}\n  wanted: an answer with tokens from `{target}`\n  hint: {}",
        hint(record).unwrap_or("see the waterfall above"),
    ))
}

/// Requests and tokens per day, against the budget, and what is wanted of them.
fn plan(config: &Config) -> String {
    let mut rows = Vec::new();
    for probe in &config.probes {
        let rate = probe.mean_rate();
        let (input_tokens, output_tokens) = probe.workload.mean_tokens();
        rows.extend(probe.targets.iter().map(|target| PlanRow {
            probe: probe.name.clone(),
            target: target.clone(),
            rate,
            input_tokens,
            output_tokens,
        }));
    }
    let budget = Budget {
        requests_per_day: config.governor.requests_per_day,
        tokens_per_day: config.governor.tokens_per_day,
    };
    let objectives: Vec<ObjectiveRow> = config
        .probes
        .iter()
        .map(|probe| ObjectiveRow {
            probe: probe.name.clone(),
            slo: probe.slo,
            rate: probe.mean_rate(),
        })
        .collect();
    let mut out = plan_table(&rows, budget);
    let wanted = objectives_table(&objectives);
    if !wanted.is_empty() {
        out.push('\n');
        out.push_str(&wanted);
    }
    out
}
