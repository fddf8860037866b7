//! TTFT, ITL and every chunk time are exactly the engine's.

use tokencanary::clock::MonoTime;
use tokencanary::config::{Arrivals, WhenFull, WorkloadConfig};
use tokencanary::measurement::{CacheMode, Outcome, RequestRecord};
use tokencanary::simulator::{Profile, RequestTimes, SimulatorConfig};

use super::{World, config, ms};
use tokencanary::app::{Extent, Outputs};

/// Whole milliseconds everywhere: tokio's timers have no finer steps.
fn profile() -> Profile {
    Profile {
        prefill_base: ms(20),
        prefill_per_1k_tokens: ms(0),
        decode_base: ms(7),
        decode_per_extra_sequence: ms(2),
        max_running: 3,
        ..Profile::instant()
    }
}

fn check(record: &RequestRecord, engine: &RequestTimes) {
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let start = record.timeline.start.expect("it was sent");
    let chunks: Vec<MonoTime> = record
        .chunks
        .as_slice()
        .iter()
        .map(|chunk| chunk.at)
        .collect();
    assert_eq!(chunks, engine.tokens, "request {}", record.sequence);
    assert_eq!(record.timeline.sent, Some(engine.received));
    let (first, last) = (engine.tokens[0], engine.tokens[chunks.len() - 1]);
    assert_eq!(record.ttft(), Some(first.since(start)));
    assert_eq!(record.service_time(), Some(last.since(start)));
    assert_eq!(record.itl(), Some(last.since(first) / 10));
    assert_eq!(record.tokens.output, Some(11));
}

#[tokio::test(start_paused = true)]
async fn every_chunk_has_exactly_the_engines_time() {
    let mut config = config(Arrivals::Constant { rate: 40.0 }, WhenFull::Wait, 8);
    config.probes[0].workload = WorkloadConfig::synthetic(16, Some(11), CacheMode::Cold);
    let left = World {
        simulator: SimulatorConfig {
            keep_times: 200,
            ..SimulatorConfig::new(profile())
        },
        faults: Vec::new(),
        config,
        extent: Extent {
            count: Some(150),
            patient: true,
            ..Extent::default()
        },
        outputs: Outputs::default(),
    }
    .run()
    .await;
    let engine = left.simulator.times();
    let records = left.records();
    assert_eq!((records.len(), engine.len()), (150, 150));
    let mut queued = 0;
    for record in &records {
        let id = record.ids.request_id();
        let times = engine
            .iter()
            .find(|times| times.request.as_deref() == Some(&id))
            .expect("the engine saw each request");
        queued += u32::from(times.admitted > Some(times.received));
        check(record, times);
    }
    assert!(
        queued > 10,
        "the load makes requests wait in the engine: {queued}"
    );
    assert!(left.report.late.is_empty());
}
