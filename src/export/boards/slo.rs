//! Panels of objectives, on the boards of all streams and of one.

use super::panel::Panel;
use crate::export::catalog::{Metric, SLO_EVENTS, SLO_GOOD, SLO_LIMIT, SLO_OBJECTIVE};
use crate::export::rules::{recorded_over, series};

/// Share of good events, how fast the budget is spent, and what is left of it, by the labels
/// `by` beside `slo`.
pub(super) fn panels(selector: &str, by: &str) -> Vec<Panel> {
    let labels = if by.is_empty() {
        "slo".to_owned()
    } else {
        format!("slo, {by}")
    };
    let legend = if by.is_empty() {
        "{{slo}}"
    } else {
        "{{slo}} {{probe}} at {{target}}"
    };
    let sum = |metric: &Metric, window: &str| {
        format!(
            "sum by ({labels}) (increase({}{selector}[{window}]))",
            metric.prometheus
        )
    };
    let ratio = recorded_over("bad:ratio", 60);
    let (budget, objective) = (series::ERROR_BUDGET, SLO_OBJECTIVE.prometheus);
    vec![
        Panel::lines(
            "percentunit",
            "Good share and objective",
            "Share of events that met each objective, over the chosen window. Refusals that are not the server's fault and cancelled requests are no events. The objective is the dashed line.",
        )
        .query(legend, format!("{} / ({} > 0)", sum(&SLO_GOOD, "$window"), sum(&SLO_EVENTS, "$window")))
        .query(
            &format!("objective of {legend}"),
            format!("max by ({labels}) ({objective}{selector})"),
        )
        .dashed("/^objective of/"),
        Panel::lines(
            "none",
            "Burn rate, 1 hour",
            "How many times as fast as allowed the error budget is spent. 1 spends it in exactly 30 days; 14.4 pages (with the window of 5 minutes). Recorded by the rules.",
        )
        .query(legend, format!("max by ({labels}) ({ratio}{selector} / {budget}{selector})")),
        Panel::lines(
            "percentunit",
            "Error budget left in the time shown",
            "What is left of the budget if the time shown on this board were the whole period. Below zero it is overspent.",
        )
        .query(
            legend,
            format!(
                "1 - (1 - {} / ({} > 0)) / (1 - max by ({labels}) ({objective}{selector}))",
                sum(&SLO_GOOD, "$__range"),
                sum(&SLO_EVENTS, "$__range")
            ),
        )
        .below_zero(),
        Panel::lines(
            "s",
            "Limits",
            "The most that each latency of a good request may be, as configured.",
        )
        .query(
            legend,
            format!("max by ({labels}) ({}{selector})", SLO_LIMIT.prometheus),
        ),
    ]
}
