//! A freeze at a constant rate shows in every arrival it hurt, not only in those it met.

use std::time::Duration;

use tokencanary::aggregate::Measure;
use tokencanary::app::{Extent, Outputs};
use tokencanary::config::{Arrivals, WhenFull};
use tokencanary::measurement::{Outcome, RefusedReason, RequestRecord};
use tokencanary::simulator::{Fault, FaultKind, Profile, SimulatorConfig};

use super::{Left, World, at, config, ms};

/// Prefill 1 ms, two tokens 1 ms apart; ten arrivals a second, four in flight, frozen for five
/// seconds.
async fn frozen(when_full: WhenFull) -> Left {
    World {
        simulator: SimulatorConfig::new(Profile::fixed(ms(1), ms(1))),
        faults: vec![Fault {
            kind: FaultKind::Freeze,
            from: at(9_950),
            lasts: ms(5_000),
        }],
        config: config(Arrivals::Constant { rate: 10.0 }, when_full, 4),
        extent: Extent {
            count: Some(200),
            ..Extent::default()
        },
        outputs: Outputs::default(),
    }
    .run()
    .await
}

fn shows(time: Option<Duration>) -> bool {
    time.is_some_and(|time| time > ms(25))
}

fn count(records: &[RequestRecord], test: impl Fn(&RequestRecord) -> bool) -> usize {
    records.iter().filter(|record| test(record)).count()
}

#[tokio::test(start_paused = true)]
async fn waiting_arrivals_carry_the_freeze_in_their_response_time() {
    let records = frozen(WhenFull::Wait).await.records();
    assert_eq!(count(&records, |record| record.outcome == Outcome::Ok), 200);
    assert_eq!(count(&records, |record| shows(record.service_time())), 4);
    let response = count(&records, |record| shows(record.response_time()));
    assert!((49..=51).contains(&response), "{response}");
    assert_eq!(count(&records, RequestRecord::is_lagged), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_arrivals_count_as_never() {
    let left = frozen(WhenFull::Refuse).await;
    let records = left.records();
    assert_eq!(count(&records, |record| shows(record.service_time())), 4);
    let refused = |record: &RequestRecord| {
        record.outcome == Outcome::Refused && record.refused == Some(RefusedReason::InFlight)
    };
    assert_eq!(count(&records, refused), 46);
    assert_eq!(count(&records, |record| record.outcome == Outcome::Ok), 154);

    let live = left.live.lock().expect("not poisoned");
    let histogram = live.streams()[0]
        .totals()
        .histogram(Measure::ResponseTimeOrFailure);
    assert_eq!(histogram.count(), 200);
    // Bucket -170 ends at 2^(-170/32) s = 25.16 ms.
    let in_time: u64 = histogram
        .buckets()
        .filter(|(index, _)| *index <= -170)
        .map(|(_, count)| count)
        .sum();
    assert_eq!(200 - in_time, 50, "4 late ones and 46 that never came");
}
