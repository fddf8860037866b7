//! `check`: validates a configuration, prints the plan of a day, and sends one request to each
//! target.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, stream};

use super::plan::plan;
use super::{Exit, Output, print, say, usage};
use crate::app::{Checked, CheckedRequest, GpuLook, Recognised, check_target, look_at_gpus, tcp};
use crate::clock::TimeAnchor;
use crate::config::{self, Config};
use crate::measurement::server::ScrapeResult;
use crate::measurement::{Gpu, GpuField, Outcome, RequestRecord};
use crate::report::{Colour, gpu_fields, hint, objectives_line, waterfall};

/// Targets that are asked at once: few enough not to be in each other's way.
const AT_ONCE: usize = 4;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tokencanary check [OPTIONS] --config <FILE>\n       tokencanary check [OPTIONS] --gpu [--config <FILE>]"
)]
pub(super) struct Args {
    /// Configuration file, YAML or TOML.
    #[arg(short, long, value_name = "FILE", required_unless_present = "gpu")]
    config: Option<PathBuf>,
    /// Print every field of the targets' GPUs and of this machine's instead, and send no request.
    #[arg(long)]
    gpu: bool,
    /// How results are printed.
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
}

impl Args {
    /// The configuration file.
    pub(super) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let config = match &args.config {
        None => None,
        Some(file) => match config::load(file, config::environment(), &[]) {
            Ok(config) => Some(config),
            Err(diagnostics) => return Ok(usage(&diagnostics)),
        },
    };
    if args.gpu {
        return gpus(config.as_ref(), args.output);
    }
    // Without `--gpu` the flags ask for a file.
    let Some(config) = config else {
        return Ok(Exit::Usage);
    };
    if args.output == Output::Text {
        print(&plan(&config))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(check_all(&config, args.output))
}

/// Reads the GPUs once, and fails if those that are wanted are not there.
fn gpus(config: Option<&Config>, output: Output) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut exit = Exit::Fine;
    for look in runtime.block_on(look_at_gpus(config))? {
        match (&look.found, output) {
            (Ok(gpus), Output::Text) => print(&gpu_fields(&look.of, &look.source, gpus))?,
            (Ok(gpus), Output::Json) => {
                for gpu in gpus {
                    print(&gpu_line(&look, gpu))?;
                }
            }
            (Err(why), _) => {
                say(&format!("{}: {}: {why}", look.of, look.source));
                if look.wanted {
                    exit = Exit::Failed;
                }
            }
        }
    }
    Ok(exit)
}

/// One GPU as a line of JSON; a field that is not known is null.
fn gpu_line(look: &GpuLook, gpu: &Gpu) -> String {
    let fields: serde_json::Map<_, _> = GpuField::ALL
        .iter()
        .map(|field| (field.name().to_owned(), gpu.fields.get(*field).into()))
        .collect();
    serde_json::json!({
        "of": look.of,
        "source": look.source,
        "gpu": gpu.name,
        "uuid": gpu.uuid,
        "model": gpu.model,
        "fields": fields,
    })
    .to_string()
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
        if output == Output::Text
            && let Some(server) = &checked.server
        {
            print(&recognised(server))?;
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

/// Which engine a server is, and what it does not say.
fn recognised(server: &Recognised) -> String {
    let engine = match (server.engine, &server.version) {
        (Some(engine), Some(version)) => format!("{} {version}", engine.name()),
        (Some(engine), None) => engine.name().to_owned(),
        (None, _) => "of no known engine".to_owned(),
    };
    let page = match server.result {
        ScrapeResult::Ok => "its metrics page is read".to_owned(),
        other => format!("its metrics page is not read: `{}`", other.name()),
    };
    let mut lines = vec![format!("server: {engine}; {page}")];
    if !server.lacks.is_empty() {
        lines.push(format!("  not on its page: {}", server.lacks.join(", ")));
    }
    if !server.never.is_empty() {
        lines.push(format!(
            "  never published by it: {}",
            server.never.join(", ")
        ));
    }
    lines.join("\n")
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
            let record = &request.observed.record;
            problems.extend(failure(&at, &target.name, record));
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
fn failure(at: &str, target: &str, record: &RequestRecord) -> Option<String> {
    if record.outcome == Outcome::Ok {
        return None;
    }
    let what = what_became(record);
    Some(format!(
        "{at}: {what}\n  wanted: an answer with tokens from `{target}`\n  hint: {}",
        hint(record).unwrap_or("see the waterfall above"),
    ))
}

/// What became of a request that was not answered well, in one line.
pub(super) fn what_became(record: &RequestRecord) -> String {
    record.error.as_ref().map_or_else(
        || record.outcome.name().to_owned(),
        |error| format!("{}: {}", record.outcome.name(), error.message),
    )
}
