//! Keys of a probe that say when requests are due.

use super::*;

#[tokio::test(start_paused = true)]
async fn bursts_reach_the_server_together() {
    let keys = "  arrivals: { process: burst, size: 3, every: 2s }";
    let received = probe(keys, Some(7), slow(1)).await.received();
    assert_eq!(received, [0, 0, 0, 2_000, 2_000, 2_000, 4_000]);
}

#[tokio::test(start_paused = true)]
async fn jitter_stays_around_its_grid() {
    let keys = "  arrivals: { process: jitter, every: 10s, jitter: 3s }";
    let received = probe(keys, Some(200), slow(1)).await.received();
    let late: Vec<u64> = (0..)
        .zip(&received)
        .map(|(k, at)| at - 10_000 * k)
        .collect();
    assert!(late.iter().all(|late| *late <= 6_000), "{late:?}");
    let mean = late.iter().sum::<u64>() / 200;
    // 3 s ± 5 errors of 122 ms.
    assert!((2_388..=3_612).contains(&mean), "{mean}");
}

#[tokio::test(start_paused = true)]
async fn a_series_of_points_is_followed() {
    let keys = "  arrivals:
    process: series
    gaps: constant
    points: [{ at: 0s, rate: 1/s }, { at: 5s, rate: 1/s }, { at: 5s, rate: 4/s }]";
    let received = probe(keys, Some(9), slow(1)).await.received();
    let expected = [0, 1_000, 2_000, 3_000, 4_000, 5_000, 5_250, 5_500, 5_750];
    assert_eq!(received, expected);
}

#[tokio::test(start_paused = true)]
async fn a_day_has_its_hours() {
    // Alike in all hours, so that the hour at which the test runs does not matter.
    let rates = ["120/h"; 24].join(", ");
    let keys = format!("  arrivals: {{ process: diurnal, gaps: constant, rates: [{rates}] }}");
    let received = probe(&keys, Some(4), slow(1)).await.received();
    for (k, at) in (0..).zip(&received) {
        assert!(at.abs_diff(30_000 * k) <= 1, "{received:?}");
    }
    // Only in odd hours: then all arrivals of two days lie in 24 hours, one every two minutes.
    let rates = ["0/h", "30/h"].repeat(12).join(", ");
    let keys = format!(
        "  arrivals: {{ process: diurnal, gaps: gamma, smoothness: 100, rates: [{rates}] }}"
    );
    let received = probe(&keys, Some(720), slow(1)).await.received();
    let last = received.last().expect("some came") / 3_600_000;
    assert!((45..=49).contains(&last), "{last} h");
}

#[tokio::test(start_paused = true)]
async fn fixed_times_are_kept() {
    let keys = "  arrivals: { process: fixed, times: [2s, 3s, 3s, 10s, 10.5s, 30s], from: 3s, to: 29s, shift: true, speed: 2, gap_cap: 4s }";
    let received = probe(keys, None, slow(1)).await.received();
    assert_eq!(received, [0, 0, 2_000, 2_250]);
    let keys = "  arrivals: { process: fixed, times: [2s, 3s, 10s], from: 1s }";
    let received = probe(keys, None, slow(1)).await.received();
    assert_eq!(received, [1_000, 2_000, 9_000], "the window begins at 1 s");
}

#[tokio::test(start_paused = true)]
async fn gamma_and_users_are_processes() {
    let keys = "  arrivals: { process: gamma, rate: 20/s, smoothness: 0.25 }";
    let received = probe(keys, Some(3_000), slow(1)).await.received();
    let found = dispersion(&received);
    assert!((found / 4.0 - 1.0).abs() < 0.25, "{found}");
    let keys = "  arrivals: { process: users, users: 3, rate: 3/s, turns: 2 }";
    let received = probe(keys, Some(5), slow(1)).await.received();
    assert_eq!(received, [0, 334, 667, 1_000, 1_334]);
}

#[tokio::test(start_paused = true)]
async fn ramps_of_a_probe_are_followed() {
    let keys = "  arrivals: { process: constant, rate: 10/s }
  ramp: { rate: { from: 2/s, over: 8s, shape: linear } }";
    let received = probe(keys, Some(60), slow(1)).await.received();
    // 2·t + t²/2 arrivals are over at t ≤ 8 s.
    assert_eq!(
        (received[6], received[16], received[48]),
        (2_000, 4_000, 8_000)
    );
    let keys = "  arrivals: { process: closed, concurrency: 10 }
  ramp: { concurrency: { from: 4, over: 3s, shape: stepped, steps: 3 } }";
    let engine = probe(keys, Some(500), slow(98)).await.engine();
    for (at, expected) in [(50, 4), (1_050, 6), (2_050, 8), (3_050, 10)] {
        assert_eq!(running(&engine, at), expected, "at {at} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn any_number_of_phases_follow_each_other() {
    let keys = "  phases:
  - { name: warm, kind: warm_up, requests: 3, arrivals: { process: closed, concurrency: 1 } }
  - { name: low, duration: 2s, seamless: true, arrivals: { process: constant, rate: 2/s } }
  - { name: high, duration: 1s, grace: 0s, arrivals: { process: constant, rate: 5/s } }
  - { name: out, kind: cool_down, sessions: 2, arrivals: { process: burst, size: 2, every: 1s } }";
    let left = probe(keys, None, slow(98)).await;
    let expected = [
        0, 100, 200, // warm
        300, 800, 1_300, 1_800, // low, for 2 s
        2_300, 2_500, 2_700, 2_900, 3_100, // high; the last has ended at 3.2 s
        3_200, 3_200, // out
    ];
    assert_eq!(left.received(), expected);
    let summary = left.report.summary.as_ref().expect("it was asked for");
    let told: Vec<_> = summary
        .phases
        .iter()
        .map(|(name, phase)| (name.to_owned(), phase.records))
        .collect();
    let expected = [("high", 5), ("low", 4), ("out", 2), ("warm", 3)];
    assert_eq!(told, expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(summary.records, 9);
}

#[tokio::test(start_paused = true)]
async fn cancellation_is_a_key_too() {
    let keys = "  cancel: { share: 100%, after: 20ms }
  arrivals: { process: constant, rate: 10/s }";
    let records = probe(keys, Some(5), slow(98)).await.records();
    assert_eq!(outcomes(&records, Outcome::Cancelled), 5);
    let end = records[4].timeline.end.map(in_ms);
    assert_eq!(end, Some(420));
}
