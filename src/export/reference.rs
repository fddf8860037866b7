//! The table of `docs/metrics.md`: the catalog, one line for each metric.

use super::catalog::{ALL, Kind, Metric, Scope};

/// The first line of the table.
pub const HEADER: &str =
    "| OpenTelemetry name | Prometheus name | type | unit | labels | meaning |";

/// The whole table, with a line break at its end.
#[must_use]
pub fn table() -> String {
    let rows = ALL.iter().map(|metric| {
        format!(
            "| `{}` | `{}` | {} | {} | {} | {} |\n",
            metric.name,
            metric.prometheus,
            kind(metric),
            metric.unit,
            labels(metric),
            metric.help
        )
    });
    let columns = HEADER.matches('|').count() - 1;
    let line = format!("|{}\n", "---|".repeat(columns));
    format!("{HEADER}\n{line}{}", rows.collect::<String>())
}

const fn kind(metric: &Metric) -> &'static str {
    match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    }
}

fn labels(metric: &Metric) -> String {
    let scope = match metric.scope {
        Scope::Stream => Some("*stream*".to_owned()),
        Scope::Target => Some("*target*".to_owned()),
        Scope::Program => None,
    };
    let own = metric.labels.iter().map(|label| format!("`{label}`"));
    let all: Vec<String> = scope.into_iter().chain(own).collect();
    all.join(" ")
}
