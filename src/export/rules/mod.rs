//! Rules for Prometheus: what is recorded, and when somebody is told.
//!
//! Text only: nothing is measured here. Every metric named is one of the catalog or one recorded
//! by another rule of the same file, and every number that could be argued about is a field of
//! [`Settings`]. The same file comes in two forms, for classic and for native histograms; the
//! recorded names are the same in both, so alerts and boards do not care which one is loaded.
//!
//! All times are divided by [`Settings::compress`], which is for rehearsals: a day of rules
//! passes in two hours at 12.

mod alerts;
mod gpus;
mod parts;
mod promql;
mod recorded;
mod recording;
mod slo;
mod targets;

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;
use serde_saphyr::LitString;

use self::parts::{Part, by_probe, by_target};
use crate::config::Config;

pub use self::alerts::{ALERTS, AlertKind, Severity};
pub use self::parts::unwatched;
pub use self::promql::{Form, span_text};
pub(in crate::export) use self::recorded::series;
pub use self::recorded::{BASELINES, Quantile, RECORDED_HISTOGRAMS, recorded};
pub(in crate::export) use self::slo::recorded_over;

/// A file of rules, as Prometheus reads it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleFile {
    /// Evaluated side by side; the rules of one in their order.
    pub groups: Vec<Group>,
}

/// Rules that are evaluated one after the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Unique in its file.
    pub name: String,
    /// Time from one evaluation to the next.
    pub interval: String,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// One rule: either `record` or `alert` is set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// Name of the recorded series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Name of the alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
    /// What is evaluated.
    pub expr: LitString,
    /// How long it has to hold before somebody is told.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// Labels of what is recorded or told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// What is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
}

impl Rule {
    /// `name` is the value of `expr`.
    fn record(name: &str, expr: String) -> Self {
        Self {
            record: Some(name.to_owned()),
            alert: None,
            expr: LitString(expr),
            hold: None,
            labels: None,
            annotations: None,
        }
    }

    /// What the rule is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.record
            .as_deref()
            .or(self.alert.as_deref())
            .unwrap_or_default()
    }
}

/// Labels of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// `critical`: somebody is woken. `warning`: somebody looks the next day.
    pub severity: &'static str,
}

/// What an alert says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// One line.
    pub summary: String,
    /// The numbers.
    pub description: String,
    /// The page that says what to do.
    pub runbook_url: String,
    /// The board to look at, with its variables set.
    pub dashboard_url: String,
}

/// All numbers of the rules. Times are those of an uncompressed run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which histograms Prometheus holds.
    pub form: Form,
    /// By how much all times are divided.
    pub compress: NonZeroU32,
    /// Time from one evaluation to the next.
    pub interval: Duration,
    /// Over how much time quantiles and shares are taken.
    pub window: Duration,
    /// Fewest requests that a share is worth judging by.
    pub least_requests: u32,
    /// What normal is.
    pub baseline: Baseline,
    /// When slower is a regression.
    pub regression: Regression,
    /// Share of failed requests that is told.
    pub failing_share: f64,
    /// Age of the last success that is told.
    pub last_success: Duration,
    /// Share of our own late requests that is told.
    pub lagged_share: f64,
    /// Share of lost values of an exporter that is told.
    pub lost_share: f64,
    /// Fewest events and fewest bad ones in the long window of a burn-rate rule.
    pub slo_least: [u32; 2],
    /// Where pages and boards are.
    pub links: Links,
}

/// What normal is: the median of the recorded p95 over a long time that ended a while ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// How long that time is.
    pub span: Duration,
    /// How long ago it ended, so that the beginning of a regression is not normal.
    pub offset: Duration,
    /// Least time of it in which there was a p95.
    pub least: Duration,
}

/// When slower is a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regression {
    /// Times the baseline.
    pub factor: f64,
    /// Least difference of TTFT, seconds: smaller ones matter to nobody.
    pub ttft_floor: f64,
    /// Least difference of ITL, seconds.
    pub itl_floor: f64,
    /// Least ratio of the mean of the last fifth of the window: it must still go on. A minute of
    /// slow requests raises the p95 for as long as they are in the window.
    pub now_factor: f64,
    /// Least ratio of the means, which are exact: a p95 from classic buckets jumps by a whole
    /// bucket when all values lie close together and drift across a bound.
    pub mean_factor: f64,
    /// How long all that has to hold.
    pub hold: Duration,
}

/// Where pages and boards are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// What comes before the name of a page of `docs/runbooks`.
    pub runbooks: String,
    /// Where Grafana is, without a slash at the end; empty: a path on its own.
    pub grafana: String,
}

impl Default for Settings {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_mins(1);
        Self {
            form: Form::Classic,
            compress: NonZeroU32::MIN,
            interval: MINUTE / 2,
            window: 5 * MINUTE,
            least_requests: 20,
            baseline: Baseline {
                span: Duration::from_hours(24),
                offset: 30 * MINUTE,
                least: 60 * MINUTE,
            },
            regression: Regression {
                factor: 1.3,
                ttft_floor: 0.02,
                itl_floor: 0.002,
                now_factor: 1.1,
                mean_factor: 1.02,
                hold: 2 * MINUTE,
            },
            failing_share: 0.1,
            last_success: 30 * MINUTE,
            lagged_share: 0.05,
            lost_share: 0.01,
            slo_least: [20, 5],
            links: Links {
                runbooks: "docs/runbooks/".to_owned(),
                grafana: String::new(),
            },
        }
    }
}

impl Settings {
    /// `time` as `PromQL` writes it, compressed.
    fn span(&self, time: Duration) -> String {
        span_text(time / self.compress.get())
    }

    /// `time` in seconds, compressed.
    fn seconds(&self, time: Duration) -> String {
        (time / self.compress.get()).as_secs_f64().to_string()
    }
}

/// What a file of rules begins with.
pub const HEAD: &str = "# Made by `tokencanary generate rules`; docs/rules.md describes them.\n";

/// The rules. With a configuration, windows follow the rates of its probes, and a stream that is
/// configured and not there is told.
#[must_use]
pub fn rules(settings: &Settings, config: Option<&Config>) -> RuleFile {
    let probes = config.map_or_else(
        || vec![Part::all(settings.window)],
        |config| by_probe(settings, config),
    );
    let targets = config.map_or_else(
        || vec![Part::all(settings.window)],
        |config| by_target(settings, config),
    );
    let group = |name: &str, interval: Duration, rules: Vec<Rule>| Group {
        name: name.to_owned(),
        interval: settings.span(interval),
        rules,
    };
    let mut groups = Vec::new();
    for part in &probes {
        let name = format!("tokencanary-streams{}", part.suffix());
        let rules = recording::streams(settings, part);
        groups.push(group(&name, settings.interval, rules));
    }
    groups.push(group(
        "tokencanary-baselines",
        settings.interval,
        recording::baselines(settings),
    ));
    groups.push(group(
        "tokencanary-slo",
        settings.interval,
        slo::short(settings),
    ));
    groups.push(group(
        "tokencanary-slo-long",
        slo::LONG_INTERVAL,
        slo::long(settings),
    ));
    let mut alerts = alerts::of_servers(settings, &probes, &targets);
    alerts.extend(slo::alerts(settings));
    groups.push(group("tokencanary-alerts", settings.interval, alerts));
    groups.push(group(
        "tokencanary-own-alerts",
        settings.interval,
        alerts::of_ourselves(settings, config),
    ));
    RuleFile { groups }
}

/// The file as text, after `head`.
///
/// # Errors
///
/// The serializer's own; a test writes every kind of rule.
pub fn to_yaml<T: Serialize>(head: &str, file: &T) -> Result<String, serde_saphyr::SerializeError> {
    Ok(format!("{head}{}", serde_saphyr::to_string(file)?))
}

#[cfg(test)]
mod tests;
