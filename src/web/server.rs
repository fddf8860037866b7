//! What a target's server says of itself, as JSON: its page, what that lacks, its last minute.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::aggregate::Live;
use crate::aggregate::server::{BucketQuantile, GaugeWindow, ServerMark, ServerWindow};
use crate::clock::MonoTime;
use crate::measurement::server::{
    CounterRole, Engine, GaugeRole, HistogramRole, ScrapeResult, missing,
};

/// The span of rates and means.
const MINUTE: Duration = Duration::from_mins(1);

/// What is known of one server beside its gauges.
#[derive(Debug, Serialize)]
pub(super) struct ServerRow {
    engine: Option<&'static str>,
    /// What became of the last reading of its page; null before the first.
    page: Option<&'static str>,
    /// What explanations need and the page lacks; null without a page.
    missing: Option<Vec<&'static str>>,
    models: Vec<Box<str>>,
    flags: BTreeMap<Box<str>, Box<str>>,
    ranks: Vec<RankRow>,
    last_minute: Minute,
}

#[derive(Debug, Serialize)]
struct RankRow {
    name: Box<str>,
    running: Option<f64>,
    waiting: Option<f64>,
    kv_usage: Option<f64>,
}

/// The last minute. What is not known has no key.
#[derive(Debug, Serialize)]
struct Minute {
    pages: u32,
    restarts: u32,
    gauges: BTreeMap<&'static str, Weighted>,
    per_second: BTreeMap<&'static str, f64>,
    latencies: BTreeMap<&'static str, Latency>,
    finished: BTreeMap<Box<str>, f64>,
    prefix_hit_ratio: Option<f64>,
    outside: Option<OutsideRow>,
    /// What is not plausible, and what it means.
    suspect: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Serialize)]
struct Weighted {
    mean: f64,
    min: f64,
    max: f64,
    last: f64,
}

#[derive(Debug, Serialize)]
struct Latency {
    n: f64,
    mean_ms: Option<f64>,
    p50: Option<Quantile>,
    p95: Option<Quantile>,
}

/// What buckets can say of a quantile.
#[derive(Debug, Serialize)]
struct Quantile {
    above_ms: Option<f64>,
    at_most_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct OutsideRow {
    ms: f64,
    error_ms: f64,
    own: u64,
    served: f64,
}

impl ServerRow {
    /// The server of the target at `target_index`, as it is `now`.
    pub(super) fn of(live: &Live, target_index: usize, now: MonoTime) -> Self {
        let sample = live.samples().nth(target_index).flatten();
        let result = live.scraped().get(target_index).copied().flatten();
        let page = sample.map(|sample| &sample.page);
        let window = live.server(target_index, (now.minus(MINUTE), now));
        Self {
            engine: page.and_then(|page| page.engine).map(Engine::name),
            page: result.map(ScrapeResult::name),
            missing: sample.map(|sample| missing(&sample.state, &sample.page.totals)),
            models: page
                .map(|page| page.info.models.clone())
                .unwrap_or_default(),
            flags: page
                .map(|page| page.info.flags.iter().cloned().collect())
                .unwrap_or_default(),
            ranks: page
                .map(|page| page.ranks.as_slice())
                .unwrap_or_default()
                .iter()
                .map(|rank| RankRow {
                    name: rank.name.clone(),
                    running: rank.state.running,
                    waiting: rank.state.waiting,
                    kv_usage: rank.state.kv_usage,
                })
                .collect(),
            last_minute: Minute::of(
                &window.unwrap_or_else(|| ServerWindow::unknown(now.minus(MINUTE), now)),
            ),
        }
    }
}

impl Minute {
    fn of(window: &ServerWindow) -> Self {
        let gauges = GaugeRole::ALL.into_iter().filter_map(|role| {
            let GaugeWindow {
                mean,
                min,
                max,
                last,
                ..
            } = window.gauge(role)?;
            let weighted = Weighted {
                mean,
                min,
                max,
                last,
            };
            Some((role.name(), weighted))
        });
        let per_second = CounterRole::ALL
            .into_iter()
            .filter_map(|role| Some((role.name(), window.counter(role)?.per_second())));
        let latencies = HistogramRole::ALL.into_iter().filter_map(|role| {
            let taken = window.histogram(role)?;
            let latency = Latency {
                n: taken.count,
                mean_ms: taken.mean().map(millis),
                p50: taken.quantile(0.5).map(Quantile::of),
                p95: taken.quantile(0.95).map(Quantile::of),
            };
            Some((role.name(), latency))
        });
        let finished = window.finished.iter();
        Self {
            pages: window.pages,
            restarts: window.restarts,
            gauges: gauges.collect(),
            per_second: per_second.collect(),
            latencies: latencies.collect(),
            finished: finished
                .map(|(reason, counter)| (reason.clone(), counter.delta))
                .collect(),
            prefix_hit_ratio: window.prefix_hit_ratio(),
            outside: window.outside.map(|outside| OutsideRow {
                ms: millis(outside.seconds),
                error_ms: millis(outside.error),
                own: outside.own,
                served: outside.served,
            }),
            suspect: window
                .marks
                .iter()
                .map(|mark| (mark.name(), ServerMark::advice(mark)))
                .collect(),
        }
    }
}

impl Quantile {
    fn of(quantile: BucketQuantile) -> Self {
        let (above, at_most) = match quantile {
            BucketQuantile::Below(bound) => (None, Some(bound)),
            BucketQuantile::Within { low, high, .. } => (Some(low), Some(high)),
            BucketQuantile::AtLeast(bound) => (Some(bound), None),
        };
        Self {
            above_ms: above.map(millis),
            at_most_ms: at_most.map(millis),
        }
    }
}

/// Seconds as milliseconds, without the noise of floats.
fn millis(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e6
}
