//! When requests reach the server, for every flag and key that says when: seen from the
//! simulator's side.

mod caps;
mod conserved;
mod flags;
mod keys;
mod phases;
mod reports;
mod starts;

use std::time::Duration;

use tokencanary::app::{Extent, Outputs};
use tokencanary::cli::benchmark;
use tokencanary::clock::MonoTime;
use tokencanary::config::{Config, Format, ServerMetrics, StartConfig, from_text};
use tokencanary::measurement::{Outcome, RefusedReason, RequestRecord};
use tokencanary::simulator::{Fault, Profile, RequestTimes, SimulatorConfig};

use super::{Left, World, ms};

/// Three tokens: the first after `ttft`, then one every millisecond.
const fn slow(ttft: u64) -> Profile {
    Profile::fixed(Duration::from_millis(ttft), Duration::from_millis(1))
}

async fn play(config: Config, extent: Extent, profile: Profile) -> Left {
    play_through(Vec::new(), (config, extent), profile).await
}

/// A run during which `faults` happen.
async fn play_through(
    faults: Vec<Fault>,
    (config, extent): (Config, Extent),
    profile: Profile,
) -> Left {
    World {
        simulator: SimulatorConfig {
            keep_times: 20_000,
            ..SimulatorConfig::new(profile)
        },
        faults,
        config,
        extent,
        outputs: Outputs {
            summary: true,
            ..Outputs::default()
        },
    }
    .run()
    .await
}

/// `bench` with `flags` against a server of `profile`; three tokens each.
async fn bench(flags: &str, profile: Profile) -> Left {
    let common = "--url http://sim -m sim/canary-0.6b --isl 8 --osl 3 --random-seed 7";
    let flags = common.split(' ').chain(flags.split_whitespace());
    let (mut config, extent) = benchmark(flags).expect("good flags");
    config.targets[0].server_metrics = ServerMetrics::Off;
    play(config, extent, profile).await
}

/// A probe with `keys` against a server of `profile`, until `count` arrivals.
async fn probe(keys: &str, count: Option<u64>, profile: Profile) -> Left {
    let extent = Extent {
        count,
        ..Extent::default()
    };
    play(probe_config(keys), extent, profile).await
}

/// A probe with `keys` and room for anything.
fn probe_config(keys: &str) -> Config {
    let text = format!(
        "seed: 7
targets: [{{ name: sim, url: 'http://sim', model: sim/canary-0.6b, server_metrics: off }}]
governor: {{ in_flight: 100000, requests_per_day: 1M, tokens_per_day: 1G }}
probes:
- name: probe
  targets: [sim]
  workload: {{ synthetic: {{ input_tokens: 8, output_tokens: 3 }} }}
  limits: {{ first_token: 20s, gap: 60s, total: 60s }}
{keys}
"
    );
    let config = from_text(&text, Format::Yaml, "c.yaml");
    let mut config = config.unwrap_or_else(|found| panic!("{found}"));
    config.export.http = None;
    // As in a benchmark: all counts.
    config.targets[0].start = StartConfig::NONE;
    config
}

impl Left {
    /// What the engine noted of each request, in the order in which they came.
    fn engine(&self) -> Vec<RequestTimes> {
        let mut times = self.simulator.times();
        times.sort_by_key(|one| one.received);
        times
    }

    /// When each request reached the server, in milliseconds.
    fn received(&self) -> Vec<u64> {
        let engine = self.engine();
        engine.iter().map(|one| in_ms(one.received)).collect()
    }
}

fn in_ms(at: MonoTime) -> u64 {
    at.as_nanos() / 1_000_000
}

/// Requests at the server at `at`, those that ended or began just then not counted.
fn running(engine: &[RequestTimes], at: u64) -> usize {
    let is_running = |one: &&RequestTimes| {
        in_ms(one.received) < at && one.finished.is_none_or(|end| in_ms(end) > at)
    };
    engine.iter().filter(is_running).count()
}

/// Requests at the server at `at` whose first token has not come.
fn waiting(engine: &[RequestTimes], at: u64) -> usize {
    let is_waiting = |one: &&RequestTimes| {
        in_ms(one.received) < at && one.tokens.first().is_none_or(|first| in_ms(*first) > at)
    };
    engine.iter().filter(is_waiting).count()
}

fn outcomes(records: &[RequestRecord], outcome: Outcome) -> usize {
    let of = records.iter().filter(|record| record.outcome == outcome);
    of.count()
}

fn refused(records: &[RequestRecord], reason: RefusedReason) -> usize {
    let of = records
        .iter()
        .filter(|record| record.refused == Some(reason));
    of.count()
}

/// A count of a test, which is small.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("below 2^32"))
}

/// Squared deviation of the gaps over their squared mean.
fn dispersion(received: &[u64]) -> f64 {
    let gaps: Vec<f64> = received
        .windows(2)
        .map(|pair| float(pair[1] - pair[0]))
        .collect();
    let n = float(gaps.len() as u64);
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    variance / (mean * mean)
}
