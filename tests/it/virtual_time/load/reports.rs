//! Faults that users of other tools reported, by the number of their row: those about what is
//! sent and when.

use tokencanary::measurement::LengthMode;

use super::*;

/// A model stops at its end of text: 371 tokens came where 2,048 were asked for, and nobody said.
#[tokio::test(start_paused = true)]
async fn b041_answers_shorter_than_asked_are_set_against_what_was_asked() {
    let keys = "  arrivals: { process: closed, concurrency: 1 }";
    let mut config = probe_config(keys);
    config.targets[0].request.exact_length = false;
    let profile = Profile {
        stops_early: true,
        ..slow(1)
    };
    let extent = Extent {
        count: Some(50),
        ..Extent::default()
    };
    let left = play(config, extent, profile).await;
    let records = left.records();
    let came: u64 = records
        .iter()
        .map(|one| u64::from(one.tokens.output.expect("counted")))
        .sum();
    assert!((51..149).contains(&came), "{came}");
    for record in &records {
        assert_eq!(record.tokens.requested_output, Some(3));
        assert_eq!(record.stream.length, LengthMode::Advisory);
    }
    let summary = left.report.summary.as_ref().expect("kept");
    let wire = &summary.wire;
    assert_eq!((wire.output_requested, wire.output_delivered), (150, came));
}

/// A timeout that is longer than the interval was refused. It is allowed, and what becomes of an
/// arrival that finds its predecessor at work is for the operator to say.
#[tokio::test(start_paused = true)]
async fn b051_a_request_may_take_longer_than_the_interval() {
    for (when_full, expected) in [
        ("wait", [Some(0), Some(5_002), Some(10_004)]),
        ("refuse", [Some(0), None, Some(0)]),
    ] {
        let keys = format!(
            "  when_full: {when_full}
  arrivals: {{ process: constant, rate: 6/min, concurrency: 1 }}"
        );
        let left = probe(&keys, Some(3), slow(15_000)).await;
        let records = left.records();
        let waits: Vec<_> = records
            .iter()
            .map(|one| one.slot_wait().map(|wait| wait.as_millis()))
            .collect();
        assert_eq!(waits, expected, "{when_full}");
        let refused = refused(&records, RefusedReason::InFlight);
        assert_eq!(refused, usize::from(when_full == "refuse"));
        assert_eq!(outcomes(&records, Outcome::Ok), 3 - refused);
    }
}
