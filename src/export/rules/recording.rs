//! What is recorded: quantiles, shares, rates, and what normal is.

use super::promql::PLACE;
use super::recorded::series;
use super::{BASELINES, Part, Quantile, RECORDED_HISTOGRAMS, Rule, Settings, recorded};
use crate::export::catalog::{ARRIVALS, ARRIVALS_REFUSED, Metric, REQUESTS, TOKENS};

/// Quantiles, means, shares and rates of the streams of `part`.
pub(super) fn streams(settings: &Settings, part: &Part) -> Vec<Rule> {
    let mut rules = Vec::new();
    for metric in RECORDED_HISTOGRAMS {
        rules.extend(quantiles(settings, part, metric));
    }
    for (_, metric) in BASELINES {
        let window = settings.span(part.window);
        let mean = settings
            .form
            .mean(metric.prometheus, [&part.selector(&[]), &window]);
        rules.push(Rule::record(&recorded(metric, "mean"), mean));
    }
    rules.extend(requests(settings, part));
    rules
}

/// How many values came, and those quantiles that so many carry.
fn quantiles(settings: &Settings, part: &Part, metric: &'static Metric) -> Vec<Rule> {
    let window = settings.span(part.window);
    let selector = part.selector(&[]);
    let name = metric.prometheus;
    let samples = recorded(metric, "samples");
    let count = settings.form.count(name, [&selector, &window]);
    let mut rules = vec![Rule::record(&samples, count)];
    let grown = settings.form.grown("rate", name, [&selector, &window]);
    rules.extend(Quantile::ALL.map(|quantile| {
        let expr = format!(
            "histogram_quantile({}, {grown})\nand {samples} >= {}",
            quantile.value(),
            quantile.least()
        );
        Rule::record(&recorded(metric, quantile.name()), expr)
    }));
    rules
}

/// Requests that count for or against the server, and rates.
///
/// What counts is taken from the arrivals less what does not count: a counter of failures begins
/// with the first failure, and what it begins with is not growth.
fn requests(settings: &Settings, part: &Part) -> Vec<Rule> {
    let window = settings.span(part.window);
    let grown = |metric: &Metric, own: &str, more: &[&str]| {
        format!(
            "sum without ({PLACE}{own}) (increase({}{}[{window}]))",
            metric.prometheus,
            part.selector(more)
        )
    };
    let by_outcome = ", outcome, http_response_status_code";
    let arrivals = grown(&ARRIVALS, "", &[]);
    let held_back = grown(&ARRIVALS_REFUSED, ", reason", &["reason!=\"in_flight\""]);
    let cancelled = grown(&REQUESTS, by_outcome, &["outcome=\"cancelled\""]);
    let good = grown(&REQUESTS, by_outcome, &["outcome=\"ok\""]);
    let counted = series::COUNTED;
    let only = part.selector(&[]);
    let rate = |metric: &Metric| {
        format!(
            "sum without ({PLACE}) (rate({}{only}[{window}]))",
            metric.prometheus
        )
    };
    vec![
        Rule::record(
            counted,
            format!(
                "clamp_min(\n  {arrivals}\n  - ({held_back} or 0 * {arrivals})\n  - ({cancelled} or 0 * {arrivals}),\n  0\n)"
            ),
        ),
        Rule::record(series::OK, format!("{good}\nor 0 * {counted}{only}")),
        Rule::record(
            series::SUCCESS,
            format!("clamp_max({}{only} / ({counted}{only} > 0), 1)", series::OK),
        ),
        Rule::record(series::ARRIVALS, rate(&ARRIVALS)),
        Rule::record(series::TOKENS, rate(&TOKENS)),
    ]
}

/// What normal is: quantiles over a long time of what was recorded.
pub(super) fn baselines(settings: &Settings) -> Vec<Rule> {
    let span = settings.span(settings.baseline.span);
    let offset = settings.span(settings.baseline.offset);
    let least = settings.baseline.least.as_millis() / settings.interval.as_millis().max(1);
    let over = |share: &str, name: &str| {
        format!(
            "quantile_over_time({share}, {name}[{span}] offset {offset})\nand count_over_time({name}[{span}] offset {offset}) >= {least}"
        )
    };
    let mut rules = Vec::new();
    for (metric, mean_of) in BASELINES {
        let p95 = recorded(metric, Quantile::P95.name());
        for (operation, share) in [
            ("p95_baseline", "0.5"),
            ("p95_baseline_low", "0.1"),
            ("p95_baseline_high", "0.9"),
        ] {
            rules.push(Rule::record(
                &recorded(metric, operation),
                over(share, &p95),
            ));
        }
        let mean = recorded(mean_of, "mean");
        rules.push(Rule::record(
            &recorded(mean_of, "mean_baseline"),
            over("0.5", &mean),
        ));
    }
    rules
}
