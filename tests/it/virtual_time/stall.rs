//! A stall of our own is ours: what came due meanwhile is not refused in the server's name, and
//! all of it has a record.

use std::time::Duration;

use tokencanary::app::{Extent, Outputs};
use tokencanary::config::{Arrivals, WhenFull};
use tokencanary::measurement::{Outcome, RefusedReason, RequestRecord};
use tokencanary::simulator::{Fault, FaultKind, Profile, SimulatorConfig};

use super::{World, at, config, ms};

/// Prefill 1 ms, two tokens 1 ms apart; ten arrivals a second, four in flight.
fn world(when_full: WhenFull) -> World {
    World {
        simulator: SimulatorConfig::new(Profile::fixed(ms(1), ms(1))),
        faults: Vec::new(),
        config: config(Arrivals::Constant { rate: 10.0 }, when_full, 4),
        extent: Extent {
            count: Some(100),
            ..Extent::default()
        },
        outputs: Outputs::default(),
    }
}

/// At 4.95 s nothing of ours runs for three seconds.
async fn stall() {
    tokio::time::sleep(ms(4_950)).await;
    tokio::time::advance(Duration::from_secs(3)).await;
}

fn refused(records: &[RequestRecord], reason: RefusedReason) -> usize {
    let is = |record: &&RequestRecord| record.refused == Some(reason);
    records.iter().filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn arrivals_that_a_stall_of_ours_heaped_up_count_for_nobody() {
    let stall = tokio::spawn(stall());
    let records = world(WhenFull::Refuse).run().await.records();
    stall.await.expect("it ended");
    assert_eq!(records.len(), 100);
    assert_eq!(refused(&records, RefusedReason::InFlight), 0);
    // Thirty were due in the stall, and four of them found a slot.
    assert_eq!(refused(&records, RefusedReason::OwnLag), 26);
    assert!(!records.iter().any(RequestRecord::is_failure));
    let ok = |record: &&RequestRecord| record.outcome == Outcome::Ok;
    assert_eq!(records.iter().filter(ok).count(), 74);
    let lagged = |record: &&RequestRecord| record.is_lagged();
    assert_eq!(records.iter().filter(lagged).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_full_after_the_stall_is_to_blame_again() {
    let mut world = world(WhenFull::Refuse);
    world.faults = vec![Fault {
        kind: FaultKind::Freeze,
        from: at(9_050),
        lasts: ms(60_000),
    }];
    let stall = tokio::spawn(stall());
    let records = world.run().await.records();
    stall.await.expect("it ended");
    // Due from 9.1 s on: nine, of which four hang in the frozen server.
    assert_eq!(refused(&records, RefusedReason::InFlight), 5);
    assert_eq!(refused(&records, RefusedReason::OwnLag), 26);
}

#[tokio::test(start_paused = true)]
async fn waiting_arrivals_outlive_a_stall() {
    let stall = tokio::spawn(stall());
    let records = world(WhenFull::Wait).run().await.records();
    stall.await.expect("it ended");
    let ok = |record: &&RequestRecord| record.outcome == Outcome::Ok;
    assert_eq!(records.iter().filter(ok).count(), 100);
}

#[tokio::test(start_paused = true)]
async fn what_was_due_when_a_stop_came_in_a_stall_has_a_record() {
    for when_full in [WhenFull::Refuse, WhenFull::Wait] {
        let records = world(when_full).run_until(stall()).await.records();
        // Due at 0.0, 0.1 … 7.9 s; the stop came at 7.95 s.
        let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
        assert_eq!(sequences, (0..80).collect::<Vec<_>>(), "{when_full:?}");
        assert!(!records.iter().any(RequestRecord::is_failure));
        let held_back = [RefusedReason::Shutdown, RefusedReason::OwnLag]
            .map(|reason| refused(&records, reason));
        assert!(held_back.iter().sum::<usize>() >= 26, "{when_full:?}");
    }
}
