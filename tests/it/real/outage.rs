//! The outage at its full length, with a real receiver: 10 spans/s for half a minute, the
//! receiver's port closed for 10 s of it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::components::OtelTap;
use crate::gate::Gate;
use crate::process::outage::{Canary, Load};
use crate::program::scratch;

/// For what takes an instant.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_outage_of_a_real_receiver_is_counted_to_the_span() {
    let folder = scratch("real_outage");
    let mut tap = OtelTap::start(&folder).await;
    let mut gate = Gate::start(&tap.url).await;
    let load = Load {
        rate: 10,
        ttft: "200ms",
        queue: 64,
    };
    let canary = Canary::start(&folder, &load, &gate.url(), &[]).await;
    let start = Instant::now();
    let at = |second| sleep_until(start + Duration::from_secs(second));
    at(5).await;
    gate.close().await;
    at(15).await;
    gate.open().await;
    at(30).await;
    let ended = canary.stop().await;
    let otlp = ended.traces;
    assert!((290..=320).contains(&otlp.accepted), "{otlp:?}");
    assert!(otlp.dropped + otlp.failed > 0, "{otlp:?}");
    // 100 came in the 10 s and up to 5 s more; about 75 of them were kept.
    assert!(otlp.dropped + otlp.failed < 100, "{otlp:?}");
    let held = tap.spans_settled(otlp.sent, SOON).await;
    let held: Vec<_> = held.into_iter().map(|ids| ids.span).collect();
    ended.assert_honest(&held);
}
