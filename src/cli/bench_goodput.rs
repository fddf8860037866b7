//! Which requests `bench` counts as good: limits in `AIPerf`'s writing.

use std::time::Duration;

use crate::measurement::{Slo, SloLimit, SloMetric};

/// The flag of `bench` that says what a good request is.
#[derive(Debug, clap::Args)]
pub(super) struct Goodput {
    /// Limits of a good request in milliseconds, as `ttft:500 itl:50`. Names: `ttft`, `ttfo`,
    /// `itl`, `service_time`, `response_ttft`, `response_time`, or those that `AIPerf` has for
    /// them.
    #[arg(long, value_name = "NAME:MS …")]
    pub(super) goodput: Option<String>,
}

/// Longest limit, milliseconds: a day.
const LONGEST_MS: f64 = 86_400_000.0;

impl Goodput {
    /// The limits that were given.
    pub(super) fn slo(&self, streaming: bool) -> Result<Slo, String> {
        let mut slo = Slo::NONE;
        let Some(text) = &self.goodput else {
            return Ok(slo);
        };
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        for word in words.filter(|word| !word.is_empty()) {
            let (metric, limit) = one(word, streaming)?;
            if slo.limits().any(|(other, _)| other == metric) {
                return Err(told(word, "each latency once"));
            }
            slo = slo.with_limit(metric, limit);
        }
        if slo.is_none() {
            return Err(told(text, "limits, as in `ttft:500 itl:50`"));
        }
        Ok(slo)
    }
}

fn one(word: &str, streaming: bool) -> Result<(SloMetric, SloLimit), String> {
    let (name, ms) = word
        .rsplit_once(':')
        .ok_or_else(|| told(word, "a limit, as in `ttft:500`"))?;
    let metric = named(name).ok_or_else(|| {
        let names = SloMetric::ALL.map(|metric| format!("`{}`", metric.name()));
        told(word, &format!("one of {}", names.join(", ")))
    })?;
    if metric.needs_stream() && !streaming {
        let wanted = "a latency of whole requests: without a stream nobody sees single tokens";
        return Err(told(word, wanted));
    }
    let ms: f64 = ms
        .parse()
        .ok()
        .filter(|ms| (0.001..=LONGEST_MS).contains(ms))
        .ok_or_else(|| told(word, "milliseconds, from `0.001` to `86400000`"))?;
    let limit = SloLimit {
        at_most: Duration::from_secs_f64(ms / 1e3),
        objective: None,
    };
    Ok((metric, limit))
}

/// The latency that has `name` here or in `AIPerf`.
fn named(name: &str) -> Option<SloMetric> {
    let ours = SloMetric::ALL
        .into_iter()
        .find(|metric| metric.name() == name);
    ours.or(match name {
        "time_to_first_token" => Some(SloMetric::Ttft),
        "time_to_first_output_token" => Some(SloMetric::Ttfo),
        "inter_token_latency" => Some(SloMetric::Itl),
        "request_latency" => Some(SloMetric::ServiceTime),
        _ => None,
    })
}

fn told(given: &str, wanted: &str) -> String {
    format!("--goodput: `{}`\n  wanted: {wanted}", given.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(&'static str, Duration)>, String> {
        let flag = Goodput {
            goodput: Some(text.to_owned()),
        };
        let slo = flag.slo(true)?;
        let limits = slo.limits().map(|(metric, limit)| {
            assert_eq!(limit.objective, None);
            (metric.name(), limit.at_most)
        });
        Ok(limits.collect())
    }

    #[test]
    fn limits_are_read_by_our_names_and_by_those_of_aiperf() {
        let ms = Duration::from_millis;
        assert_eq!(
            read("itl:50 ttft:500"),
            Ok(vec![("ttft", ms(500)), ("itl", ms(50))])
        );
        assert_eq!(
            read(
                "time_to_first_token:100 inter_token_latency:3.40, request_latency:5000 response_time:6000"
            ),
            Ok(vec![
                ("ttft", ms(100)),
                ("itl", Duration::from_micros(3_400)),
                ("service_time", ms(5_000)),
                ("response_time", ms(6_000)),
            ])
        );
        let none = Goodput { goodput: None };
        assert!(none.slo(false).is_ok_and(|slo| slo.is_none()));
    }

    #[test]
    fn what_is_no_limit_is_told() {
        for (text, wanted) in [
            ("", "limits, as in `ttft:500 itl:50`"),
            ("ttft", "a limit, as in `ttft:500`"),
            ("ttft:500ms", "milliseconds, from `0.001` to `86400000`"),
            ("ttft:-1", "milliseconds, from `0.001` to `86400000`"),
            ("ttft:NaN", "milliseconds, from `0.001` to `86400000`"),
            ("ttft:1 time_to_first_token:2", "each latency once"),
            (
                "output_token_throughput_per_user:5",
                "one of `ttft`, `ttfo`, `itl`, `service_time`, `response_ttft`, `response_time`",
            ),
        ] {
            let found = read(text).expect_err(text);
            assert!(found.starts_with("--goodput: `"), "{found}");
            assert!(found.ends_with(&format!("wanted: {wanted}")), "{found}");
        }
        let flag = Goodput {
            goodput: Some("ttft:5".to_owned()),
        };
        assert!(flag.slo(false).is_err(), "without streams");
    }
}
