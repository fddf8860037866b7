//! `generate rules`: recording rules and alerts for Prometheus.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;

use super::{Exit, print, say, usage};
use crate::config::{self, Config};
use crate::export::rules::{self, Baseline, Form, Links, Regression, Settings};

/// Arguments of `generate rules`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Configuration whose probes set the windows; without one, windows are the same for all.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    numbers: Numbers,
}

/// All that can be set about the rules.
#[derive(Debug, clap::Args)]
pub(super) struct Numbers {
    /// Which histograms Prometheus holds.
    #[arg(long, value_enum, default_value = "classic")]
    histograms: FormName,
    /// Divide all times by this, for rehearsals.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    compress: NonZeroU32,
    /// Time from one evaluation to the next [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = span)]
    interval: Option<Duration>,
    /// Over how much time quantiles are taken; longer for probes that are too slow for it
    /// [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = span)]
    window: Option<Duration>,
    /// Fewest requests of a window that are judged [default: 20].
    #[arg(long, value_name = "N")]
    least_requests: Option<u32>,
    /// Over how much time normal is taken [default: 1d].
    #[arg(long, value_name = "TIME", value_parser = span)]
    baseline: Option<Duration>,
    /// How long ago that time ended [default: 30m].
    #[arg(long, value_name = "TIME", value_parser = span)]
    baseline_offset: Option<Duration>,
    /// How much of it must have a p95 [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = span)]
    baseline_least: Option<Duration>,
    /// A p95 of so many times normal is a regression [default: 1.3].
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    factor: Option<f64>,
    /// Least difference of p95 TTFT that is one [default: 20ms].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    ttft_floor: Option<Duration>,
    /// Least difference of p95 ITL that is one [default: 2ms].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    itl_floor: Option<Duration>,
    /// How long a regression lasts before it is told [default: 2m].
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    hold: Option<Duration>,
    /// What comes before the name of a runbook in a link.
    #[arg(long, value_name = "URL", default_value = "docs/runbooks/")]
    runbooks: String,
    /// Where Grafana is, for links to boards [default: the path alone].
    #[arg(
        long,
        value_name = "URL",
        default_value = "",
        hide_default_value = true
    )]
    grafana: String,
}

/// Names of the forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// Buckets as series.
    Classic,
    /// Native histograms.
    Native,
}

impl Args {
    /// The configuration file.
    pub(super) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

impl Numbers {
    pub(super) fn settings(&self) -> Settings {
        let usual = Settings::default();
        let Baseline {
            span,
            offset,
            least,
        } = usual.baseline;
        let seconds = |time: Option<Duration>, usual| time.map_or(usual, |one| one.as_secs_f64());
        Settings {
            form: match self.histograms {
                FormName::Classic => Form::Classic,
                FormName::Native => Form::Native,
            },
            compress: self.compress,
            interval: self.interval.unwrap_or(usual.interval),
            window: self.window.unwrap_or(usual.window),
            least_requests: self.least_requests.unwrap_or(usual.least_requests),
            baseline: Baseline {
                span: self.baseline.unwrap_or(span),
                offset: self.baseline_offset.unwrap_or(offset),
                least: self.baseline_least.unwrap_or(least),
            },
            regression: Regression {
                factor: self.factor.unwrap_or(usual.regression.factor),
                ttft_floor: seconds(self.ttft_floor, usual.regression.ttft_floor),
                itl_floor: seconds(self.itl_floor, usual.regression.itl_floor),
                hold: self.hold.unwrap_or(usual.regression.hold),
                ..usual.regression
            },
            links: Links {
                runbooks: self.runbooks.clone(),
                grafana: self.grafana.trim_end_matches('/').to_owned(),
            },
            ..usual
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let settings = args.numbers.settings();
    let config = match &args.config {
        None => None,
        Some(file) => match config::load(file, config::environment(), &[]) {
            Ok(config) => Some(config),
            Err(diagnostics) => return Ok(usage(&diagnostics)),
        },
    };
    if let Some(config) = &config {
        warn(&settings, config);
    }
    let file = rules::rules(&settings, config.as_ref());
    print(rules::to_yaml(rules::HEAD, &file)?.trim_end())?;
    Ok(Exit::Fine)
}

/// Says which probes are too slow for what the rules judge.
pub(super) fn warn(settings: &Settings, config: &Config) {
    for probe in rules::unwatched(settings, config) {
        say(&format!(
            "probe `{probe}` is too slow: no window has the {} requests that a p95 needs, so none of its p95 is judged",
            settings.least_requests
        ));
    }
}

/// A time that is not zero.
fn span(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() {
        return Err("must be longer than zero".to_owned());
    }
    Ok(time)
}

/// A factor above 1.
fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 1.0 => Ok(factor),
        _ => Err("must be a number above 1".to_owned()),
    }
}
