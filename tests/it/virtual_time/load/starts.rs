//! Where in their interval streams begin.

use std::collections::BTreeMap;

use super::*;

/// When the requests of each target were due, in milliseconds.
async fn due(arrivals: &str, spread: Option<&str>) -> BTreeMap<String, Vec<u64>> {
    let targets: Vec<String> = (0..8)
        .map(|number| format!("{{ name: t{number}, url: 'http://sim', model: sim/canary-0.6b, server_metrics: off }}"))
        .collect();
    let text = format!(
        "seed: 7
targets: [{}]
governor: {{ in_flight: 100, requests_per_day: 1M, tokens_per_day: 1G }}
probes:
- name: probe
  targets: [t0, t1, t2, t3, t4, t5, t6, t7]
  workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 3 }} }}
  {arrivals}
",
        targets.join(", ")
    );
    let config = from_text(&text, Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.export.http = None;
    let extent = Extent {
        count: Some(3),
        spread: spread.map(str::to_owned),
        ..Extent::default()
    };
    let left = play(config, extent, slow(1)).await;
    let mut due: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in left.records() {
        assert_eq!(record.outcome, Outcome::Ok);
        let of = due.entry(record.stream.target.to_string()).or_default();
        of.push(in_ms(record.timeline.intended));
    }
    assert_eq!(due.len(), 8);
    due
}

#[tokio::test(start_paused = true)]
async fn streams_of_one_interval_are_spread_over_it_and_keep_it() {
    let constant = "arrivals: { process: constant, rate: 6/min }";
    let spread = due(constant, Some("gpu-3")).await;
    let mut firsts: Vec<u64> = spread.values().map(|due| due[0]).collect();
    firsts.sort_unstable();
    assert!(firsts.iter().all(|first| *first < 10_000), "{firsts:?}");
    assert!(
        firsts.windows(2).all(|pair| pair[0] < pair[1]),
        "{firsts:?}"
    );
    assert!(firsts[7] - firsts[0] > 5_000, "{firsts:?}");
    for due in spread.values() {
        assert_eq!([due[1] - due[0], due[2] - due[1]], [10_000, 10_000]);
    }
    assert_eq!(spread, due(constant, Some("gpu-3")).await, "also tomorrow");
    assert_ne!(spread, due(constant, Some("gpu-4")).await, "also elsewhere");
    let burst = "arrivals: { process: burst, size: 1, every: 10s }";
    assert_eq!(spread, due(burst, Some("gpu-3")).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_moved() {
    let constant = "arrivals: { process: constant, rate: 6/min }";
    let phase =
        "phases: [{ name: one, requests: 3, arrivals: { process: constant, rate: 6/min } }]";
    for (arrivals, spread) in [(constant, None), (phase, Some("gpu-3"))] {
        for due in due(arrivals, spread).await.values() {
            assert_eq!(due[..], [0, 10_000, 20_000], "{arrivals}");
        }
    }
    let closed = "arrivals: { process: closed, concurrency: 1 }";
    for due in due(closed, Some("gpu-3")).await.values() {
        assert_eq!(due[..], [0, 3, 6]);
    }
}
