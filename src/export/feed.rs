//! What an exporter draws from: its queue in batches, and the account of what became of each.
//!
//! Invariant: a record drawn is *in hand* until it is settled. Whatever is queued or in hand
//! when the feed goes, by an orderly end, the deadline or a panic, is counted as failed, so
//! the account always closes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::measurement::Observed;
use crate::telemetry::ExportCounters;

/// Once the input has ended no pause is longer: little time is left.
const LAST_WAIT: Duration = Duration::from_millis(200);
/// How often a pause looks whether the input has ended: a queue tells that only to who draws
/// from it. Short against the time that an end leaves.
const LOOK: Duration = Duration::from_millis(20);

/// How much is drawn at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batching {
    /// Records per batch at most.
    pub(super) size: usize,
    /// How long the first record of a batch waits for others.
    pub(super) linger: Duration,
}

/// Why a pause is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paused {
    /// Its time is up.
    ToTheEnd,
    /// The input ended meanwhile: there is little time left.
    InputEnded,
}

/// What became of records in hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) sent: u64,
    pub(super) rejected: u64,
    pub(super) failed: u64,
}

/// Waits for `time`, and no longer than until `ended` holds, if it does not yet.
pub(super) async fn pause(time: Duration, ended: &(dyn Fn() -> bool + Sync)) -> Paused {
    if ended() {
        tokio::time::sleep(time.min(LAST_WAIT)).await;
        return Paused::ToTheEnd;
    }
    let ending = async {
        while !ended() {
            tokio::time::sleep(LOOK).await;
        }
    };
    match tokio::time::timeout(time, ending).await {
        Ok(()) => Paused::InputEnded,
        Err(_) => Paused::ToTheEnd,
    }
}

/// A queue with its account: of records, or of whatever else is handed on one by one.
pub(super) struct Feed<T = Arc<Observed>> {
    input: mpsc::Receiver<T>,
    counters: ExportCounters,
    deadline: CancellationToken,
    in_hand: u64,
}

impl<T> Feed<T> {
    pub(super) fn new(
        input: mpsc::Receiver<T>,
        counters: ExportCounters,
        deadline: CancellationToken,
    ) -> Self {
        Self {
            input,
            counters,
            deadline,
            in_hand: 0,
        }
    }

    /// The token that ends everything.
    pub(super) fn deadline(&self) -> CancellationToken {
        self.deadline.clone()
    }

    /// Whether all senders are gone.
    pub(super) fn is_ended(&self) -> bool {
        self.input.is_closed()
    }

    /// Draws the next batch: full, or as much as came while its first record lingered. `None`
    /// when the input has ended or the deadline has passed.
    pub(super) async fn batch(&mut self, batching: Batching) -> Option<Vec<T>> {
        let deadline = self.deadline.clone();
        let mut batch = Vec::new();
        let filled = deadline
            .run_until_cancelled(self.fill(&mut batch, batching))
            .await;
        // What had been drawn when the deadline came is in hand and fails with the rest.
        self.in_hand += batch.len() as u64;
        filled?;
        (!batch.is_empty()).then_some(batch)
    }

    async fn fill(&mut self, batch: &mut Vec<T>, batching: Batching) {
        if self.input.recv_many(batch, batching.size).await == 0 {
            return;
        }
        let linger = tokio::time::sleep(batching.linger);
        tokio::pin!(linger);
        while batch.len() < batching.size {
            let room = batching.size - batch.len();
            tokio::select! {
                // `recv_many` loses nothing when it is dropped before it is ready.
                drawn = self.input.recv_many(batch, room) => if drawn == 0 { return },
                () = &mut linger => return,
            }
        }
    }

    /// Writes down what became of records in hand.
    pub(super) fn settle(&mut self, fate: Fate) {
        self.counters.sent.inc_by(fate.sent);
        self.counters.rejected.inc_by(fate.rejected);
        self.counters.failed.inc_by(fate.failed);
        self.in_hand = self
            .in_hand
            .saturating_sub(fate.sent + fate.rejected + fate.failed);
    }

    /// Ends the feed: nothing is taken any more, and what is left fails.
    pub(super) async fn close(mut self) {
        self.input.close();
        // Waits for an `offer` that is under way just now, which `drop` could not.
        while self.input.recv().await.is_some() {
            self.counters.failed.inc();
        }
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        self.input.close();
        while self.input.try_recv().is_ok() {
            self.counters.failed.inc();
        }
        self.counters.failed.inc_by(self.in_hand);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture::{counters, observed, settled};
    use crate::export::offer;

    const BATCHING: Batching = Batching {
        size: 3,
        linger: Duration::from_secs(1),
    };

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_full_or_as_old_as_its_linger() {
        let counters = counters();
        let (queue, input) = mpsc::channel(8);
        let mut feed = Feed::new(input, counters.clone(), CancellationToken::new());
        for _ in 0..4 {
            offer(&queue, &counters, observed());
        }
        let started = tokio::time::Instant::now();
        let full = feed.batch(BATCHING).await.expect("a batch");
        assert_eq!((full.len(), started.elapsed()), (3, Duration::ZERO));
        let rest = feed.batch(BATCHING).await.expect("a batch");
        assert_eq!((rest.len(), started.elapsed()), (1, Duration::from_secs(1)));
        drop(queue);
        assert!(feed.batch(BATCHING).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_input_does_not_wait_for_the_linger() {
        let counters = counters();
        let (queue, input) = mpsc::channel(8);
        let mut feed = Feed::new(input, counters.clone(), CancellationToken::new());
        offer(&queue, &counters, observed());
        drop(queue);
        let started = tokio::time::Instant::now();
        assert_eq!(feed.batch(BATCHING).await.expect("a batch").len(), 1);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_cut_short_by_the_end_of_the_input_and_once_only() {
        let counters = counters();
        let (queue, input) = mpsc::channel::<Arc<Observed>>(8);
        let feed = Feed::new(input, counters, CancellationToken::new());
        let ended = || feed.is_ended();
        let minute = Duration::from_mins(1);
        assert_eq!(pause(minute, &ended).await, Paused::ToTheEnd);
        let ending = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(queue);
        };
        let started = tokio::time::Instant::now();
        let (paused, ()) = tokio::join!(pause(minute, &ended), ending);
        assert_eq!(paused, Paused::InputEnded);
        assert!(started.elapsed() <= Duration::from_millis(5_021));
        assert_eq!(pause(minute, &ended).await, Paused::ToTheEnd);
        assert!(
            started.elapsed() <= Duration::from_millis(5_222),
            "little time is left"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_is_queued_or_in_hand_at_the_deadline_fails() {
        let counters = counters();
        let deadline = CancellationToken::new();
        let (queue, input) = mpsc::channel(8);
        let mut feed = Feed::new(input, counters.clone(), deadline.clone());
        for _ in 0..5 {
            offer(&queue, &counters, observed());
        }
        let batch = feed.batch(BATCHING).await.expect("a batch");
        assert_eq!(batch.len(), 3);
        feed.settle(Fate {
            sent: 1,
            ..Fate::default()
        });
        deadline.cancel();
        assert!(feed.batch(BATCHING).await.is_none());
        feed.close().await;
        assert_eq!((counters.sent.get(), counters.failed.get()), (1, 4));
        assert_eq!(settled(&counters), counters.accepted.get());
    }
}
