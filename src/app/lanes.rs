//! The addresses that one schedule's arrivals are spread over.
//!
//! Each is a stream of its own, with a client and connections of its own. Which one an arrival
//! goes to is known when it is due, so that a refusal belongs to the stream it hurt. Requests in
//! flight are counted per address over all probes of its target. Where requests are paired, an
//! address is two streams, cold and warm, and takes two arrivals in a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rand::RngExt;
use rand::rngs::StdRng;

use crate::client::Client;
use crate::config::Balance;
use crate::measurement::Stream;

/// One address of a target, as one probe sees it.
#[derive(Clone)]
pub(super) struct Lane {
    pub(super) stream: Arc<Stream>,
    pub(super) client: Arc<Client>,
    pub(super) load: Load,
}

/// Our requests in flight at one address. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct Load(Arc<AtomicU32>);

/// One of them; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct Flight(Load);

impl Load {
    /// One more, until the value returned is dropped.
    pub(super) fn begin(&self) -> Flight {
        self.0.fetch_add(1, Relaxed);
        Flight(self.clone())
    }

    fn now(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// All addresses of a target, and how one is picked.
pub(super) struct Lanes {
    all: Vec<Lane>,
    /// Lanes of one address, which follow each other.
    of_address: usize,
    /// The next lane of an address whose turn is not over.
    begun: Option<usize>,
    balance: Balance,
    /// Position of the next address in turn.
    turn: usize,
    random: StdRng,
}

impl Lanes {
    /// At least one of `lanes` must be given, `of_address` for each address.
    pub(super) fn new(
        (lanes, of_address): (Vec<Lane>, usize),
        balance: Balance,
        random: StdRng,
    ) -> Self {
        Self {
            all: lanes,
            of_address,
            begun: None,
            balance,
            turn: 0,
            random,
        }
    }

    /// The one that comes next, as far as that is known now.
    pub(super) fn upcoming(&self) -> &Lane {
        let first = self.turn * self.of_address;
        &self.all[self.begun.unwrap_or(first)]
    }

    /// Whether what comes next goes where the arrival before went, as the second of a pair.
    pub(super) const fn is_second(&self) -> bool {
        self.begun.is_some()
    }

    /// Where the arrival that is due now goes.
    pub(super) fn pick(&mut self) -> Lane {
        let lane = match self.begun.take() {
            Some(lane) => lane,
            None => self.pick_address() * self.of_address,
        };
        let next = lane + 1;
        self.begun = (!next.is_multiple_of(self.of_address)).then_some(next);
        self.all[lane].clone()
    }

    fn pick_address(&mut self) -> usize {
        let addresses = self.all.chunks(self.of_address);
        let count = addresses.len();
        match self.balance {
            Balance::RoundRobin => {
                let turn = self.turn;
                self.turn = (turn + 1) % count;
                turn
            }
            Balance::Random => self.random.random_range(0..count),
            Balance::LeastInFlight => least(addresses.map(|lanes| lanes[0].load.now())),
        }
    }
}

/// Position of the smallest, the first of several.
fn least(loads: impl Iterator<Item = u32>) -> usize {
    let numbered = loads.enumerate();
    let smallest = numbered.min_by_key(|(position, load)| (*load, *position));
    smallest.map_or(0, |(position, _)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_least_loaded_is_taken() {
        for (loads, expected) in [
            (&[3, 1, 2][..], 1),
            (&[2, 1, 1], 1),
            (&[0, 0], 0),
            (&[5], 0),
        ] {
            assert_eq!(least(loads.iter().copied()), expected, "{loads:?}");
        }
    }

    #[test]
    fn a_request_counts_until_it_is_dropped() {
        let load = Load::default();
        let (one, two) = (load.begin(), load.begin());
        assert_eq!(load.now(), 2);
        drop(one);
        assert_eq!(load.now(), 1);
        drop(two);
        assert_eq!(load.now(), 0);
    }
}
