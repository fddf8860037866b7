//! Reads a page beside the server's own again and again: of GPUs, of a host.
//!
//! As with the server's page: a page counts from the instant its last byte was read, and one that
//! fails gives no sample, so that a record shows an older state with its age, and at last none.

use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::transport::fetch::{Fetch, Fetched};

/// Longest page that is read.
const MAX_PAGE: usize = 16 * 1024 * 1024;

/// What came of one reading, in a word, and the sample that it gave.
pub(super) type Reading<S> = (&'static str, Option<S>);

/// Something that is read again and again.
pub(super) trait Beside: Sync {
    /// What a good reading gives.
    type Sample: Send;

    /// Reads it once.
    fn read(&self) -> impl Future<Output = Reading<Self::Sample>> + Send;

    /// Is told what came of each reading, and whether that is another word than the last time.
    fn told(&self, reading: &Reading<Self::Sample>, is_new: bool);
}

/// Reads until `samples` is closed, the first time at once.
pub(super) async fn again<B: Beside>(
    beside: &B,
    (every, samples): (Duration, mpsc::Sender<B::Sample>),
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = "";
    loop {
        ticks.tick().await;
        let reading = beside.read().await;
        beside.told(&reading, reading.0 != last);
        last = reading.0;
        if let Some(sample) = reading.1
            && samples.send(sample).await.is_err()
        {
            return;
        }
    }
}

/// The page at `url`, or in a word why there is none.
pub(super) async fn page(fetch: &Fetch, url: &str) -> Result<Fetched, &'static str> {
    match fetch.get(url, &HeaderMap::new(), MAX_PAGE).await {
        Ok(page) if page.status.is_success() => Ok(page),
        Ok(_) => Err("status"),
        Err(_) => Err("unreachable"),
    }
}
