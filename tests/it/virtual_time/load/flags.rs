//! Flags of `bench` that say when requests are due.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_constant_rate_is_a_clock() {
    let flags = "--request-rate 10 --arrival-pattern constant --request-count 5";
    let left = bench(flags, slow(3)).await;
    assert_eq!(left.received(), [0, 100, 200, 300, 400]);
}

#[tokio::test(start_paused = true)]
async fn patterns_have_their_dispersion() {
    // 1 for Poisson, 1/smoothness for gamma; 3,000 gaps, timers of a millisecond.
    for (flags, expected) in [
        ("--request-rate 20", 1.0),
        ("--request-rate 20 --request-rate-mode poisson", 1.0),
        ("--request-rate 20 --arrival-pattern gamma", 1.0),
        ("--request-rate 20 --arrival-smoothness 4", 0.25),
        ("--request-rate 20 --vllm-burstiness 0.25", 4.0),
        (
            "--request-rate 20 --burstiness 0.25 --arrival-pattern gamma",
            4.0,
        ),
    ] {
        let left = bench(&format!("{flags} --request-count 3000"), slow(0)).await;
        let received = left.received();
        let found = dispersion(&received);
        assert!((found / expected - 1.0).abs() < 0.25, "{flags}: {found}");
        let rate = 3_000.0 * 1e3 / float(*received.last().expect("some came"));
        assert!((rate / 20.0 - 1.0).abs() < 0.12, "{flags}: {rate}/s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_comes_up_the_way_it_is_told() {
    let flags = "--request-rate 10 --arrival-pattern constant --request-rate-ramp-duration 10 --request-count 61";
    let received = bench(flags, slow(0)).await.received();
    // t²/2 arrivals are over at t ≤ 10 s, then 10/s.
    for (k, at) in [
        (0, 0),
        (2, 2_000),
        (8, 4_000),
        (18, 6_000),
        (50, 10_000),
        (60, 11_000),
    ] {
        assert_eq!(received[k], at, "linear, {k}");
    }
    let stepped = format!("{flags} --ramp-shape stepped --ramp-steps 4");
    let received = bench(&stepped, slow(0)).await.received();
    // 2, 4, 6 and 8/s for 2.5 s each: 5, 10, 15 and 20.
    for (k, at) in [
        (0, 0),
        (1, 500),
        (5, 2_500),
        (6, 2_750),
        (15, 5_000),
        (30, 7_500),
        (50, 10_000),
        (60, 11_000),
    ] {
        assert_eq!(received[k], at, "stepped, {k}");
    }
    let exponential = format!("{flags} --ramp-shape exponential");
    let received = bench(&exponential, slow(0)).await.received();
    // From 0.1/s by a factor of 100 in 10 s: (100^(t/10) − 1)/ln 100 arrivals are over at t.
    // So k at 10·log100(1 + k·ln 100): 3.7430, 6.9034 and 9.8448 s; 21.4976 are over at 10 s.
    for (k, at) in [(1, 3_743), (5, 6_904), (20, 9_845), (22, 10_051)] {
        assert!(
            received[k].abs_diff(at) <= 1,
            "exponential, {k}: {}",
            received[k]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_series_is_read_from_its_file() {
    let file = std::env::temp_dir().join(format!("tokencanary-series-{}.json", std::process::id()));
    std::fs::write(
        &file,
        r#"[{"time_s":0,"qps":0},{"time_s":10,"qps":2},{"time_s":20,"qps":0}]"#,
    )
    .expect("it can be written");
    let flags = format!(
        "--request-rate-series {} --arrival-pattern constant --benchmark-duration 30",
        file.display()
    );
    let left = bench(&flags, slow(0)).await;
    std::fs::remove_file(&file).expect("ours to remove");
    let received = left.received();
    assert_eq!(received.len(), 20, "t²/10 up, and as many down");
    assert_eq!((received[10], received[19]), (10_000, 16_838));
}

#[tokio::test(start_paused = true)]
async fn the_end_is_what_comes_first() {
    for (flags, expected) in [
        ("--request-count 7", 7),
        ("--num-requests 7", 7),
        ("--benchmark-duration 2", 20),
        ("--benchmark-duration 0.35 --request-count 7", 4),
        ("--benchmark-duration 2 --request-count 7", 7),
        ("--num-sessions 6 --request-count 7", 6),
        ("--conversation-num 6", 6),
        ("", 100),
    ] {
        let flags = format!("--request-rate 10 --arrival-pattern constant {flags}");
        let left = bench(&flags, slow(0)).await;
        assert_eq!(left.received().len(), expected, "{flags}");
    }
}

#[tokio::test(start_paused = true)]
async fn users_take_their_turns() {
    let flags = "--num-users 3 --user-centric-rate 3 --session-turns-mean 4 --benchmark-duration 5";
    let left = bench(flags, slow(10)).await;
    let received = left.received();
    assert_eq!(received.len(), 15);
    // Every third of a second, rounded up to the timer's millisecond.
    assert_eq!(received[..4], [0, 334, 667, 1_000]);
    assert_eq!(received[14], 4_667);
}

#[tokio::test(start_paused = true)]
async fn a_user_waits_for_the_last_answer_and_others_do_not() {
    // Three users with a turn every second; each answer takes 1.6 s.
    let flags = "--num-users 3 --user-centric-rate 3 --session-turns-mean 100 --request-count 9";
    let left = bench(flags, Profile::fixed(ms(1_598), ms(1))).await;
    let records = left.records();
    let due: Vec<u64> = records
        .iter()
        .map(|one| in_ms(one.timeline.intended))
        .collect();
    assert_eq!(due, [0, 333, 666, 1_000, 1_333, 1_666, 2_000, 2_333, 2_666]);
    // The turns of user 0 are due at 0, 1 and 2 s and go at 0, 1.6 and 3.2 s.
    let received = left.received();
    assert_eq!(
        received,
        [0, 334, 667, 1_600, 1_934, 2_267, 3_200, 3_534, 3_867]
    );
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok);
        assert!(!record.is_lagged(), "the server made them wait, not we");
    }
    let waits: Vec<Option<Duration>> = [0, 3, 6].map(|k| records[k].slot_wait()).into();
    assert_eq!(waits, [Some(ms(0)), Some(ms(600)), Some(ms(1_200))]);
    let most = (0..5_000).map(|at| running(&left.engine(), at)).max();
    assert_eq!(most, Some(3), "one of each user");
}

#[tokio::test(start_paused = true)]
async fn sessions_end_with_their_users() {
    // Two users of three turns, the second with one turn behind it, and one more.
    let flags = "--num-users 2 --user-centric-rate 1 --session-turns-mean 3 --num-sessions 3";
    let received = bench(flags, slow(10)).await.received();
    assert_eq!(
        received,
        [0, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 9_000]
    );
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    for flags in [
        "--arrival-smoothness 2 --arrival-pattern constant --request-rate 1",
        "--num-users 3",
        "--user-centric-rate 3",
        "--num-users 3 --user-centric-rate 3 --request-rate 1",
        "--benchmark-grace-period 5",
        "--request-cancellation-delay 5",
        "--request-rate-ramp-duration 5",
        "--concurrency-ramp-duration 5",
        "--prefill-concurrency-ramp-duration 5",
        "--prefill-concurrency 2 --no-streaming",
        "--warmup-concurrency 3",
        "--warmup-request-count 3 --warmup-grace-period 1",
        "--request-cancellation-rate 0",
        "--request-cancellation-rate 101",
        "--arrival-smoothness 0",
        "--arrival-smoothness nan",
        "--request-rate-series /nowhere",
    ] {
        let refused = benchmark(flags.split(' '));
        assert!(refused.is_err(), "{flags}");
    }
}
