//! The places that connections have, and who gives one up when all are taken.
//!
//! Those wait first on which no request is under way, and of these the one on which nothing has
//! moved for longest. So connections that are only held open keep no scrape out.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// All places of a listener.
pub(super) struct Places {
    free: Arc<Semaphore>,
    table: Arc<Mutex<Table>>,
}

/// Who has one.
#[derive(Default)]
struct Table {
    /// Counts what moves: instants without a clock.
    moves: u64,
    next: u64,
    taken: BTreeMap<u64, Standing>,
}

struct Standing {
    /// A request is being read or answered.
    is_busy: bool,
    /// When something moved last.
    moved: u64,
    give_up: CancellationToken,
}

/// The place of one connection; free again when it is dropped.
pub(super) struct Place {
    number: u64,
    taken: Pin<Box<WaitForCancellationFutureOwned>>,
    table: Arc<Mutex<Table>>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            table: Arc::default(),
        }
    }

    /// A place for a new connection. If all are taken, another one's, once that has gone.
    pub(super) async fn take(&self) -> Place {
        if self.free.available_permits() == 0 {
            lock(&self.table).free_one();
        }
        let free = Arc::clone(&self.free).acquire_owned();
        let permit = free.await.expect("the semaphore is never closed");
        let give_up = CancellationToken::new();
        let taken = Box::pin(give_up.clone().cancelled_owned());
        let number = lock(&self.table).add(give_up);
        Place {
            number,
            taken,
            table: Arc::clone(&self.table),
            _permit: permit,
        }
    }
}

impl Table {
    fn add(&mut self, give_up: CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.moves += 1;
        let standing = Standing {
            is_busy: false,
            moved: self.moves,
            give_up,
        };
        self.taken.insert(number, standing);
        number
    }

    /// Tells the connection to go that can be missed most easily.
    fn free_one(&self) {
        let staying = self.taken.values();
        let staying = staying.filter(|standing| !standing.give_up.is_cancelled());
        if let Some(standing) = staying.min_by_key(|standing| (standing.is_busy, standing.moved)) {
            standing.give_up.cancel();
        }
    }

    fn moved(&mut self, number: u64, is_busy: bool) {
        self.moves += 1;
        if let Some(standing) = self.taken.get_mut(&number) {
            standing.is_busy = is_busy;
            standing.moved = self.moves;
        }
    }
}

impl Place {
    /// Something of a request came.
    pub(super) fn asks(&self) {
        lock(&self.table).moved(self.number, true);
    }

    /// Something of an answer went: from here on it can be missed, if nothing moves any more.
    pub(super) fn answers(&self) {
        lock(&self.table).moved(self.number, false);
    }

    /// Ready once the place is another one's.
    pub(super) fn poll_taken(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.taken.as_mut().poll(context)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.table).taken.remove(&self.number);
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_taken(place: &mut Place) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        place.poll_taken(&mut context).is_ready()
    }

    #[tokio::test]
    async fn the_one_that_is_silent_for_longest_goes_and_who_asks_stays() {
        let places = Places::new(3);
        let mut asking = places.take().await;
        let mut first = places.take().await;
        let mut second = places.take().await;
        asking.asks();
        // An answer and silence: the second is the longest in silence now.
        first.asks();
        first.answers();
        let mut new = Box::pin(places.take());
        assert!(new.as_mut().now_or_never().is_none(), "it has to go first");
        let taken = [&mut asking, &mut first, &mut second].map(is_taken);
        assert_eq!(taken, [false, false, true]);
        drop(second);
        let _third = new.await;
        let mut another = Box::pin(places.take());
        assert!(another.as_mut().now_or_never().is_none());
        assert_eq!([&mut asking, &mut first].map(is_taken), [false, true]);
    }

    #[tokio::test]
    async fn where_all_ask_the_slowest_goes() {
        let places = Places::new(2);
        let mut slow = places.take().await;
        let mut quick = places.take().await;
        slow.asks();
        quick.asks();
        assert!(places.take().now_or_never().is_none());
        assert_eq!([&mut slow, &mut quick].map(is_taken), [true, false]);
    }
}
