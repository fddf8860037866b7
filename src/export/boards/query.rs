//! Queries of panels.

use crate::export::catalog::Metric;
use crate::export::rules::{Form, Quantile};

/// Seconds a rate is taken over: the reader's choice.
pub(super) const WINDOW: &str = "$window";

/// Streams chosen by the variables of a board.
pub(super) const CHOSEN: &str = "{target=~\"$target\", probe=~\"$probe\"}";

/// The one stream chosen by the variables of its board.
pub(super) const STREAM: &str =
    "{target=~\"$target\", endpoint=~\"$endpoint\", probe=~\"$probe\", cache=~\"$cache\"}";

/// Targets chosen by the variables of a board.
pub(super) const TARGET: &str = "{target=~\"$target\"}";

/// `expr`, drawn only if the variable `histograms` is `form`.
fn if_chosen(form: Form, expr: &str) -> String {
    format!(
        "{expr}\nand on () (label_replace(vector(1), \"form\", \"$histograms\", \"\", \"\") and on (form) label_replace(vector(1), \"form\", \"{}\", \"\", \"\"))",
        form.name()
    )
}

/// A quantile by the labels `by`, where so many values came as carry it.
pub(super) fn quantile(
    form: Form,
    quantile: Quantile,
    (metric, selector): (&Metric, &str),
    by: &[&str],
) -> String {
    let name = metric.prometheus;
    let labels = by.join(", ");
    let [q, least] = [quantile.value().to_owned(), quantile.least().to_string()];
    let expr = match form {
        Form::Classic => {
            let all: Vec<&str> = std::iter::once("le").chain(by.iter().copied()).collect();
            format!(
                "histogram_quantile({q}, sum by ({}) (rate({name}_bucket{selector}[{WINDOW}])))\nand sum by ({labels}) (increase({name}_count{selector}[{WINDOW}])) >= {least}",
                all.join(", ")
            )
        }
        Form::Native => format!(
            "histogram_quantile({q}, sum by ({labels}) (rate({name}{selector}[{WINDOW}])))\nand histogram_count(sum by ({labels}) (increase({name}{selector}[{WINDOW}]))) >= {least}"
        ),
    };
    if_chosen(form, &expr)
}

/// The buckets of a histogram over time.
pub(super) fn heatmap(form: Form, metric: &Metric, selector: &str) -> String {
    let name = metric.prometheus;
    let expr = match form {
        Form::Classic => {
            format!("sum by (le) (increase({name}_bucket{selector}[$__rate_interval]))")
        }
        Form::Native => format!("sum(increase({name}{selector}[$__rate_interval]))"),
    };
    if_chosen(form, &expr)
}

/// Growth per second of a counter by the labels `by`.
pub(super) fn rate(metric: &Metric, selector: &str, by: &[&str]) -> String {
    format!(
        "sum by ({}) (rate({}{selector}[{WINDOW}]))",
        by.join(", "),
        metric.prometheus
    )
}

/// Growth of a counter over the window by the labels `by`.
pub(super) fn increase(metric: &Metric, selector: &str, by: &[&str]) -> String {
    format!(
        "sum by ({}) (increase({}{selector}[{WINDOW}]))",
        by.join(", "),
        metric.prometheus
    )
}
