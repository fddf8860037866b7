//! Caps on requests in flight and on requests without a token, and their ramps.

use super::*;

#[tokio::test(start_paused = true)]
async fn concurrency_is_the_number_in_flight() {
    let left = bench("--concurrency 3 --request-count 30", slow(98)).await;
    let engine = left.engine();
    for at in [50, 150, 950] {
        assert_eq!(running(&engine, at), 3, "at {at} ms");
    }
    assert_eq!(left.received()[3], 100, "at once when one has ended");
}

#[tokio::test(start_paused = true)]
async fn concurrency_comes_up_one_by_one() {
    let flags = "--concurrency 4 --concurrency-ramp-duration 3 --benchmark-duration 5";
    let left = bench(flags, slow(98)).await;
    let engine = left.engine();
    for (at, expected) in [
        (50, 1),
        (950, 1),
        (1_050, 2),
        (1_950, 2),
        (2_050, 3),
        (3_050, 4),
        (4_950, 4),
    ] {
        assert_eq!(running(&engine, at), expected, "at {at} ms");
    }
    let records = left.records();
    assert!(records.iter().all(|record| !record.is_lagged()));
}

#[tokio::test(start_paused = true)]
async fn under_a_rate_concurrency_is_the_most_and_who_waits_keeps_its_time() {
    // Twenty a second, two places, 100 ms each: they keep up. At 200 ms each they do not.
    let flags = "--request-rate 20 --arrival-pattern constant --concurrency 2 --request-count 40";
    let left = bench(flags, slow(198)).await;
    let engine = left.engine();
    let most = (0..4_000).map(|at| running(&engine, at)).max();
    assert_eq!(most, Some(2));
    let records = left.records();
    assert_eq!(records.len(), 40, "none is skipped");
    let due: Vec<u64> = records
        .iter()
        .map(|one| in_ms(one.timeline.intended))
        .collect();
    assert_eq!(
        due,
        (0..40).map(|k| 50 * k).collect::<Vec<_>>(),
        "none is moved"
    );
    // Pairs every 200 ms: number 38 goes at 3.8 s, due at 1.9 s.
    assert_eq!(records[38].slot_wait(), Some(ms(1_900)));
    assert!(records.iter().all(|record| !record.is_lagged()));
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_place_may_be_refused_instead() {
    let keys = "  when_full: refuse
  arrivals: { process: constant, rate: 20/s, concurrency: 2 }";
    let left = probe(keys, Some(40), slow(197)).await;
    let records = left.records();
    // Two of every four: 0 and 50 ms go, 100 and 150 do not, 200 finds the first place free
    // since 199.
    assert_eq!(outcomes(&records, Outcome::Ok), 20);
    assert_eq!(refused(&records, RefusedReason::InFlight), 20);
    assert_eq!(left.received()[..4], [0, 50, 200, 250]);
}

#[tokio::test(start_paused = true)]
async fn prefill_concurrency_caps_those_without_a_token() {
    // 100 ms to the first token, then 200 ms more.
    let profile = Profile::fixed(ms(100), ms(100));
    let flags = "--concurrency 8 --prefill-concurrency 2 --request-count 40";
    let left = bench(flags, profile).await;
    let engine = left.engine();
    let most = (0..3_000).map(|at| waiting(&engine, at)).max();
    assert_eq!(most, Some(2));
    assert_eq!(running(&engine, 350), 6, "two for each 100 ms of 300");
    assert_eq!(left.received()[..6], [0, 0, 100, 100, 200, 200]);
    assert_eq!(outcomes(&left.records(), Outcome::Ok), 40);
}

#[tokio::test(start_paused = true)]
async fn prefill_concurrency_holds_under_a_rate_and_makes_slot_wait() {
    let profile = Profile::fixed(ms(100), ms(10));
    let flags =
        "--request-rate 20 --arrival-pattern constant --prefill-concurrency 1 --request-count 10";
    let left = bench(flags, profile).await;
    assert_eq!(
        left.received(),
        [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]
    );
    let records = left.records();
    assert_eq!(records[9].slot_wait(), Some(ms(450)));
    assert!(records.iter().all(|record| !record.is_lagged()));
}

#[tokio::test(start_paused = true)]
async fn prefill_concurrency_comes_up_too() {
    let profile = Profile::fixed(ms(98), ms(1));
    let flags = "--concurrency 8 --prefill-concurrency 3 --prefill-concurrency-ramp-duration 2 --benchmark-duration 3";
    let engine = bench(flags, profile).await.engine();
    for (at, expected) in [(50, 1), (950, 1), (1_050, 2), (1_950, 2), (2_090, 3)] {
        assert_eq!(waiting(&engine, at), expected, "at {at} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_has_a_token_gives_its_prefill_place_back() {
    let keys = "  when_full: wait
  prefill_concurrency: 1
  arrivals: { process: constant, rate: 1/s }";
    let left = probe(keys, Some(3), slow(61_000)).await;
    let records = left.records();
    assert_eq!(outcomes(&records, Outcome::TimeoutFirstToken), 3);
    assert_eq!(left.received(), [0, 20_000, 40_000]);
    assert_eq!(records[2].slot_wait(), Some(ms(38_000)));
}
