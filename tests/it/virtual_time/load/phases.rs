//! Warm-up, cool-down, grace and planned cancellation.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_warm_up_comes_first_and_is_not_measured() {
    let flags = "--concurrency 1 --request-count 6 --warmup-request-count 4 --warmup-concurrency 2";
    let left = bench(flags, slow(98)).await;
    assert_eq!(
        left.received(),
        [0, 0, 100, 100, 200, 300, 400, 500, 600, 700]
    );
    let summary = left.report.summary.as_ref().expect("it was asked for");
    assert_eq!(summary.records, 6);
    let told: Vec<(String, u64)> = summary
        .phases
        .iter()
        .map(|(name, phase)| (name.to_owned(), phase.records))
        .collect();
    assert_eq!(
        told,
        [("profiling".to_owned(), 6), ("warm_up".to_owned(), 4)]
    );
    assert_eq!(
        summary.metrics.ttft.as_ref().map(|ttft| ttft.count),
        Some(6)
    );
    let live = left.live.lock().expect("not poisoned");
    let totals = live.streams()[0].totals();
    assert_eq!(totals.arrivals(), 10, "every arrival is counted");
    let ttft = totals.histogram(tokencanary::aggregate::Measure::Ttft);
    assert_eq!(ttft.count(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_warm_up_has_a_shape_of_its_own() {
    let flags = "--request-rate 10 --arrival-pattern constant --request-count 3 \
                 --warmup-duration 2 --warmup-request-rate 2 --warmup-arrival-pattern constant";
    let left = bench(flags, slow(0)).await;
    // Two a second for 2 s; the last has ended at 1.502 s, and so has the warm-up's time at 2 s.
    let received = left.received();
    assert_eq!(received[..4], [0, 500, 1_000, 1_500]);
    let first = received[4];
    assert_eq!(received[5..], [first + 100, first + 200]);
}

#[tokio::test(start_paused = true)]
async fn warm_up_ramps_are_its_own() {
    let flags = "--concurrency 3 --request-count 3 --warmup-duration 3 --warmup-concurrency-ramp-duration 2";
    let engine = bench(flags, slow(98)).await.engine();
    for (at, expected) in [(950, 1), (1_050, 2), (2_050, 3)] {
        assert_eq!(running(&engine, at), expected, "at {at} ms");
    }
    let flags = "--request-rate 4 --arrival-pattern constant --request-count 1 --num-warmup-sessions 9 --warmup-request-rate-ramp-duration 4";
    let received = bench(flags, slow(0)).await.received();
    // t²/2 arrivals are over at t ≤ 4 s.
    assert_eq!((received[2], received[8]), (2_000, 4_000));
}

#[tokio::test(start_paused = true)]
async fn after_the_grace_period_requests_are_cancelled_and_arrivals_refused() {
    // Ten seconds each, one place: one in flight, nine in line when time is up.
    let flags = "--request-rate 10 --arrival-pattern constant --concurrency 1 --benchmark-duration 1 --benchmark-grace-period 0.5";
    let left = bench(flags, slow(9_998)).await;
    let records = left.records();
    assert_eq!(records.len(), 10);
    assert_eq!(outcomes(&records, Outcome::Cancelled), 1);
    assert_eq!(refused(&records, RefusedReason::InFlight), 9);
    assert_eq!(records[0].timeline.end.map(in_ms), Some(1_500));
    assert_eq!(left.received(), [0]);
    let summary = left.report.summary.as_ref().expect("it was asked for");
    assert_eq!(
        summary.response_time_or_failure.never, 9,
        "the server was too slow for them"
    );
}

#[tokio::test(start_paused = true)]
async fn grace_may_last_as_long_as_it_takes() {
    let flags = "--concurrency 2 --benchmark-duration 1";
    for (grace, expected) in [("", 0), ("--benchmark-grace-period inf", 2)] {
        let left = bench(&format!("{flags} {grace}"), slow(40_000)).await;
        assert_eq!(outcomes(&left.records(), Outcome::Ok), expected, "{grace}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cool_down_keeps_the_load_up() {
    let flags =
        "--request-rate 10 --arrival-pattern constant --benchmark-duration 1 --cooldown-duration 1";
    let left = bench(flags, slow(298)).await;
    let expected: Vec<u64> = (0..20).map(|k| 100 * k).collect();
    assert_eq!(
        left.received(),
        expected,
        "without a gap between the phases"
    );
    let records = left.records();
    let measured = records.iter().filter(|record| record.is_measured()).count();
    assert_eq!(measured, 10);
    let cancelled = outcomes(&records, Outcome::Cancelled);
    assert_eq!(cancelled, 3, "those of the cool-down in flight at its end");
}

#[tokio::test(start_paused = true)]
async fn a_planned_cancellation_comes_so_long_after_the_request_was_written() {
    let flags = "--concurrency 1 --request-count 5 --request-cancellation-rate 100 --request-cancellation-delay 0.05";
    let left = bench(flags, slow(98)).await;
    let records = left.records();
    assert_eq!(outcomes(&records, Outcome::Cancelled), 5);
    for record in &records {
        let time = &record.timeline;
        let (sent, end) = (time.sent.expect("written"), time.end.expect("ended"));
        assert_eq!(end.since(sent), ms(50));
        assert!(!record.is_failure(), "it counts for nobody");
    }
    for one in left.engine() {
        assert_eq!(
            (one.finished, one.tokens.len()),
            (None, 0),
            "the server saw us go"
        );
    }
    assert_eq!(left.received(), [0, 50, 100, 150, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_in_the_middle_keeps_the_tokens_that_came() {
    let flags = "--concurrency 1 --request-count 1 --request-cancellation-rate 100 --request-cancellation-delay 0.15";
    let left = bench(flags, Profile::fixed(ms(100), ms(100))).await;
    let record = &left.records()[0];
    assert_eq!(record.outcome, Outcome::Cancelled);
    assert_eq!(record.ttft(), Some(ms(100)));
    assert_eq!(record.chunks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_requests_is_cancelled_and_none_of_a_warm_up() {
    let flags = "--concurrency 4 --request-count 1000 --warmup-request-count 100 --request-cancellation-rate 30";
    let left = bench(flags, slow(8)).await;
    let summary = left.report.summary.as_ref().expect("it was asked for");
    let cancelled = summary
        .outcomes
        .get("cancelled")
        .copied()
        .unwrap_or_default();
    // 300 ± 5 deviations of 14.5.
    assert!((228..=372).contains(&cancelled), "{cancelled}");
    assert_eq!(summary.outcomes.get("ok").copied(), Some(1_000 - cancelled));
    let warm_up = summary.phases.iter().find(|(name, _)| *name == "warm_up");
    let warm_up = warm_up.expect("it had records").1;
    assert_eq!(warm_up.outcomes.get("ok").copied(), Some(100));
    assert_eq!(summary.ttft_or_failure.never, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_faster_is_not_cancelled() {
    let flags = "--concurrency 1 --request-count 5 --request-cancellation-rate 100 --request-cancellation-delay 0.2";
    let left = bench(flags, slow(98)).await;
    assert_eq!(outcomes(&left.records(), Outcome::Ok), 5);
}
