//! The numbers of one run as `bench` prints them.
//!
//! Every value is taken from the summary as it stands. A quantile that the number of values
//! does not carry is `–`, with `n` in its own column; one that falls among failures is `never`.

use std::fmt::Write as _;

use super::number::{UNKNOWN, decimal, grouped, percent};
use super::table::{table, text};
use crate::aggregate::rank::count;
use crate::aggregate::summary::FailureAware;
use crate::aggregate::{Quantile, Stats, Summary};
use crate::measurement::Note;

/// The table of `summary`, and below it throughput, counts by outcome, and whether the numbers
/// can be trusted.
#[must_use]
pub fn bench_table(summary: &Summary) -> String {
    let mut out = String::new();
    // Requests of one cache mode say nothing about those of another: they are not mixed.
    for (mode, part) in &summary.by_cache {
        writeln!(out, " {mode}").expect("writing to a string cannot fail");
        out.push_str(&metrics(part));
        out.push('\n');
    }
    if summary.by_cache.is_empty() {
        out.push_str(&metrics(summary));
        out.push('\n');
    }
    let begin = [
        Some(throughput(summary)),
        goodput(summary),
        answers(summary),
    ];
    let lines = [outcomes(summary), trust(summary)];
    let lines = begin.into_iter().flatten().chain(lines);
    for line in lines.chain(wire(summary)) {
        writeln!(out, " {line}").expect("writing to a string cannot fail");
    }
    for line in beside(summary).into_iter().chain(inexact(summary)) {
        writeln!(out, " {line}").expect("writing to a string cannot fail");
    }
    out
}

/// The phases that are not part of the numbers.
fn beside(summary: &Summary) -> Option<String> {
    let beside = summary
        .phases
        .iter()
        .filter(|(_, phase)| !phase.kind.is_measured())
        .map(|(name, phase)| format!("{name} {}", grouped(phase.records)))
        .collect::<Vec<_>>();
    (!beside.is_empty()).then(|| format!("not measured  {}", beside.join(" · ")))
}

/// The row that what was cached stands below.
const INPUT_LENGTH: &str = "input length (tokens)";

/// Every row of the table, in order: its name and, where there are values, its statistics.
fn rows(summary: &Summary) -> [(&'static str, Option<&Stats>); 10] {
    let metrics = &summary.metrics;
    let response_time = if summary.closed_loop {
        "response time (ms), closed loop"
    } else {
        "response time (ms)"
    };
    [
        ("TTFT (ms)", metrics.ttft.as_ref()),
        ("ITL (ms)", metrics.itl.as_ref()),
        ("service time (ms)", metrics.service_time.as_ref()),
        (response_time, metrics.response_time.as_ref()),
        ("output rate (tokens/s)", metrics.output_rate.as_ref()),
        (INPUT_LENGTH, metrics.input_length.as_ref()),
        ("output length (tokens)", metrics.output_length.as_ref()),
        ("connect time (ms)", metrics.connect_time.as_ref()),
        ("slot wait (ms)", metrics.slot_wait.as_ref()),
        ("own lag (ms)", metrics.own_lag.as_ref()),
    ]
}

fn metrics(summary: &Summary) -> String {
    let head = [
        "", "n", "avg", "min", "max", "p50", "p90", "p95", "p99", "std",
    ];
    let mut table = table(head, 1);
    for (name, stats) in rows(summary) {
        table.add_row(stats_row(name, stats));
        // Only some servers say it.
        if let (INPUT_LENGTH, Some(cached)) = (name, &summary.metrics.cached_length) {
            table.add_row(stats_row("of it cached (tokens)", Some(cached)));
        }
    }
    for (name, aware) in [
        ("TTFT or failure (ms)", &summary.ttft_or_failure),
        (
            "response time or failure (ms)",
            &summary.response_time_or_failure,
        ),
    ] {
        if aware.never > 0 {
            table.add_row(aware_row(name, aware));
        }
    }
    text(&table)
}

fn stats_row(name: &str, stats: Option<&Stats>) -> [String; 10] {
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| decimal(value, 2));
    let always = |value: fn(&Stats) -> f64| number(stats.map(value));
    let quantile = |value: fn(&Stats) -> Option<f64>| number(stats.and_then(value));
    [
        name.to_owned(),
        grouped(stats.map_or(0, |stats| stats.count)),
        always(|stats| stats.mean),
        always(|stats| stats.min),
        always(|stats| stats.max),
        quantile(|stats| stats.p50),
        quantile(|stats| stats.p90),
        quantile(|stats| stats.p95),
        quantile(|stats| stats.p99),
        always(|stats| stats.std),
    ]
}

/// Failures have no mean, no largest value and no deviation: those cells stay empty.
fn aware_row(name: &str, aware: &FailureAware) -> [String; 10] {
    let quantile = |value: Option<Quantile>| match value {
        Some(Quantile::Value(value)) => decimal(value, 2),
        Some(Quantile::Never) => "never".to_owned(),
        None => UNKNOWN.to_owned(),
    };
    let none = String::new;
    [
        name.to_owned(),
        grouped(aware.count),
        none(),
        none(),
        none(),
        quantile(aware.p50),
        quantile(aware.p90),
        quantile(aware.p95),
        quantile(aware.p99),
        none(),
    ]
}

fn throughput(summary: &Summary) -> String {
    let rates = &summary.throughput;
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| decimal(value, 2));
    format!(
        "throughput  {} requests/s · {} output tokens/s · {} tokens/s in and out · over {} s",
        number(rates.requests_per_s),
        number(rates.output_tokens_per_s),
        number(rates.total_tokens_per_s),
        number(rates.duration_s),
    )
}

/// How many requests were good, where it was said what that is.
fn goodput(summary: &Summary) -> Option<String> {
    let goodput = summary.goodput.as_ref()?;
    let rate = goodput.requests_per_s;
    let rate = rate.map_or(UNKNOWN.to_owned(), |rate| decimal(rate, 2));
    // To two places: an objective of 99.9 % is near.
    let share = goodput.good_share.map_or(UNKNOWN.to_owned(), |share| {
        format!("{} %", decimal(share * 100.0, 2))
    });
    let limits: Vec<String> = goodput
        .limits_ms
        .iter()
        .map(|(name, ms)| {
            let held = goodput.good_by.get(name).copied().unwrap_or_default();
            format!("{name} ≤ {ms} ms: {}", grouped(held))
        })
        .collect();
    Some(format!(
        "goodput     {rate} good requests/s · {} of {} good ({share}) · {}",
        grouped(goodput.good),
        grouped(goodput.events),
        limits.join(" · ")
    ))
}

/// How many questions were answered rightly, where there were some.
fn answers(summary: &Summary) -> Option<String> {
    let answers = summary.answers.as_ref()?;
    // To two places: one wrong answer in a thousand is one.
    let share = answers.right_share.map_or(UNKNOWN.to_owned(), |share| {
        format!("{} %", decimal(share * 100.0, 2))
    });
    Some(format!(
        "answers     {} of {} right ({share}) · {} unjudged",
        grouped(answers.right),
        grouped(answers.right + answers.wrong),
        grouped(answers.unjudged)
    ))
}

fn outcomes(summary: &Summary) -> String {
    let parts: Vec<String> = crate::measurement::Outcome::ALL
        .iter()
        .filter_map(|outcome| summary.outcomes.get_key_value(outcome.name()))
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
        .collect();
    let parts = if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(" · ")
    };
    format!("requests    {}: {parts}", grouped(summary.records))
}

fn trust(summary: &Summary) -> String {
    let share = match summary.records {
        0 => String::new(),
        records => format!(" ({})", percent(count(summary.lagged) / count(records))),
    };
    let worst = summary
        .metrics
        .own_lag
        .as_ref()
        .map_or(UNKNOWN.to_owned(), |lag| {
            format!("{} ms", decimal(lag.max, 2))
        });
    format!(
        "trust       {} of {} requests lagged by our own doing{share} · worst own lag {worst}",
        grouped(summary.lagged),
        grouped(summary.records),
    )
}

/// How well chunks could be timed, and what was odd; nothing where nothing came.
fn wire(summary: &Summary) -> Vec<String> {
    let wire = &summary.wire;
    let mut lines = Vec::new();
    let counts = |counts: &std::collections::BTreeMap<&str, u64>| {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {}", grouped(*count)))
            .collect();
        parts.join(" · ")
    };
    let chunks = wire.exact_chunks + wire.merged_chunks;
    if chunks > 0 {
        lines.push(format!(
            "clock       {} · {} of {} chunks merged with later bytes ({})",
            counts(&wire.clocks),
            grouped(wire.merged_chunks),
            grouped(chunks),
            percent(count(wire.merged_chunks) / count(chunks)),
        ));
    }
    if !wire.notes.is_empty() {
        lines.push(format!("notes       {}", counts(&wire.notes)));
    }
    if let Some(buffered) = wire.notes.get(Note::Buffered.name()) {
        lines.push(format!(
            "warning     {} answers came all at once at their end: something holds streams back, and TTFT and ITL leave them out",
            grouped(*buffered),
        ));
    }
    if wire.output_delivered != wire.output_requested {
        lines.push(format!(
            "warning     {} output tokens came where {} were asked for: compare runs by tokens, not by requests",
            grouped(wire.output_delivered),
            grouped(wire.output_requested),
        ));
    }
    lines
}

/// Says so if some of the quantiles are not exact.
fn inexact(summary: &Summary) -> Option<String> {
    let names: Vec<&str> = rows(summary)
        .into_iter()
        .filter(|(_, stats)| stats.is_some_and(|stats| !stats.exact))
        .map(|(name, _)| name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "quantiles within one bucket (2.2 %), too many values to keep: {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::aggregate::summary::{Goodput, Metrics, Throughput, WireSummary};
    use crate::aggregate::{Answers, Phases};

    fn stats(unit: &'static str, p99: Option<f64>) -> Stats {
        Stats {
            unit,
            count: 98,
            mean: 1_234.5,
            min: 0.5,
            max: 2_000.0,
            std: 12.345,
            exact: true,
            p1: None,
            p5: Some(0.6),
            p10: Some(0.7),
            p25: Some(0.8),
            p50: Some(1_200.0),
            p75: Some(1_300.0),
            p90: Some(1_400.0),
            p95: Some(1_500.25),
            p99,
            p99_9: None,
        }
    }

    fn aware(never: u64) -> FailureAware {
        FailureAware {
            count: 102,
            never,
            p50: Some(Quantile::Value(1_210.0)),
            p90: Some(Quantile::Value(1_450.0)),
            p95: Some(Quantile::Never),
            p99: Some(Quantile::Never),
        }
    }

    fn summary(never: u64) -> Summary {
        Summary {
            schema: "tokencanary.summary/1",
            closed_loop: true,
            records: 103,
            phases: Phases::default(),
            outcomes: BTreeMap::from([("ok", 98), ("http_status", 4), ("cancelled", 1)]),
            lagged: 3,
            metrics: Metrics {
                ttft: Some(stats("ms", None)),
                ttfo: None,
                itl: None,
                chunk_gap: None,
                service_time: Some(stats("ms", None)),
                response_time: Some(stats("ms", None)),
                response_ttft: None,
                connect_time: None,
                output_rate: None,
                cached_length: None,
                input_length: Some(stats("tokens", None)),
                output_length: Some(stats("tokens", None)),
                slot_wait: None,
                own_lag: Some(stats("ms", None)),
            },
            ttft_or_failure: aware(never),
            response_time_or_failure: aware(never),
            throughput: Throughput {
                duration_s: Some(12.5),
                requests_per_s: Some(7.84),
                output_tokens_per_s: None,
                total_tokens_per_s: Some(2_500.0),
            },
            goodput: None,
            answers: None,
            wire: WireSummary::default(),
            by_cache: BTreeMap::new(),
        }
    }

    #[test]
    fn cache_modes_have_a_table_each() {
        let cached = |mean: f64| Summary {
            metrics: crate::aggregate::summary::Metrics {
                cached_length: Some(Stats {
                    mean,
                    ..stats("tokens", None)
                }),
                ..summary(0).metrics
            },
            ..summary(0)
        };
        let both = Summary {
            by_cache: BTreeMap::from([("cold", cached(0.0)), ("warm", cached(384.0))]),
            ..summary(0)
        };
        let text = bench_table(&both);
        let begins = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((begins(" cold"), begins(" warm")), (1, 1));
        assert_eq!(begins(" TTFT (ms)"), 2);
        assert_eq!(begins(" throughput"), 1, "of all together");
        let cached: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with(" of it cached"))
            .collect();
        assert!(
            cached[0].contains(" 0.00 ") && cached[1].contains(" 384.00 "),
            "{text}"
        );
    }

    #[test]
    fn the_whole_table_with_failures() {
        insta::assert_snapshot!(bench_table(&summary(4)), @r"
                                             n       avg   min       max       p50       p90       p95    p99    std
        ────────────────────────────────────────────────────────────────────────────────────────────────────────────
         TTFT (ms)                          98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         ITL (ms)                            0         –     –         –         –         –         –      –      –
         service time (ms)                  98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         response time (ms), closed loop    98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         output rate (tokens/s)              0         –     –         –         –         –         –      –      –
         input length (tokens)              98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         output length (tokens)             98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         connect time (ms)                   0         –     –         –         –         –         –      –      –
         slot wait (ms)                      0         –     –         –         –         –         –      –      –
         own lag (ms)                       98  1,234.50  0.50  2,000.00  1,200.00  1,400.00  1,500.25      –  12.35
         TTFT or failure (ms)              102                            1,210.00  1,450.00     never  never
         response time or failure (ms)     102                            1,210.00  1,450.00     never  never

         throughput  7.84 requests/s · – output tokens/s · 2,500.00 tokens/s in and out · over 12.50 s
         requests    103: ok 98 · http_status 4 · cancelled 1
         trust       3 of 103 requests lagged by our own doing (2.9 %) · worst own lag 2,000.00 ms
        ");
    }

    #[test]
    fn goodput_is_said_below_throughput_where_there_are_limits() {
        let held = Summary {
            goodput: Some(Goodput {
                limits_ms: BTreeMap::from([("itl", 3.4), ("ttft", 500.0)]),
                events: 1_102,
                good: 1_000,
                good_by: BTreeMap::from([("itl", 1_050), ("ttft", 1_020)]),
                good_share: Some(1_000.0 / 1_102.0),
                requests_per_s: Some(80.0),
            }),
            ..summary(4)
        };
        let text = bench_table(&held);
        let mut lines = text.lines().skip_while(|line| !line.contains("throughput"));
        assert_eq!(
            lines.nth(1),
            Some(
                " goodput     80.00 good requests/s · 1,000 of 1,102 good (90.74 %) · itl ≤ 3.4 ms: 1,050 · ttft ≤ 500 ms: 1,020"
            )
        );
        assert!(!bench_table(&summary(4)).contains("goodput"));
    }

    #[test]
    fn answers_are_said_where_there_were_questions() {
        let asked = Summary {
            answers: Some(Answers {
                right: 1_470,
                wrong: 30,
                unjudged: 5,
                right_share: Some(0.98),
            }),
            ..summary(0)
        };
        let text = bench_table(&asked);
        let said = " answers     1,470 of 1,500 right (98.00 %) · 5 unjudged";
        assert!(text.lines().any(|line| line == said), "{text}");
        assert!(!bench_table(&summary(0)).contains("answers "));
    }

    #[test]
    fn what_was_odd_is_said_below_the_table() {
        let mut summary = summary(0);
        summary.wire = WireSummary {
            exact_chunks: 960,
            merged_chunks: 40,
            clocks: BTreeMap::from([("kernel", 98), ("user", 5)]),
            notes: BTreeMap::from([("buffered", 2), ("length_not_asked", 3)]),
            output_requested: 6_272,
            output_delivered: 5_000,
        };
        let text = bench_table(&summary);
        let below: Vec<&str> = text.lines().rev().take(4).collect();
        assert_eq!(
            below,
            [
                " warning     5,000 output tokens came where 6,272 were asked for: compare runs by tokens, not by requests",
                " warning     2 answers came all at once at their end: something holds streams back, and TTFT and ITL leave them out",
                " notes       buffered 2 · length_not_asked 3",
                " clock       kernel 98 · user 5 · 40 of 1,000 chunks merged with later bytes (4.0 %)",
            ]
        );
    }

    #[test]
    fn failure_rows_are_left_out_where_nothing_failed() {
        assert!(!bench_table(&summary(0)).contains("or failure"));
    }

    #[test]
    fn quantiles_from_a_histogram_are_said_to_be() {
        let mut summary = summary(0);
        summary.metrics.ttft.as_mut().expect("it is there").exact = false;
        let text = bench_table(&summary);
        let last = text.lines().last();
        assert_eq!(
            last,
            Some(" quantiles within one bucket (2.2 %), too many values to keep: TTFT (ms)")
        );
    }
}
