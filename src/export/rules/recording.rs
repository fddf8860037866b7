//! What is recorded: quantiles, shares, rates, and what normal is.

use super::promql::PLACE;
use super::recorded::series;
use super::{BASELINES, Part, Quantile, RECORDED_HISTOGRAMS, Rule, Settings, recorded};
use crate::export::catalog::{
    ARRIVALS, ARRIVALS_REFUSED, Metric, REQUESTS, REQUESTS_EXCUSED, TOKENS,
};

/// The last part of a window is one fifth of it: a minute of five.
const NOW: u32 = 5;

/// The longer window is six of them: half an hour for five minutes.
const LONG: u32 = 6;

/// Quantiles, means, shares and rates of the streams of `part`.
pub(super) fn streams(settings: &Settings, part: &Part) -> Vec<Rule> {
    let mut rules = Vec::new();
    for metric in RECORDED_HISTOGRAMS {
        rules.extend(quantiles(settings, part, metric));
    }
    for (judged, mean_of) in BASELINES {
        rules.extend(gates(settings, part, [judged, mean_of]));
    }
    rules.extend(requests(settings, part));
    rules
}

/// What a regression has to agree with: the mean over the window and over its last part, and the
/// p95 over a longer one.
fn gates(settings: &Settings, part: &Part, [judged, mean_of]: [&Metric; 2]) -> Vec<Rule> {
    let selector = part.selector(&[]);
    let mean = |operation, window| {
        let window = settings.span(window);
        let mean = settings.form.mean(mean_of.prometheus, [&selector, &window]);
        Rule::record(&recorded(mean_of, operation), mean)
    };
    let long = settings.span(part.window * LONG);
    let grown = settings
        .form
        .grown("rate", judged.prometheus, [&selector, &long]);
    let samples = recorded(judged, "samples");
    let least = Quantile::P95.least();
    let p95 = format!("histogram_quantile(0.95, {grown})\nand {samples} >= {least}");
    vec![
        mean("mean", part.window),
        mean("mean_now", part.window / NOW),
        Rule::record(&recorded(judged, "p95_long"), p95),
    ]
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
    let excused = |more: &[&str]| {
        let excused = grown(&REQUESTS_EXCUSED, ", result", more);
        format!("({excused} or 0 * {arrivals})")
    };
    let (all_excused, good_excused) = (excused(&[]), excused(&["result=\"ok\""]));
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
                "clamp_min(\n  {arrivals}\n  - ({held_back} or 0 * {arrivals})\n  - ({cancelled} or 0 * {arrivals})\n  - {all_excused},\n  0\n)"
            ),
        ),
        Rule::record(
            series::OK,
            format!("clamp_min({good} - {good_excused}, 0)\nor 0 * {counted}{only}"),
        ),
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
