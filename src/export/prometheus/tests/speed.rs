//! A page of fifty busy streams takes no longer than a scrape may.

use std::time::{Duration, Instant};

use super::*;

/// The bar of a page, in an optimised build. `benches/scrape.rs` holds it and prints the figures.
const BAR: Duration = Duration::from_millis(20);
/// A build for tests is slower by about this, and the machine may be busy.
const DEBUG: u32 = if cfg!(debug_assertions) { 15 } else { 2 };

fn busy() -> Live {
    let streams: Vec<_> = (0..50).map(fixture::stream).collect();
    let rules = streams.iter().map(|stream| (Arc::clone(stream), RULES));
    let mut live = Live::new(rules.collect(), 1);
    for (place, stream) in (0..).zip(&streams) {
        // TTFT from 8 ms to 4 s, ITL from 2 to 41 ms.
        for n in 0..200_u64 {
            let first = 8 + n * n / 10;
            let gap = 2 + n % 40;
            let tokens = [first, first + gap, first + 2 * gap];
            let observed = ok(stream, 1_000 * n, &tokens);
            let ids = TraceIds {
                trace: u128::from(n + 1),
                span: n + 1,
            };
            let span = ExportedSpan {
                ids,
                unix_ns: STARTED + n * 1_000_000 + place,
            };
            live.observe(Arc::new(observed), Some(span));
        }
    }
    live
}

#[test]
fn fifty_streams_are_written_within_the_bar() {
    let live = busy();
    for format in [Format::Text, Format::OpenMetrics, Format::Protobuf] {
        let once = || {
            #[expect(
                clippy::disallowed_methods,
                reason = "how long a pure function takes, in real time"
            )]
            let began = Instant::now();
            let page = page_of(format, &live, &[]);
            (began.elapsed(), page.len())
        };
        let (took, bytes) = (0..5).map(|_| once()).min().expect("five runs");
        assert!(bytes > 1_000_000, "a page of fifty busy streams: {bytes}");
        assert!(took <= BAR * DEBUG, "{format:?} took {took:?}");
    }
}
