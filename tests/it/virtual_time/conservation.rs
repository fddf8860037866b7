//! Arrivals equal records, under any faults, and every place tells the same numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokencanary::app::{Extent, Outputs};
use tokencanary::config::{Arrivals, WhenFull, WorkloadConfig};
use tokencanary::export::prometheus::{Format, View, render};
use tokencanary::measurement::CacheMode;
use tokencanary::simulator::{Fault, FaultKind, Profile, SimulatorConfig};

use super::{World, at, config, ms};

const ARRIVALS: u64 = 10_000;

/// A fault every two seconds on average, of every kind, for up to four seconds.
fn faults(random: &mut StdRng) -> Vec<Fault> {
    (0..100)
        .map(|_| {
            let kind = match random.random_range(0..8) {
                0 => FaultKind::SlowPrefill { factor: 8.0 },
                1 => FaultKind::SlowDecode { factor: 20.0 },
                2 => FaultKind::Freeze,
                3 => FaultKind::Hang,
                4 => FaultKind::Cut {
                    after_chunks: random.random_range(0..4),
                },
                5 => FaultKind::StreamError {
                    after_chunks: random.random_range(0..4),
                },
                6 => FaultKind::Status {
                    code: 429,
                    retry_after: Some(Duration::from_secs(7)),
                },
                _ => FaultKind::Restart { version: None },
            };
            let from = at(random.random_range(0..200_000));
            Fault {
                kind,
                from,
                lasts: ms(random.random_range(1..4_000)),
            }
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_arrivals_give_ten_thousand_records() {
    let dir = std::env::temp_dir().join(format!("tokencanary-conservation-{}", std::process::id()));
    let mut random = StdRng::seed_from_u64(20);
    let mut config = config(Arrivals::Poisson { rate: 50.0 }, WhenFull::Refuse, 8);
    config.probes[0].limits.first_token = Some(ms(900));
    config.probes[0].limits.gap = Some(ms(700));
    config.probes[0].limits.total = ms(2_000);
    config.probes[0].workload = WorkloadConfig::synthetic(16, Some(6), CacheMode::Cold);
    let left = World {
        simulator: SimulatorConfig::new(Profile::fixed(ms(20), ms(5))),
        faults: faults(&mut random),
        config,
        extent: Extent {
            count: Some(ARRIVALS),
            ..Extent::default()
        },
        outputs: Outputs {
            artifacts: Some(dir.clone()),
            ..Outputs::default()
        },
    }
    .run()
    .await;

    let lines = std::fs::read_to_string(dir.join("requests.jsonl")).expect("the records");
    std::fs::remove_dir_all(&dir).expect("ours to remove");
    let mut by_outcome = BTreeMap::<String, u64>::new();
    let mut sequences = Vec::new();
    for line in lines.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let outcome = record["outcome"].as_str().expect("a text").to_owned();
        *by_outcome.entry(outcome).or_default() += 1;
        sequences.push(record["sequence"].as_u64().expect("a number"));
    }
    sequences.sort_unstable();
    assert_eq!(
        sequences,
        (0..ARRIVALS).collect::<Vec<_>>(),
        "each arrival exactly once"
    );

    for outcome in [
        "ok",
        "http_status",
        "timeout_first_token",
        "timeout_gap",
        "stream_cut",
        "stream_error",
        "refused",
    ] {
        assert!(
            by_outcome.get(outcome).is_some_and(|count| *count > 0),
            "{outcome}: {by_outcome:?}"
        );
    }
    assert_eq!(page_counts(&left), by_outcome);
}

/// Requests by outcome as `/metrics` has them.
fn page_counts(left: &super::Left) -> BTreeMap<String, u64> {
    let live = left.live.lock().expect("not poisoned");
    let page = render(
        Format::Text,
        &View {
            live: &live,
            gauges: &[],
            own: &[],
            started_unix_ns: 0,
        },
    );
    let page = String::from_utf8(page).expect("text");
    let mut counts = BTreeMap::new();
    let mut arrivals = None;
    for line in page.lines() {
        let value = || {
            line.rsplit(' ')
                .next()
                .and_then(|text| text.parse::<u64>().ok())
                .expect("a count")
        };
        if line.starts_with("tokencanary_arrivals_total{") {
            arrivals = Some(value());
        }
        if let Some((_, rest)) = line
            .split_once("outcome=\"")
            .filter(|_| line.starts_with("tokencanary_requests_total{") && value() > 0)
        {
            let outcome = rest.split('"').next().expect("closed").to_owned();
            *counts.entry(outcome).or_default() += value();
        }
    }
    assert_eq!(arrivals, Some(ARRIVALS));
    counts
}
