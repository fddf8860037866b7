//! Whom to tell what: the alerts on servers and those on ourselves.
//!
//! Each has a page in `docs/runbooks`, a severity, and the numbers that led to it. The shares in
//! them have a least number of requests, so that a quiet night is quiet.

use std::time::Duration;

use serde_saphyr::LitString;

use super::parts::Part;
use super::promql::{Form, PLACE, PROBING, quoted};
use super::recorded::series;
use super::{Annotations, Labels, Rule, Settings, gpus, recorded, targets};
use crate::config::Config;
use crate::export::catalog::{
    ARRIVALS, ARRIVALS_REFUSED, BUILD_INFO, EXPORT_ITEMS, ITL, LAST_SUCCESS, Metric,
    REQUESTS_LAGGED, SCRAPES, TTFT, TTFT_OR_FAILURE,
};

const MINUTE: Duration = Duration::from_mins(1);
/// Over how much time our own losses are counted.
const OWN_WINDOW: Duration = Duration::from_mins(15);

/// How loud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Somebody is woken.
    Critical,
    /// Somebody looks the next day.
    Warning,
}

impl Severity {
    /// Value of the label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it, and each has a page")]
pub enum AlertKind {
    TtftRegression,
    ItlRegression,
    RequestsFail,
    TargetDown,
    TargetRestarts,
    NoSuccess,
    SloBurnFast,
    SloBurnSlow,
    CertificateExpires,
    GpuError,
    GpuThrottled,
    Absent,
    StreamMissing,
    BudgetExhausted,
    ExportFails,
    OwnLag,
    ServerMetricsUnreadable,
}

/// All of them.
pub const ALERTS: [AlertKind; 17] = [
    AlertKind::TtftRegression,
    AlertKind::ItlRegression,
    AlertKind::RequestsFail,
    AlertKind::TargetDown,
    AlertKind::TargetRestarts,
    AlertKind::NoSuccess,
    AlertKind::SloBurnFast,
    AlertKind::SloBurnSlow,
    AlertKind::CertificateExpires,
    AlertKind::GpuError,
    AlertKind::GpuThrottled,
    AlertKind::Absent,
    AlertKind::StreamMissing,
    AlertKind::BudgetExhausted,
    AlertKind::ExportFails,
    AlertKind::OwnLag,
    AlertKind::ServerMetricsUnreadable,
];

impl AlertKind {
    /// Name of the alert.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TtftRegression => "TokencanaryTtftRegression",
            Self::ItlRegression => "TokencanaryItlRegression",
            Self::RequestsFail => "TokencanaryRequestsFail",
            Self::TargetDown => "TokencanaryTargetDown",
            Self::TargetRestarts => "TokencanaryTargetRestarts",
            Self::NoSuccess => "TokencanaryNoSuccess",
            Self::SloBurnFast => "TokencanarySloBurnFast",
            Self::SloBurnSlow => "TokencanarySloBurnSlow",
            Self::CertificateExpires => "TokencanaryCertificateExpires",
            Self::GpuError => "TokencanaryGpuError",
            Self::GpuThrottled => "TokencanaryGpuThrottled",
            Self::Absent => "TokencanaryAbsent",
            Self::StreamMissing => "TokencanaryStreamMissing",
            Self::BudgetExhausted => "TokencanaryBudgetExhausted",
            Self::ExportFails => "TokencanaryExportFails",
            Self::OwnLag => "TokencanaryOwnLag",
            Self::ServerMetricsUnreadable => "TokencanaryServerMetricsUnreadable",
        }
    }

    /// File of its page in `docs/runbooks`.
    #[must_use]
    pub const fn runbook(self) -> &'static str {
        match self {
            Self::TtftRegression => "ttft-regression.md",
            Self::ItlRegression => "itl-regression.md",
            Self::RequestsFail => "requests-fail.md",
            Self::TargetDown => "target-down.md",
            Self::TargetRestarts => "target-restarts.md",
            Self::NoSuccess => "no-success.md",
            Self::SloBurnFast | Self::SloBurnSlow => "slo-burn.md",
            Self::CertificateExpires => "certificate-expires.md",
            Self::GpuError => "gpu-error.md",
            Self::GpuThrottled => "gpu-throttled.md",
            Self::Absent => "absent.md",
            Self::StreamMissing => "stream-missing.md",
            Self::BudgetExhausted => "budget-exhausted.md",
            Self::ExportFails => "export-fails.md",
            Self::OwnLag => "own-lag.md",
            Self::ServerMetricsUnreadable => "server-metrics-unreadable.md",
        }
    }

    /// Path of the board to look at, with what is known put into its variables.
    const fn board(self) -> &'static str {
        match self {
            Self::TtftRegression
            | Self::ItlRegression
            | Self::RequestsFail
            | Self::NoSuccess
            | Self::SloBurnFast
            | Self::SloBurnSlow => {
                "/d/tokencanary-stream?var-target={{ $labels.target | urlquery }}&var-endpoint={{ $labels.endpoint | urlquery }}&var-probe={{ $labels.probe | urlquery }}"
            }
            Self::TargetDown
            | Self::TargetRestarts
            | Self::CertificateExpires
            | Self::StreamMissing
            | Self::ServerMetricsUnreadable => {
                "/d/tokencanary-overview?var-target={{ $labels.target | urlquery }}"
            }
            Self::GpuError | Self::GpuThrottled => {
                "/d/tokencanary-why?var-target={{ $labels.target | urlquery }}"
            }
            Self::Absent | Self::BudgetExhausted | Self::ExportFails | Self::OwnLag => {
                "/d/tokencanary-health"
            }
        }
    }
}

/// One alert before it is a rule.
pub(super) struct Alert {
    pub(super) kind: AlertKind,
    pub(super) severity: Severity,
    pub(super) expr: String,
    pub(super) hold: Duration,
    pub(super) summary: String,
    pub(super) description: String,
}

impl Alert {
    pub(super) fn rule(self, settings: &Settings) -> Rule {
        let links = &settings.links;
        Rule {
            record: None,
            alert: Some(self.kind.name().to_owned()),
            expr: LitString(self.expr),
            hold: (!self.hold.is_zero()).then(|| settings.span(self.hold)),
            labels: Some(Labels {
                severity: self.severity.name(),
            }),
            annotations: Some(Annotations {
                summary: self.summary,
                description: self.description,
                runbook_url: format!("{}{}", links.runbooks, self.kind.runbook()),
                dashboard_url: format!("{}{}", links.grafana, self.kind.board()),
            }),
        }
    }
}

/// How a text names one stream.
const STREAM: &str = "{{ $labels.probe }} at {{ $labels.target }} ({{ $labels.endpoint }}, cache {{ $labels.cache }})";

/// Alerts on the servers.
pub(super) fn of_servers(settings: &Settings, probes: &[Part], by_target: &[Part]) -> Vec<Rule> {
    let mut alerts = vec![
        regression(settings, AlertKind::TtftRegression),
        regression(settings, AlertKind::ItlRegression),
        requests_fail(settings),
    ];
    alerts.extend(by_target.iter().map(|part| targets::down(settings, part)));
    alerts.extend(probes.iter().map(|part| no_success(settings, part)));
    alerts.extend([
        targets::restarts(settings),
        targets::certificate(14, Severity::Warning),
        targets::certificate(3, Severity::Critical),
        gpus::error(settings),
        gpus::throttled(settings),
    ]);
    alerts
        .into_iter()
        .map(|alert| alert.rule(settings))
        .collect()
}

/// Alerts on the canary itself.
pub(super) fn of_ourselves(settings: &Settings, config: Option<&Config>) -> Vec<Rule> {
    let mut alerts = vec![absent()];
    alerts.extend(config.into_iter().flat_map(missing));
    alerts.extend([
        budget_exhausted(settings),
        export_fails(settings),
        own_lag(settings),
        server_metrics_unreadable(settings),
    ]);
    alerts
        .into_iter()
        .map(|alert| alert.rule(settings))
        .collect()
}

/// Looks up what else was recorded of the stream of the alert, in a template.
fn looked_up(name: &str, shown: &str) -> String {
    format!(
        "{{{{ with printf \"{name}{{job=%q, target=%q, endpoint=%q, probe=%q, cache=%q, connection=%q}}\" $labels.job $labels.target $labels.endpoint $labels.probe $labels.cache $labels.connection | query }}}}{{{{ . | first | value | {shown} }}}}{{{{ end }}}}"
    )
}

/// Classic buckets are √2 wide, so a p95 that drifts over a bound may rise by 1.41 times when the
/// times rose by far less. A smaller step than this is believed only if the mean rose as well.
const ONE_BUCKET: f64 = 1.5;
/// By so much.
const MEAN_IN_BUCKETS: f64 = 1.2;

fn regression(settings: &Settings, kind: AlertKind) -> Alert {
    let limits = settings.regression;
    let (what, judged, mean_of, floor): (_, &Metric, &Metric, _) = match kind {
        AlertKind::ItlRegression => ("between tokens", &ITL, &ITL, limits.itl_floor),
        _ => ("to first token", &TTFT_OR_FAILURE, &TTFT, limits.ttft_floor),
    };
    let now = recorded(judged, "p95");
    let normal = recorded(judged, "p95_baseline");
    let mean_normal = recorded(mean_of, "mean_baseline");
    let mean = recorded(mean_of, "mean");
    let factor = limits.factor;
    let drift = match settings.form {
        Form::Native => String::new(),
        Form::Classic => format!(
            "\nunless ({now} < {ONE_BUCKET} * {normal} and {mean} < {MEAN_IN_BUCKETS} * {mean_normal})"
        ),
    };
    Alert {
        kind,
        severity: Severity::Critical,
        expr: format!(
            "{now} > {factor} * {normal}\nand {now} - {normal} > {floor}\nand (\n  {} > {} * {mean_normal}\n  or {} > {factor} * {normal}\n)\nunless {mean} < {} * {mean_normal}{drift}",
            recorded(mean_of, "mean_now"),
            limits.now_factor,
            recorded(judged, "p95_long"),
            limits.mean_factor,
        ),
        hold: limits.hold,
        summary: format!(
            "p95 time {what} has risen, {{{{ $labels.probe }}}} at {{{{ $labels.target }}}}"
        ),
        description: format!(
            "p95 time {what} of {STREAM} is {{{{ $value | humanizeDuration }}}}, over the last {} requests. Normal is {}. Told at {} times that.",
            looked_up(&recorded(judged, "samples"), "printf \"%.0f\""),
            looked_up(&normal, "humanizeDuration"),
            factor,
        ),
    }
}

fn requests_fail(settings: &Settings) -> Alert {
    Alert {
        kind: AlertKind::RequestsFail,
        severity: Severity::Critical,
        expr: format!(
            "1 - {} > {}\nand {} >= {}",
            series::SUCCESS,
            settings.failing_share,
            series::COUNTED,
            settings.least_requests
        ),
        hold: 2 * MINUTE,
        summary: "Requests fail, {{ $labels.probe }} at {{ $labels.target }}".to_owned(),
        description: format!(
            "{{{{ $value | humanizePercentage }}}} of the last {} requests of {STREAM} failed.",
            looked_up(series::COUNTED, "printf \"%.0f\""),
        ),
    }
}

fn no_success(settings: &Settings, part: &Part) -> Alert {
    // Three windows hold 90 requests of the slowest probe.
    let age = settings.last_success.max(3 * part.window);
    Alert {
        kind: AlertKind::NoSuccess,
        severity: Severity::Critical,
        expr: format!(
            "time() - max without ({PLACE}) ({}{}) > {}",
            LAST_SUCCESS.prometheus,
            part.selector(&[]),
            settings.seconds(age)
        ),
        hold: Duration::ZERO,
        summary: "No good answer for a long time, {{ $labels.probe }} at {{ $labels.target }}"
            .to_owned(),
        description: format!(
            "The last good answer of {STREAM} is {{{{ $value | humanizeDuration }}}} old: the server fails, or the canary sends nothing."
        ),
    }
}

fn absent() -> Alert {
    Alert {
        kind: AlertKind::Absent,
        severity: Severity::Critical,
        expr: format!("absent({})", BUILD_INFO.prometheus),
        hold: 3 * MINUTE,
        summary: "No canary is running".to_owned(),
        description: "Prometheus has no metrics of any canary: nobody watches the servers. No other alert of these rules can fire.".to_owned(),
    }
}

/// One alert for each stream that is configured.
fn missing(config: &Config) -> impl Iterator<Item = Alert> {
    let pairs = config.probes.iter().flat_map(|probe| {
        let targets = probe.targets.iter();
        targets.map(move |target| (target.as_str(), probe.name.as_str()))
    });
    pairs.map(|(target, probe)| Alert {
        kind: AlertKind::StreamMissing,
        severity: Severity::Warning,
        expr: format!(
            "absent({}{{target={}, probe={}}})",
            ARRIVALS.prometheus,
            quoted(target),
            quoted(probe)
        ),
        hold: 10 * MINUTE,
        summary: "{{ $labels.probe }} at {{ $labels.target }} is configured and not there"
            .to_owned(),
        description: "Prometheus has no metrics of the probe {{ $labels.probe }} at the target {{ $labels.target }}: the canary runs with another configuration, or is not scraped.".to_owned(),
    })
}

fn budget_exhausted(settings: &Settings) -> Alert {
    let window = settings.span(10 * MINUTE);
    Alert {
        kind: AlertKind::BudgetExhausted,
        severity: Severity::Warning,
        expr: format!(
            "sum without ({PLACE}, target, endpoint, {PROBING}, reason) (increase({}{{reason=\"budget\"}}[{window}])) > 0",
            ARRIVALS_REFUSED.prometheus
        ),
        hold: 5 * MINUTE,
        summary: "The canary's budget of the day is used up".to_owned(),
        description: format!(
            "{{{{ $value | printf \"%.0f\" }}}} requests were held back in {window}, because the budget of the UTC day is used up: servers are not watched until it is over."
        ),
    }
}

fn export_fails(settings: &Settings) -> Alert {
    let window = settings.span(OWN_WINDOW);
    let grown = |matcher: &str| {
        format!(
            "sum without ({PLACE}, result) (increase({}{{result{matcher}}}[{window}]))",
            EXPORT_ITEMS.prometheus
        )
    };
    let lost = grown("=~\"rejected|dropped|failed\"");
    Alert {
        kind: AlertKind::ExportFails,
        severity: Severity::Warning,
        expr: format!(
            "{lost} > 0\nand {lost} > {} * {}",
            settings.lost_share,
            grown("=\"accepted\"")
        ),
        hold: 5 * MINUTE,
        summary: "The exporter {{ $labels.exporter }} loses what it is given".to_owned(),
        description: format!(
            "The exporter {{{{ $labels.exporter }}}} has lost {{{{ $value | printf \"%.0f\" }}}} values in {window}: its receiver is slow, away, or does not take them."
        ),
    }
}

fn own_lag(settings: &Settings) -> Alert {
    let window = settings.span(OWN_WINDOW);
    let grown = |metric: &Metric| {
        format!(
            "sum without ({PLACE}, target, endpoint, {PROBING}) (increase({}[{window}]))",
            metric.prometheus
        )
    };
    Alert {
        kind: AlertKind::OwnLag,
        severity: Severity::Warning,
        expr: format!(
            "{} / {} > {}\nand {} >= {}",
            grown(&REQUESTS_LAGGED),
            grown(&ARRIVALS),
            settings.lagged_share,
            grown(&ARRIVALS),
            settings.least_requests
        ),
        hold: 10 * MINUTE,
        summary: "The canary itself is too slow".to_owned(),
        description: format!(
            "{{{{ $value | humanizePercentage }}}} of the requests of {window} were late because of the canary: its machine is too busy. They are in the histograms, and in no verdict."
        ),
    }
}

fn server_metrics_unreadable(settings: &Settings) -> Alert {
    let window = settings.span(OWN_WINDOW);
    let grown = |matcher: &str| {
        format!(
            "sum without ({PLACE}, result) (increase({}{matcher}[{window}]))",
            SCRAPES.prometheus
        )
    };
    Alert {
        kind: AlertKind::ServerMetricsUnreadable,
        severity: Severity::Warning,
        // A server without such a page never had one: only what once worked is told.
        expr: format!(
            "{} / ({} > 0) > 0.5\nand sum without ({PLACE}, result) (increase({}{{result=\"ok\"}}[{}])) > 0",
            grown("{result!=\"ok\"}"),
            grown(""),
            SCRAPES.prometheus,
            settings.span(24 * 60 * MINUTE),
        ),
        hold: 15 * MINUTE,
        summary: "The metrics page of {{ $labels.target }} cannot be read".to_owned(),
        description: format!(
            "{{{{ $value | humanizePercentage }}}} of the reads of the metrics page of {{{{ $labels.target }}}} failed in {window}: its queue and its cache are not known."
        ),
    }
}
