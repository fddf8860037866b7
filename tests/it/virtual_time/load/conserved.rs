//! Every arrival that was due is exactly one record, whatever the process, the caps, the phases
//! and the faults.

use std::collections::BTreeSet;

use tokencanary::simulator::FaultKind;

use super::super::at;
use super::*;

/// One fault after the other, for a second each, with a second between.
fn faults() -> Vec<Fault> {
    let kinds = [
        FaultKind::SlowPrefill { factor: 30.0 },
        FaultKind::Freeze,
        FaultKind::Hang,
        FaultKind::Cut { after_chunks: 1 },
        FaultKind::StreamError { after_chunks: 1 },
        FaultKind::Status {
            code: 429,
            retry_after: None,
        },
        FaultKind::Restart { version: None },
    ];
    (0..60)
        .zip(kinds.into_iter().cycle())
        .map(|(k, kind)| Fault {
            kind,
            from: at(1_000 + 2_000 * k),
            lasts: ms(1_000),
        })
        .collect()
}

/// Plays `keys` through the faults: records by the counters, by the summary, and the numbers of
/// the last ones.
async fn counted(keys: &str) -> (u64, u64, Vec<u64>) {
    let extent = Extent::default();
    let run = (probe_config(keys), extent);
    let left = play_through(faults(), run, Profile::fixed(ms(40), ms(20))).await;
    assert!(left.report.late.is_empty());
    let summary = left.report.summary.as_ref().expect("it was asked for");
    let told = summary.records + summary.phases.beside();
    let numbers = left.records().iter().map(|one| one.sequence).collect();
    let live = left.live.lock().expect("not poisoned");
    let totals = live.streams()[0].totals();
    let by_outcome: u64 = totals.requests().map(|(_, _, count)| count).sum();
    assert_eq!(by_outcome, totals.arrivals(), "{keys}");
    (totals.arrivals(), told, numbers)
}

#[tokio::test(start_paused = true)]
async fn arrivals_are_records_through_phases_and_faults() {
    for (policy, caps) in [
        ("refuse", ""),
        ("refuse", "prefill_concurrency: 3, "),
        ("wait", ""),
        (
            "wait",
            "prefill_concurrency: 3, cancel: { share: 20%, after: 50ms }, ",
        ),
    ] {
        let keys = format!(
            "  when_full: {policy}
  phases:
  - {{ name: a, kind: warm_up, duration: 10s, grace: 1s, {caps}arrivals: {{ process: constant, rate: 20/s, concurrency: 4 }} }}
  - {{ name: b, duration: 30s, grace: 500ms, {caps}arrivals: {{ process: users, users: 10, rate: 20/s, turns: 7 }} }}
  - {{ name: c, duration: 10s, seamless: true, {caps}arrivals: {{ process: burst, size: 5, every: 1s, concurrency: 3 }} }}
  - {{ name: d, kind: cool_down, requests: 50, {caps}arrivals: {{ process: jitter, every: 200ms, jitter: 100ms }} }}"
        );
        // 200, 600, 50 and 50.
        let (arrivals, told, numbers) = counted(&keys).await;
        assert_eq!((arrivals, told), (900, 900), "{keys}");
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len(), "each once: {keys}");
        assert_eq!(distinct.last(), Some(&899), "{keys}");
    }
}
